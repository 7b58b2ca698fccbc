/** What was spoken and spent: a plot, tables, and the balance. */
import { useMemo, useState } from 'preact/hooks';
import type { AccountView, UsageRow, UsageStep } from '../../contract.js';
import { formatCompact, formatNumber, formatSeconds, formatUtcDay, formatUtcTime } from '../format.js';
import { CsvLink, useChoice } from '../parts/filters.js';
import { Empty, Page, Shown, Time } from '../parts/page.js';
import { type Column, Table } from '../parts/table.js';
import { Tiles } from '../parts/tiles.js';
import { useAnswer, useCall } from '../use-call.js';
import { Plot } from './plot.js';
import {
  allUsage,
  type Measure,
  partOf,
  plotData,
  type PlotData,
  type Split,
  stepMs,
  type Sum,
  sumsBy,
  totalOf,
} from './usage-data.js';

const periods = {
  '24 hours': { days: 1, step: 'hour' },
  '7 days': { days: 7, step: 'hour' },
  '30 days': { days: 30, step: 'day' },
  '90 days': { days: 90, step: 'day' },
  '365 days': { days: 365, step: 'day' },
} as const satisfies Record<string, { readonly days: number; readonly step: UsageStep }>;
type Period = keyof typeof periods;

/** Up to the end of the hour or day that runs now. */
const timesOf = (days: number, step: UsageStep) => {
  const toMs = Math.ceil((Date.now() + 1) / stepMs[step]) * stepMs[step];
  return { fromMs: toMs - days * stepMs.day, toMs, step };
};

const formatStep = (step: UsageStep) => (step === 'day' ? formatUtcDay : formatUtcTime);
const formatMeasure = (measure: Measure, value: number): string =>
  measure === 'Seconds' ? formatSeconds(value * 1_000) : formatNumber(value);

const PlotView = ({ data, measure }: { readonly data: PlotData; readonly measure: Measure }) => {
  const [point, setPoint] = useState<number | null>(null);
  const { series, step, timesMs } = data;
  const at = point === null ? undefined : timesMs[point];
  const fromMs = (timesMs[0] ?? 0) - stepMs[step] / 2;
  return (
    <Plot
      title={measure}
      about={`${at === undefined ? `By ${step}` : formatStep(step)(at)}, UTC`}
      label={`${measure} over time. The tables below have the numbers.`}
      hasBars
      isUtc
      timesMs={timesMs}
      fromMs={fromMs}
      toMs={fromMs + timesMs.length * stepMs[step]}
      series={series.map(({ label, values }, index) => ({
        ...{ label, values, color: `--series-${index + 1}` },
        shown: point === null ? '' : formatMeasure(measure, values[point] ?? 0),
      }))}
      highestMin={1}
      format={formatCompact}
      point={point}
      onPoint={setPoint}
    />
  );
};

const sumColumns = (shown: Measure): readonly Column<Sum>[] => {
  const columns: readonly (Column<Sum> & { readonly measure?: Measure })[] = [
    { label: 'Requests', measure: 'Requests', cell: ({ requests }) => formatNumber(requests) },
    { label: 'Characters', measure: 'Characters', cell: ({ characters }) => formatNumber(characters) },
    { label: 'Seconds of audio', measure: 'Seconds', cell: ({ audioMs }) => formatSeconds(audioMs) },
    { label: 'Credits', cell: ({ credits }) => formatNumber(credits) },
    { label: 'Refunded', cell: ({ refunded }) => formatNumber(refunded) },
  ];
  return columns.map(({ measure, ...column }) => ({
    ...column,
    isNumber: true,
    isDetail: measure !== shown,
  }));
};

const measureLabels = {
  Characters: 'Characters',
  Requests: 'Requests',
  Seconds: 'Seconds of audio',
} as const;
const periodLabels = Object.fromEntries(
  Object.keys(periods).map((period) => [period, `Last ${period}`]),
) as Record<Period, string>;

/** Rows of a list that are shown at first. */
const firstRows = 10;

/** Keeps its height until the answer is there. */
const Totals = ({ sum }: { readonly sum: Sum | undefined }) => {
  const shown = (format: (sum: Sum) => string) => (sum === undefined ? '\u00a0' : format(sum));
  return (
    <Tiles
      figures={[
        ['Characters', shown(({ characters }) => formatNumber(characters))],
        ['Requests', shown(({ requests }) => formatNumber(requests))],
        ['Seconds of audio', shown(({ audioMs }) => formatSeconds(audioMs))],
        ['Credits, less refunds', shown(({ credits, refunded }) => formatNumber(credits - refunded))],
      ]}
    />
  );
};

/** `accountId` null: all accounts. */
const Usage = ({ accountId }: { readonly accountId: number | null }) => {
  const splits = accountId === null ? (['Account', 'Key', 'Voice'] as const) : (['Key', 'Voice'] as const);
  const [period, periodField] = useChoice('period', 'Period', periodLabels, '30 days');
  const [split, splitField] = useChoice<Split>('split', 'Split by', splits);
  const [measure, measureField] = useChoice('show', 'Show', measureLabels);
  const { days, step } = periods[period];
  const times = useMemo(() => timesOf(days, step), [period]);
  const question = { accountId, ...times };
  const usage = useAnswer(JSON.stringify(['usage', question]), (signal) => allUsage(question, signal));
  const rows = usage.answer;
  const part = (row: UsageRow) => partOf(row, split, accountId === null);
  const data = useMemo(() => rows && plotData(rows, times, measure, part), [rows, times, measure, split]);
  const query = new URLSearchParams(Object.entries(times).map(([name, value]) => [name, String(value)]));
  if (accountId !== null) query.set('accountId', String(accountId));
  return (
    <>
      <Totals sum={rows && totalOf(rows)} />
      <div class="filters">
        {periodField}
        {splitField}
        {measureField}
        <CsvLink href={`/api/usage.csv?${query.toString()}`} />
      </div>
      <Shown of={usage}>
        {(all) =>
          all.length === 0 || data === undefined ? (
            <Empty
              title={`Nothing was spoken in the last ${period}`}
              action={<a href="/playground">To the playground</a>}
            >
              Choose a longer period, or speak a text in the playground.
            </Empty>
          ) : (
            <>
              <PlotView data={data} measure={measure} />
              <section>
                <h2>By {split.toLowerCase()}</h2>
                <Table
                  caption={`Usage by ${split.toLowerCase()}`}
                  isList
                  rowsMax={firstRows}
                  rows={sumsBy(all, part)}
                  rowKey={({ id }) => id}
                  total={{ ...totalOf(all), id: 'total' }}
                  columns={[
                    {
                      label: split,
                      cell: ({ label, detail }) => (
                        <>
                          {label}
                          {detail !== '' && <span class="below">{detail}</span>}
                        </>
                      ),
                    },
                    ...sumColumns(measure),
                  ]}
                />
              </section>
              <section>
                <h2>By {step}, in UTC</h2>
                <Table
                  caption={`Usage by ${step}`}
                  isList
                  rowsMax={firstRows}
                  rows={sumsBy(all, ({ atMs }) => ({ id: String(atMs), label: '', detail: '' })).toSorted(
                    (a, b) => Number(b.id) - Number(a.id),
                  )}
                  rowKey={({ id }) => id}
                  columns={[
                    { label: 'From', cell: ({ id }) => <Time ms={Number(id)} format={formatStep(step)} /> },
                    ...sumColumns(measure),
                  ]}
                />
              </section>
            </>
          )
        }
      </Shown>
    </>
  );
};

const Balance = ({ account }: { readonly account: AccountView }) => {
  const balance = useCall('balance', { accountId: account.accountId });
  return (
    <section>
      <div class="between">
        <h2>Balance</h2>
        <strong>{formatNumber(account.balance)}</strong>
      </div>
      <Shown of={balance}>
        {(rows) => (
          <Table
            none={<Empty title="No credit granted yet" />}
            caption="History of the balance, the newest first"
            isList
            rowsMax={firstRows}
            rows={rows}
            rowKey={({ atMs, kind }) => `${kind}${atMs}`}
            columns={[
              {
                label: 'What',
                cell: ({ atMs, kind }) => (
                  <>
                    {kind === 'grant' ? 'Credit granted' : 'Spent on this day'}
                    <span class="below">
                      <Time ms={atMs} format={kind === 'grant' ? formatUtcTime : formatUtcDay} />, UTC
                    </span>
                  </>
                ),
              },
              {
                label: 'Credits',
                isNumber: true,
                cell: ({ amount }) => (amount > 0 ? '+' : '') + formatNumber(amount),
              },
              {
                label: 'Balance',
                isNumber: true,
                isDetail: true,
                cell: ({ balance: after }) => formatNumber(after),
              },
            ]}
          />
        )}
      </Shown>
    </section>
  );
};

export const AccountUsage = ({ account }: { readonly account: AccountView }) => (
  <>
    <Usage accountId={account.accountId} />
    {account.metered && <Balance account={account} />}
  </>
);

export const AllUsagePage = () => (
  <Page title="Usage" lead="All accounts. Hours and days are in UTC.">
    <Usage accountId={null} />
  </Page>
);
