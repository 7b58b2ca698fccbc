import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
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
import { PlotFigure } from './plot-figure.js';
import type { Plot, PlotValues } from './plots.js';
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
const spanSeconds = { hour: 3_600, day: 86_400, week: 7 * 86_400 } as const satisfies Record<Range, number>;

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

const ChartView = (props: {
  readonly chart: Chart;
  readonly past: HistoryView;
  readonly range: Range;
  readonly children?: ComponentChildren;
}) => {
  const { chart, past, range } = props;
  const plot = useRef<Plot | null>(null);
  const [point, setPoint] = useState<number | null>(null);
  const names = Object.keys(chart.lines) as Values[];
  const data = useMemo(() => {
    const values = names.map((name) => past.atMs.map((_, index) => valueAt(past, name, index)));
    return [past.atMs.map((ms) => (ms ?? 0) / 1_000), ...values] satisfies PlotValues;
  }, [past]);
  const newest = useRef(data);
  newest.current = data;
  useEffect(() => plot.current?.set(data), [data]);
  const shown = point ?? past.atMs.length - 1;
  const atMs = past.atMs[shown];
  const format = Date.now() - (atMs ?? 0) < dayMs ? formatClock : formatSecond;
  const until = typeof atMs === 'number' ? `Until ${format(atMs)}` : 'No data yet';
  const legend = names.map((name, index) => {
    const value = valueAt(past, name, shown);
    return [
      chart.lines[name] ?? '',
      chart.colors[index] ?? '',
      value === null ? '–' : chart.format(value),
    ] as const;
  });
  const most = (index: number): number => Math.max(...data[index + 1]!.map((value) => value ?? 0), 0);
  const summary = legend.map(
    ([name, , value], index) => `${name}: ${value}, ${chart.format(most(index))} at most`,
  );
  return (
    <PlotFigure
      title={chart.title}
      about={chart.about}
      label={`${chart.title}, ${ranges[range].toLowerCase()}. ${until}. ${summary.join('. ')}.`}
      legend={legend}
      at={until}
      of={range}
      draw={({ drawLines }, box) => {
        const options = { ...chart, spanSeconds: spanSeconds[range], onPoint: setPoint };
        const made = drawLines(box, newest.current, options);
        plot.current = made;
        return () => {
          made.close();
          plot.current = null;
        };
      }}
    >
      {props.children}
    </PlotFigure>
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
  // The calls are on their way: meanwhile the browser reads the code of the charts. A failure is shown by each chart.
  useLayoutEffect(() => void import('./plots.js').catch(() => undefined), []);
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
              <ChartView key={chart.title} chart={chart} {...shown}>
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
