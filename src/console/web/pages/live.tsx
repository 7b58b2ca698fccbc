import type { ComponentChildren } from 'preact';
import type { LiveView } from '../../contract.js';
import {
  formatBytes,
  formatName,
  formatNumber,
  formatPercent,
  formatSecond,
  formatSeconds,
  plural,
} from '../format.js';
import { Empty, Page, Time, Waiting } from '../parts/page.js';
import { Sparkline } from '../parts/sparkline.js';
import { Table } from '../parts/table.js';
import { historyMax, useLive, type Live } from '../use-live.js';

const Tile = (props: {
  readonly label: string;
  readonly below?: string;
  readonly history?: readonly number[];
  readonly children: ComponentChildren;
}) => {
  // A space keeps the height of a tile without a text.
  const { below = '' } = props;
  return (
    <div class="card">
      <dt>{props.label}</dt>
      <dd>
        {props.children}
        <span class="below">{below === '' ? '\u00a0' : below}</span>
      </dd>
      {props.history !== undefined && <Sparkline values={props.history} length={historyMax} />}
    </div>
  );
};

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

const milliseconds = (ms: number): string => `${formatNumber(Math.round(ms))} ms`;

const Counts = (props: {
  readonly title: string;
  readonly label: string;
  readonly empty: string;
  readonly counts: Readonly<Record<string, number>>;
}) => {
  const rows = Object.entries(props.counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  return (
    <section>
      <h2>{props.title}</h2>
      {rows.length === 0 ? (
        <p class="muted">{props.empty}</p>
      ) : (
        <Table
          caption={props.title}
          isNarrow
          rows={rows}
          rowKey={([name]) => name}
          columns={[
            { label: props.label, cell: ([name]) => formatName(name) },
            { label: 'Count', isNumber: true, cell: ([, count]) => formatNumber(count) },
          ]}
        />
      )}
    </section>
  );
};

const states = {
  connecting: { label: 'Connecting', kind: '' },
  connected: { label: 'Live', kind: 'good' },
  lost: { label: 'Connection lost, trying again', kind: 'bad' },
} as const satisfies Record<Live['state'], object>;

const Figures = ({ view, views }: { readonly view: LiveView; readonly views: readonly LiveView[] }) => {
  const { firstAudioMs, generations } = view;
  return (
    <>
      {!view.ready && (
        <div class="notice bad">
          Not ready: {view.reasons.join(', ')}. Load balancers send no requests here.
        </div>
      )}
      {view.warnings.length > 0 && <div class="notice warn">{view.warnings.join(', ')}</div>}
      <dl class="cells tiles">
        <Tile
          label="Streams"
          below={Object.entries(view.streams)
            .filter(([, count]) => count > 0)
            .map(([route, count]) => `${formatNumber(count)} ${route}`)
            .join(', ')}
          history={views.map(({ streams }) => sum(streams))}
        >
          {formatNumber(sum(view.streams))}
        </Tile>
        <Tile
          label="Speech needed in time"
          below={view.capacityRatio >= 1 ? 'New speech is refused' : ''}
          history={views.map(({ capacityRatio }) => capacityRatio)}
        >
          {formatPercent(view.capacityRatio)}
        </Tile>
        <Tile
          label="First audio, p50"
          below={
            firstAudioMs === null
              ? 'No request in five minutes'
              : `p95 ${milliseconds(firstAudioMs.p95)}, p99 ${milliseconds(firstAudioMs.p99)}`
          }
          history={views.map((past) => past.firstAudioMs?.p50 ?? 0)}
        >
          {firstAudioMs === null ? '–' : milliseconds(firstAudioMs.p50)}
        </Tile>
        <Tile label="Memory" history={views.map(({ memoryBytes }) => memoryBytes)}>
          {formatBytes(view.memoryBytes)}
        </Tile>
        <Tile label="WebSockets" below={plural(view.contexts, 'context')}>
          {formatNumber(view.sockets)}
        </Tile>
        <Tile label="Late chunks" below="Since the start">
          {formatNumber(view.lateChunks)}
        </Tile>
        <Tile label="Audio waiting" below="Seconds, not sent yet">
          {formatSeconds(view.bufferedAudioMs)}
        </Tile>
        <Tile label="Event loop delay, p50" below={`p99 ${milliseconds(view.eventLoopDelayMs.p99)}`}>
          {milliseconds(view.eventLoopDelayMs.p50)}
        </Tile>
        <Tile
          label="Voices"
          below={
            generations.olderContexts === 0
              ? `Generation ${formatNumber(generations.current)}`
              : `Generation ${formatNumber(generations.current)}, ${plural(generations.olderContexts, 'context')} on older ones`
          }
        >
          {formatNumber(view.voices)}
        </Tile>
        <Tile label="Threads" below={plural(sum(view.threadRestarts), 'restart')}>
          {formatNumber(sum(view.threads))}
        </Tile>
      </dl>
      <div class="cells">
        <Counts
          title="Refused since the start"
          label="Reason"
          empty="Nothing was refused."
          counts={view.refusals}
        />
        <Counts title="Threads" label="Kind" empty="No thread is running." counts={view.threads} />
      </div>
      <section>
        <h2>Last refusals</h2>
        {view.recentRefusals.length === 0 ? (
          <Empty title="No refusals">
            The last hundred requests that were refused appear here, with the reason.
          </Empty>
        ) : (
          <Table
            caption="Last refusals, the newest first"
            rows={view.recentRefusals.map((refusal, index) => ({ ...refusal, index }))}
            rowKey={({ index }) => index}
            columns={[
              { label: 'Reason', cell: ({ reason }) => formatName(reason) },
              { label: 'Route', cell: ({ route }) => <code>{route}</code> },
              { label: 'Time', cell: ({ atMs }) => <Time ms={atMs} format={formatSecond} /> },
            ]}
          />
        )}
      </section>
    </>
  );
};

export const LivePage = () => {
  const { views, state } = useLive();
  const view = views.at(-1);
  const { label, kind } = states[state];
  return (
    <Page
      title="Live"
      lead="What the service is doing now."
      actions={
        <span class={`badge ${kind}`} role="status">
          {label}
        </span>
      }
    >
      {view === undefined ? <Waiting /> : <Figures view={view} views={views} />}
    </Page>
  );
};
