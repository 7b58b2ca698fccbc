/** Rows of usage, summed up as the page shows them. */
import type { Question, UsageRow, UsageStep } from '../../contract.js';
import { call, CallError } from '../call.js';

/** The most rows of all pages together, which a browser adds up without a pause: a month of days of 800 keys. */
const rowsMax = 25_000;

/** @throws {CallError} also if there are too many rows to show */
export const allUsage = async (
  question: Question<'usage'>,
  signal: AbortSignal,
): Promise<readonly UsageRow[]> => {
  const all: UsageRow[] = [];
  let page = await call('usage', question, signal);
  for (;;) {
    all.push(...page.rows);
    if (page.next === null) return all;
    if (all.length >= rowsMax)
      throw new CallError({
        code: 'badRequest',
        message:
          'There are too many rows to show. Choose a shorter period, days instead of hours, or one account. The CSV file has all rows.',
      });
    page = await call('usage', { ...question, after: page.next }, signal);
  }
};

export const measures = { Characters: 'characters', Requests: 'requests', Seconds: 'audioMs' } as const;
export type Measure = keyof typeof measures;
export type Split = 'Key' | 'Voice' | 'Account';

type Sums = Pick<UsageRow, 'requests' | 'characters' | 'credits' | 'refunded' | 'audioMs'>;

export interface Sum extends Sums {
  readonly label: string;
  /** Under the label. */
  readonly detail: string;
}

const none: Sum = { label: '', detail: '', requests: 0, characters: 0, credits: 0, refunded: 0, audioMs: 0 };

const plus = (sum: Sum, row: UsageRow): Sum => ({
  ...sum,
  requests: sum.requests + row.requests,
  characters: sum.characters + row.characters,
  credits: sum.credits + row.credits,
  refunded: sum.refunded + row.refunded,
  audioMs: sum.audioMs + row.audioMs,
});

export const totalOf = (rows: readonly UsageRow[]): Sum => rows.reduce(plus, { ...none, label: 'Total' });

interface Part {
  readonly id: string;
  readonly label: string;
  readonly detail: string;
}

/** Which part of a split a row belongs to. @param isOfAll the rows are of all accounts */
export const partOf = (row: UsageRow, split: Split, isOfAll: boolean): Part => {
  switch (split) {
    case 'Account':
      return { id: String(row.accountId), label: row.account, detail: '' };
    case 'Voice':
      return row.voice === ''
        ? { id: '', label: 'Not recorded', detail: 'Older speech' }
        : { id: row.voice, label: row.voice, detail: '' };
    case 'Key': {
      const ofAccount = isOfAll ? row.account : '';
      if (row.keyName === '') return { id: String(row.keyId), label: row.key, detail: ofAccount };
      return {
        id: String(row.keyId),
        label: row.keyName,
        detail: [row.key, ofAccount].filter(Boolean).join(' · '),
      };
    }
  }
};

/** The largest first. */
export const sumsBy = (
  rows: readonly UsageRow[],
  partFor: (row: UsageRow) => Part,
): readonly (Sum & { readonly id: string })[] => {
  const sums = new Map<string, Sum & { readonly id: string }>();
  for (const row of rows) {
    const part = partFor(row);
    sums.set(part.id, { ...plus(sums.get(part.id) ?? none, row), ...part });
  }
  return [...sums.values()].sort((a, b) => b.characters - a.characters);
};

export const stepMs = { hour: 3_600_000, day: 86_400_000 } as const satisfies Record<UsageStep, number>;

export interface Series {
  readonly label: string;
  readonly values: readonly number[];
}

export interface PlotData {
  readonly step: UsageStep;
  /** Starts of steps, without a gap. */
  readonly timesMs: readonly number[];
  /** At most `seriesMax`; the last then holds all others. */
  readonly series: readonly Series[];
}

const seriesMax = 6;

export const plotData = (
  rows: readonly UsageRow[],
  period: { readonly fromMs: number; readonly toMs: number; readonly step: UsageStep },
  measure: Measure,
  partFor: (row: UsageRow) => Part,
): PlotData => {
  const { fromMs, toMs, step } = period;
  const length = Math.max(0, Math.ceil((toMs - fromMs) / stepMs[step]));
  const timesMs = Array.from({ length }, (_, index) => fromMs + index * stepMs[step]);
  const parts = sumsBy(rows, partFor);
  const own = parts.slice(0, parts.length > seriesMax ? seriesMax - 1 : seriesMax);
  const labels = own.map(({ label }) => label);
  if (parts.length > own.length) labels.push('Others');
  const indexOf = new Map(own.map(({ id }, index) => [id, index]));
  const values = labels.map(() => new Array<number>(length).fill(0));
  for (const row of rows) {
    const at = Math.floor((row.atMs - fromMs) / stepMs[step]);
    const line = values[indexOf.get(partFor(row).id) ?? values.length - 1];
    if (line?.[at] === undefined) continue;
    line[at] += measure === 'Seconds' ? row.audioMs / 1_000 : row[measures[measure]];
  }
  return { step, timesMs, series: labels.map((label, index) => ({ label, values: values[index]! })) };
};
