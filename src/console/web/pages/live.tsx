import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { HistoryPoint, HistoryView, LiveView } from '../../contract.js';
import {
  formatBytes,
  formatClock,
  formatMs,
  formatName,
  formatNumber,
  formatPercent,
  formatRatio,
  formatSecond,
  formatSeconds,
  formatUtcDay,
  plural,
} from '../format.js';
import { Page, Waiting } from '../parts/page.js';
import { Plot } from './plot.js';
import { Switch } from '../parts/switch.js';
import { Table } from '../parts/table.js';
import { Tiles } from '../parts/tiles.js';
import { useQuery } from '../route.js';
import { type Live, useHistory, useLive } from '../use-live.js';

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

const list = (counts: Readonly<Record<string, number>>, name = (key: string): string => key): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([key, count]) => `${formatNumber(count)} ${name(key)}`)
    .join(', ');

const ranges = { hour: 'Last hour', day: 'Last day', week: 'Last week' } as const;
type Range = keyof typeof ranges;
const dayMs = 86_400_000;
const rangeMs = { hour: dayMs / 24, day: dayMs, week: 7 * dayMs } as const satisfies Record<Range, number>;

type Values = Exclude<keyof HistoryPoint, 'atMs' | 'seconds'>;

/** Of a point, as its chart draws it. */
const valueAt = (past: HistoryView, name: Values, index: number): number | null => {
  const value = past[name][index] ?? null;
  const seconds = past.seconds[index] ?? 0;
  return value === null || (name !== 'refusals' && name !== 'failures') ? value : value / seconds;
};

interface Chart {
  readonly title: string;
  readonly about: string;
  readonly lines: Readonly<Partial<Record<Values, string>>>;
  readonly colors: readonly string[];
  readonly format: (value: number) => string;
  readonly highestMin: number;
}

const charts: readonly Chart[] = [
  {
    title: 'First audio',
    about: 'Time from a request to its first byte of audio',
    lines: { p50Ms: 'p50', p95Ms: 'p95', p99Ms: 'p99' },
    colors: ['--series-1', '--series-2', '--series-4'],
    format: formatMs,
    highestMin: 20,
  },
  {
    title: 'Streams',
    about: 'Requests and WebSockets that speak',
    lines: { streams: 'Streams' },
    colors: ['--series-1'],
    format: formatNumber,
    highestMin: 4,
  },
  {
    title: 'Capacity in use',
    about: 'Above 100% new speech is refused',
    lines: { capacityRatio: 'Speech needed in time' },
    colors: ['--series-3'],
    format: formatPercent,
    highestMin: 1,
  },
  {
    title: 'Refusals and errors',
    about: 'Of requests and of WebSockets',
    lines: { refusals: 'Refused a second', failures: 'Errors a second' },
    colors: ['--series-2', '--danger'],
    format: (value) => `${formatRatio(value)}/s`,
    highestMin: 0.1,
  },
];

/** A chart shows at least this part of its range. */
const rangeParts = 12;

const ChartView = (props: {
  readonly chart: Chart;
  readonly past: HistoryView;
  readonly range: Range;
  readonly point: number | null;
  readonly onPoint: (index: number | null) => void;
  readonly children?: ComponentChildren;
}) => {
  const { chart, past, point, range } = props;
  const { about, colors, format, highestMin, lines, title } = chart;
  const timesMs = past.atMs.map((ms) => ms ?? 0);
  const shown = point ?? timesMs.length - 1;
  const shownMs = timesMs[shown];
  const formatAt = Date.now() - (shownMs ?? 0) < dayMs ? formatClock : formatSecond;
  const until = shownMs === undefined ? 'No data yet' : `Until ${formatAt(shownMs)}`;
  const series = Object.entries(lines).map(([name, label], index) => {
    const values = timesMs.map((_, at) => valueAt(past, name as Values, at));
    const value = values[shown] ?? null;
    return { label, color: colors[index]!, values, shown: value === null ? '–' : format(value) };
  });
  const summary = series.map(({ label, shown: value, values }) => {
    const most = Math.max(...values.map((one) => one ?? 0), 0);
    return `${label}: ${value}, ${format(most)} at most`;
  });
  const toMs = timesMs.at(-1) ?? Date.now();
  // After a start, what there is fills the chart, but it is not drawn out of measure.
  const firstMs = Math.min(timesMs[0] ?? toMs, toMs - rangeMs[range] / rangeParts);
  return (
    <Plot
      {...{ title, about, timesMs, toMs, series, highestMin, format, point, onPoint: props.onPoint }}
      label={`${title}, ${ranges[range].toLowerCase()}. ${until}. ${summary.join('. ')}.`}
      at={until}
      fromMs={Math.max(firstMs, toMs - rangeMs[range])}
    >
      {props.children}
    </Plot>
  );
};

const states = {
  connecting: { label: 'Connecting', kind: '' },
  connected: { label: 'Live', kind: 'good' },
  lost: { label: 'Connection lost, trying again', kind: 'bad' },
} as const satisfies Record<Live['state'], object>;

const threadNames: Readonly<Record<string, string>> = { synthesis: 'for speech', actor: 'for encoding' };

/** A figure, and a line below it. */
type Tile = (view: LiveView) => readonly [figure: string, below?: string];

const tiles: Readonly<Record<string, Tile>> = {
  Streams: ({ streams }) => [formatNumber(sum(streams)), list(streams)],
  'Capacity in use': ({ capacityRatio }) => [
    formatPercent(capacityRatio),
    capacityRatio >= 1 ? 'New speech is refused' : 'Speech needed in time',
  ],
  'First audio, p50': ({ firstAudioMs }) =>
    firstAudioMs === null
      ? ['–', 'No request in five minutes']
      : [formatMs(firstAudioMs.p50), `p95 ${formatMs(firstAudioMs.p95)}, p99 ${formatMs(firstAudioMs.p99)}`],
  'Late audio': ({ lateChunks }) => [formatNumber(lateChunks), 'Pieces, since the service started'],
  WebSockets: ({ contexts, sockets }) => [formatNumber(sockets), plural(contexts, 'context')],
  'Audio waiting': ({ bufferedAudioMs }) => [`${formatSeconds(bufferedAudioMs)} s`, 'Not sent yet'],
  'Event loop delay, p50': ({ eventLoopDelayMs: { p50, p99 } }) => [formatMs(p50), `p99 ${formatMs(p99)}`],
  Memory: ({ memoryBytes }) => [formatBytes(memoryBytes)],
  Threads: ({ threadRestarts, threads }) => [
    formatNumber(sum(threads)),
    `${list(threads, (name) => threadNames[name] ?? name)}, ${plural(sum(threadRestarts), 'restart')}`,
  ],
  'Voice ids': ({ generations: { current, olderContexts }, voices }) => [
    formatNumber(voices),
    olderContexts === 0
      ? plural(current - 1, 'reload')
      : `${plural(olderContexts, 'stream')} on voices before the reload`,
  ],
};

const figuresOf = (view: LiveView) =>
  Object.entries(tiles).map(([name, read]) => {
    const [figure, below = ''] = read(view);
    return [name, [figure, <span class="below">{below || '\u00a0'}</span>]] as const;
  });

/** The days, the newest first: their figures are numbers, where the charts show lines. */
const Days = ({ past }: { readonly past: HistoryView }) => {
  const today = Math.floor(Date.now() / dayMs);
  const rows = past.atMs
    .map((atMs, index) => ({ index, day: Math.floor(((atMs ?? 0) - 1) / dayMs) }))
    .filter(({ index }) => past.seconds[index] !== null)
    .reverse();
  // From the start: what follows must not move when the first figures come.
  if (rows[0]?.day !== today) rows.unshift({ index: -1, day: today });
  const column = (label: string, name: Values, format = formatNumber) => ({
    label,
    isNumber: true,
    cell: ({ index }: { readonly index: number }) => {
      const value = past[name][index] ?? null;
      return value === null ? '–' : format(value);
    },
  });
  return (
    <section>
      <h2>By day, in UTC</h2>
      <Table
        caption="Figures of each day"
        rows={rows}
        rowsMax={2}
        rowKey={({ day }) => day}
        columns={[
          {
            label: 'Day',
            cell: ({ day }) =>
              day === today ? 'Today' : day === today - 1 ? 'Yesterday' : formatUtcDay(day * dayMs),
          },
          column('First audio, p50', 'p50Ms', formatMs),
          column('p95', 'p95Ms', formatMs),
          column('p99', 'p99Ms', formatMs),
          column('Requests', 'requests'),
          column('Refused', 'refusals'),
          column('Errors', 'failures'),
          column('Most streams', 'streams'),
        ]}
      />
    </section>
  );
};

export const LivePage = () => {
  const [range, setRange] = useQuery<Range>('range', 'hour', Object.keys(ranges) as Range[]);
  const live = useLive();
  const past = useHistory(range, live);
  const days = useHistory('days', live);
  // Until the answer for another range is there, the page stays as it is.
  const last = useRef<{ readonly past: HistoryView; readonly range: Range } | null>(null);
  if (past !== undefined) last.current = { past, range };
  const shown = last.current;
  // Under the pointer, in all charts.
  const [point, setPoint] = useState<number | null>(null);
  const { state, view } = live;
  const { label, kind } = states[state];
  const refusals = list(view?.refusals ?? {}, (reason) => formatName(reason).toLowerCase());
  return (
    <Page
      title="Live"
      lead="What the service does now, and what it did in the last hour, day and week."
      actions={
        <>
          <Switch
            name="range"
            label="Range of the charts"
            options={ranges}
            value={range}
            onChange={setRange}
          />
          <span class={`badge ${kind}`} role="status">
            {label}
          </span>
        </>
      }
    >
      {view?.ready === false && (
        <div class="notice bad">
          Not ready: {view.reasons.join(', ')}. Load balancers send no requests here.
        </div>
      )}
      {view !== null && view.warnings.length > 0 && <div class="notice warn">{view.warnings.join(', ')}</div>}
      {shown === null || days === undefined || view === null ? (
        <Waiting />
      ) : (
        <>
          <Tiles figures={figuresOf(view)} />
          <Days past={days} />
          <div class="cells charts">
            {charts.map((chart) => (
              <ChartView key={chart.title} chart={chart} {...shown} point={point} onPoint={setPoint}>
                {'refusals' in chart.lines && (
                  <p class="small muted">
                    {refusals === '' ? (
                      'Nothing was refused since the service started.'
                    ) : (
                      <>
                        All since the service started: {refusals}.{' '}
                        <a href="/requests?status=refused">Refused requests</a>
                      </>
                    )}
                  </p>
                )}
              </ChartView>
            ))}
          </div>
        </>
      )}
    </Page>
  );
};
