/** What was spoken and spent: a plot, tables, and the balance. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AccountView, UsageRow, UsageStep } from '../../contract.js';
import { formatNumber, formatSeconds, formatTime, formatUtcDay } from '../format.js';
import { Icon } from '../parts/icon.js';
import { Empty, Page, Problem, Shown, Time } from '../parts/page.js';
import { Switch } from '../parts/switch.js';
import { Table, type Column } from '../parts/table.js';
import { useAnswer, useCall } from '../use-call.js';
import { allUsage, partOf, plotData, stepMs, sumsBy, totalOf } from './usage-data.js';
import type { Measure, PlotData, Split, Sum } from './usage-data.js';

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

const formatStep = (step: UsageStep) => (step === 'day' ? formatUtcDay : formatTime);
const formatMeasure = (measure: Measure, value: number): string =>
  measure === 'Seconds' ? formatSeconds(value * 1_000) : formatNumber(value);

const PlotView = ({ data, measure }: { readonly data: PlotData; readonly measure: Measure }) => {
  const box = useRef<HTMLDivElement>(null);
  const [point, setPoint] = useState<number | null>(null);
  const [isLost, setIsLost] = useState(false);
  useEffect(() => {
    let close: (() => void) | null = null;
    let isGone = false;
    import('./usage-plot.js').then(
      ({ drawPlot }) => {
        if (!isGone && box.current !== null) ({ close } = drawPlot(box.current, data, setPoint));
      },
      () => setIsLost(true),
    );
    return () => {
      isGone = true;
      close?.();
    };
  }, [data]);
  const at = point === null ? undefined : data.timesMs[point];
  return (
    <figure class="card stack">
      {isLost && (
        <Problem
          refusal={{ message: 'The plot did not load. Reload the page; the table has all numbers.' }}
        />
      )}
      <figcaption class="between small">
        <strong>{measure}</strong>
        <span class="muted">
          {at === undefined
            ? data.step === 'day'
              ? 'By day, in UTC'
              : 'By hour'
            : formatStep(data.step)(at)}
        </span>
      </figcaption>
      <div
        class="plot-box"
        ref={box}
        role="img"
        aria-label={`${measure} over time. The tables below have the numbers.`}
      />
      <ul class="row legend">
        {data.series.map(({ label, values }, index) => (
          <li key={label} class="row">
            <span aria-hidden="true" style={{ color: `var(--series-${index + 1})` }}>
              ■
            </span>
            {label}
            <strong>{point === null ? '' : formatMeasure(measure, values[point] ?? 0)}</strong>
          </li>
        ))}
      </ul>
    </figure>
  );
};

const sumColumns: readonly Column<Sum>[] = [
  { label: 'Requests', isNumber: true, cell: ({ requests }) => formatNumber(requests) },
  { label: 'Characters', isNumber: true, cell: ({ characters }) => formatNumber(characters) },
  { label: 'Seconds of audio', isNumber: true, cell: ({ audioMs }) => formatSeconds(audioMs) },
  { label: 'Credits', isNumber: true, cell: ({ credits }) => formatNumber(credits) },
  { label: 'Refunded', isNumber: true, cell: ({ refunded }) => formatNumber(refunded) },
];

const splits: Readonly<Partial<Record<Split, string>>> = { Key: 'Key', Voice: 'Voice' };
const splitsOfAll: typeof splits = { Account: 'Account', ...splits };
const measureLabels = { Characters: 'Characters', Requests: 'Requests', Seconds: 'Seconds' };

/** `accountId` null: all accounts. */
const Usage = ({ accountId }: { readonly accountId: number | null }) => {
  const [period, setPeriod] = useState<Period>('30 days');
  const [step, setStep] = useState<UsageStep>('day');
  const [split, setSplit] = useState<Split>(accountId === null ? 'Account' : 'Key');
  const [measure, setMeasure] = useState<Measure>('Characters');
  const times = useMemo(() => timesOf(periods[period].days, step), [period, step]);
  const question = { accountId, ...times };
  const usage = useAnswer(JSON.stringify(['usage', question]), (signal) => allUsage(question, signal));
  const rows = usage.answer;
  const part = (row: UsageRow) => partOf(row, split, accountId === null);
  const data = useMemo(() => rows && plotData(rows, times, measure, part), [rows, times, measure, split]);
  const choose = (chosen: Period) => {
    setPeriod(chosen);
    setStep(periods[chosen].step);
  };
  const query = new URLSearchParams(Object.entries(times).map(([name, value]) => [name, String(value)]));
  if (accountId !== null) query.set('accountId', String(accountId));
  return (
    <>
      <div class="row">
        <label class="muted row">
          <span>Last</span>
          <select value={period} onChange={({ currentTarget }) => choose(currentTarget.value as Period)}>
            {Object.keys(periods).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {periods[period].days <= 30 && (
          <Switch
            name="step"
            label="Step"
            options={{ hour: 'Hour', day: 'Day' }}
            value={step}
            onChange={setStep}
          />
        )}
        <Switch
          name="split"
          label="Split by"
          options={accountId === null ? splitsOfAll : splits}
          value={split}
          onChange={setSplit}
        />
        <Switch name="measure" label="Show" options={measureLabels} value={measure} onChange={setMeasure} />
        <a class="button small" href={`/api/usage.csv?${query.toString()}`} download>
          <Icon name="download" />
          CSV
        </a>
      </div>
      <Shown of={usage}>
        {(all) =>
          all.length === 0 || data === undefined ? (
            <Empty title="No usage in this period" action={<a href="/playground">To the playground</a>}>
              Choose a longer period, or speak a text in the playground.
            </Empty>
          ) : (
            <>
              <PlotView data={data} measure={measure} />
              <section>
                <h2>By {split.toLowerCase()}</h2>
                <Table
                  caption={`Usage by ${split.toLowerCase()}`}
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
                    ...sumColumns,
                  ]}
                />
              </section>
              <details>
                <summary>By {step}</summary>
                <Table
                  caption={`Usage by ${step}`}
                  rows={sumsBy(all, ({ atMs }) => ({ id: String(atMs), label: '', detail: '' })).toSorted(
                    (a, b) => Number(b.id) - Number(a.id),
                  )}
                  rowKey={({ id }) => id}
                  columns={[
                    { label: 'From', cell: ({ id }) => <Time ms={Number(id)} format={formatStep(step)} /> },
                    ...sumColumns,
                  ]}
                />
              </details>
            </>
          )
        }
      </Shown>
    </>
  );
};

/** Rows of the balance's history that are shown at first. */
const firstRows = 10;

const Balance = ({ account }: { readonly account: AccountView }) => {
  const balance = useCall('balance', { accountId: account.accountId });
  const [isWhole, setIsWhole] = useState(false);
  return (
    <section>
      <div class="between">
        <h2>Balance</h2>
        <strong>{formatNumber(account.balance)}</strong>
      </div>
      <Shown of={balance}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No credit granted yet" />
          ) : (
            <>
              <Table
                caption="History of the balance, the newest first"
                rows={isWhole ? rows : rows.slice(0, firstRows)}
                rowKey={({ atMs, kind }) => `${kind}${atMs}`}
                columns={[
                  {
                    label: 'What',
                    cell: ({ kind }) => (kind === 'grant' ? 'Credit granted' : 'Spent on this day'),
                  },
                  {
                    label: 'When',
                    cell: ({ kind, atMs }) => (
                      <Time ms={atMs} format={kind === 'grant' ? formatTime : formatUtcDay} />
                    ),
                  },
                  {
                    label: 'Credits',
                    isNumber: true,
                    cell: ({ amount }) => (amount > 0 ? '+' : '') + formatNumber(amount),
                  },
                  { label: 'Balance', isNumber: true, cell: ({ balance: after }) => formatNumber(after) },
                ]}
              />
              {!isWhole && rows.length > firstRows && (
                <p>
                  <button type="button" class="button" onClick={() => setIsWhole(true)}>
                    Show {formatNumber(rows.length - firstRows)} more
                  </button>
                </p>
              )}
            </>
          )
        }
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
  <Page title="Usage" lead="All accounts.">
    <Usage accountId={null} />
  </Page>
);
