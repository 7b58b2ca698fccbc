/** The Grafana dashboard of scripts/deploy/prometheus: a panel for each metric of the table, in sections. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Metrics, type CatalogueEntry } from '../src/metrics.js';
import { program, runIfMain } from './command.js';

const usage = `Usage: npm run dashboard

Writes scripts/deploy/prometheus/dashboard.json, the dashboard for Grafana, from the table of metrics. Run it after a change of
that table.
`;

/** The titles of the panels, by section and metric. */
const sections: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'What listeners get': {
    syrinx_ready: 'Ready',
    syrinx_speech_seconds_total: 'Speech: listeners at once, by encoding',
    syrinx_capacity_ratio: 'Capacity in use',
    syrinx_first_audio_seconds: 'First byte of audio',
    syrinx_first_decoded_seconds: 'First decoded sample',
    syrinx_first_audible_seconds: 'First audible sample',
    syrinx_underruns_total: 'Gaps that listeners heard, a second',
    syrinx_playback_lag_seconds: 'Lateness of a chunk of audio',
    syrinx_queue_wait_seconds: 'Wait for a synthesis thread',
  },
  'Requests and faults': {
    syrinx_requests_total: 'Requests a second',
    syrinx_refusals_total: 'Refusals a second, by reason',
    syrinx_failures_total: 'Failures a second',
    syrinx_streams: 'Speaking requests and WebSockets',
    syrinx_sockets: 'Open WebSockets',
    syrinx_contexts: 'Open contexts',
    syrinx_read_later_seconds: 'Wait to be read, of keys that send much',
    syrinx_log_lines_lost_total: 'Lost log lines a second',
    syrinx_event_loop_delay_seconds: 'Delay of the front thread',
  },
  'Synthesis and voices': {
    syrinx_synthesis_seconds_total: 'Cores that speech uses',
    syrinx_free_cores: 'Cores that others leave',
    syrinx_real_time_factor: 'Compute time of a second of speech',
    syrinx_speech_cpu_ratio: 'The same as admission counts it, by voice',
    syrinx_voice_packs_loaded: 'Loaded voice packs',
    syrinx_voice_packs_refused: 'Voice packs that cannot be used',
    syrinx_voice_pack_loads_total: 'Loads on demand, a second',
    syrinx_voice_pack_load_seconds_total: 'Time in loads on demand',
    syrinx_older_voice_contexts: 'Contexts with voices from before a reload',
    syrinx_thread_restarts_total: 'Threads that died, a second',
    syrinx_hung_threads: 'Threads that hang',
    syrinx_gpu_lost: 'GPU lost',
  },
  'Store, memory and process': {
    syrinx_ledger_entries_queued: 'Ledger entries that are not durable',
    syrinx_ledger_entries_refused_total: 'Refused ledger entries a second',
    syrinx_buffered_bytes: 'Bytes that wait for sockets',
    syrinx_buffered_audio_seconds: 'Audio that waits for sockets',
    syrinx_pss_bytes: 'Memory in use',
    process_resident_memory_bytes: 'Resident memory',
    nodejs_heap_size_used_bytes: 'Heap of the front thread',
    process_cpu_seconds_total: 'Cores in use',
    process_open_fds: 'Open files',
    process_max_fds: 'Limit of open files',
    process_start_time_seconds: 'Start of the process',
    syrinx_build_info: 'Version',
  },
};

const datasource = { type: 'prometheus', uid: '${datasource}' };
const quantiles = [0.5, 0.95, 0.99];

/** The queries of a metric, each with its legend. */
const queriesOf = ({ name, type, labelNames }: CatalogueEntry): readonly (readonly [string, string])[] => {
  const route = labelNames.includes('route') ? ', route=~"$route"' : '';
  const selector = `{job=~"$job", instance=~"$instance"${route}}`;
  const legend = labelNames.map((label) => `{{${label}}}`).join(' ');
  switch (type) {
    case 'histogram':
      return quantiles.map((quantile) => [
        `histogram_quantile(${quantile}, sum by (le) (rate(${name}_bucket${selector}[$__rate_interval])))`,
        `p${quantile * 100}`,
      ]);
    case 'counter': {
      const by = labelNames.length === 0 ? 'instance' : labelNames.join(', ');
      return [[`sum by (${by}) (rate(${name}${selector}[$__rate_interval]))`, legend || '{{instance}}']];
    }
    case 'gauge':
      return [[`${name}${selector}`, `{{instance}} ${legend}`.trim()]];
  }
};

/** In Grafana's terms. A rate of seconds has none. */
const unitOf = ({ name, type }: CatalogueEntry): string => {
  if (name === 'process_start_time_seconds') return 'dateTimeFromNow';
  if (type !== 'counter' && name.endsWith('_seconds')) return 's';
  return name.endsWith('_bytes') ? 'bytes' : 'short';
};

const columns = 3;
const panelWidth = 8;
const panelHeight = 7;

const panel = (metric: CatalogueEntry, title: string, id: number, x: number, y: number) => ({
  ...{ id, type: 'timeseries', title, description: `${metric.help}\n\n${metric.name}`, datasource },
  gridPos: { x, y, w: panelWidth, h: panelHeight },
  fieldConfig: {
    defaults: {
      unit: unitOf(metric),
      ...(metric.name === 'process_start_time_seconds' ? { decimals: 1 } : { min: 0 }),
      custom: { fillOpacity: 10, showPoints: 'never' },
    },
    overrides: [],
  },
  options: {
    legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  targets: queriesOf(metric).map(([expr, legendFormat], i) => ({
    ...{ refId: String.fromCharCode(65 + i), datasource, expr, legendFormat },
  })),
});

const panelsOf = (metrics: ReadonlyMap<string, CatalogueEntry>) => {
  let id = 0;
  let y = 0;
  return Object.entries(sections).flatMap(([title, titles]) => {
    const row = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    };
    y += 1;
    const top = y;
    const panels = Object.entries(titles).map(([name, panelTitle], i) => {
      const metric = metrics.get(name);
      if (metric === undefined) throw new Error(`the dashboard has ${name}, which is no metric`);
      y = top + Math.floor(i / columns) * panelHeight;
      return panel(metric, panelTitle, ++id, (i % columns) * panelWidth, y);
    });
    y += panelHeight;
    return [row, ...panels];
  });
};

const variable = (name: string, label: string, query: string) => ({
  ...{ name, label, type: 'query', datasource, query: { query, refId: name } },
  ...{ includeAll: true, multi: true, allValue: '.*', current: { text: 'All', value: '$__all' } },
  ...{ refresh: 2, sort: 1, hide: 0, options: [], regex: '' },
});

/** @throws if it does not have each metric of the table */
export const dashboard = (): string => {
  const metrics = new Map(new Metrics().catalogue.map((metric) => [metric.name, metric]));
  const shown = new Set(Object.values(sections).flatMap((titles) => Object.keys(titles)));
  const missing = [...metrics.keys()].filter((name) => !shown.has(name));
  if (missing.length > 0) throw new Error(`the dashboard lacks ${missing.join(', ')}`);
  const document = {
    ...{ uid: 'syrinx', title: 'Syrinx', tags: ['syrinx'], editable: true, graphTooltip: 1 },
    ...{ schemaVersion: 39, version: 1, timezone: 'browser', refresh: '30s' },
    time: { from: 'now-1h', to: 'now' },
    annotations: { list: [] },
    links: [],
    templating: {
      list: [
        {
          ...{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
          ...{ includeAll: false, multi: false, refresh: 1, hide: 0, options: [], regex: '' },
        },
        variable('job', 'Job', 'label_values(syrinx_build_info, job)'),
        variable('instance', 'Host', 'label_values(syrinx_build_info{job=~"$job"}, instance)'),
        variable('route', 'Route', 'label_values(syrinx_requests_total{job=~"$job"}, route)'),
      ],
    },
    panels: panelsOf(metrics),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
};

export const dashboardPath = fileURLToPath(
  new URL('../../scripts/deploy/prometheus/dashboard.json', import.meta.url),
);

export const dashboardProgram = program('dashboard', usage, {
  options: [],
  run: (_, { out }) => {
    writeFileSync(dashboardPath, dashboard());
    out(`${dashboardPath}\n`);
  },
});

await runIfMain(import.meta.url, dashboardProgram);
