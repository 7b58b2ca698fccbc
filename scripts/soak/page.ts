/** The report of a soak as one page without other files: it contains uPlot and the figures. */
import type { Machine } from '../rig/machine.js';
import { verdictOf, type Invariant } from './invariants.js';
import type { AtRest, Fault, Step } from './measures.js';
import { chartScript, pageStyle } from './page-assets.js';
import type { Calibrated } from './phases.js';

/** `soak.json`; the page shows it. */
export interface SoakReport {
  readonly startedAt: string;
  readonly version: string;
  readonly machine: Machine;
  readonly settings: {
    readonly minutes: number;
    readonly sockets: number;
    readonly contexts: number;
    readonly calibrated: Calibrated | null;
    readonly streams: number;
    readonly seed: number;
    /** `null`: the soak started the service. */
    readonly url: string | null;
  };
  readonly endedEarly: boolean;
  readonly measuredMs: number;
  readonly warmUpMs: number;
  readonly passed: boolean;
  readonly summary: Readonly<Record<string, number | null>>;
  readonly invariants: readonly Invariant[];
  readonly faults: readonly Fault[];
  readonly rests: readonly AtRest[];
  readonly series: readonly Step[];
}

interface ChartLine {
  readonly name: string;
  /** A colour of the page's style. */
  readonly color: 1 | 2 | 3 | 4 | 5 | 6;
  /** One per step; `null`: unknown. */
  readonly values: readonly (number | null)[];
}

interface Chart {
  readonly title: string;
  readonly unit: string;
  /** By default its scale begins at zero. */
  readonly fromZero?: boolean;
  readonly bars?: boolean;
  readonly lines: readonly ChartLine[];
}

/** The published code of uPlot. */
export interface PageAssets {
  readonly script: string;
  readonly style: string;
}

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => `&#${String(sign.charCodeAt(0))};`);

const number = (value: number | null | undefined, digits = 0): string =>
  value === null || value === undefined
    ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const mebi = (bytes: number | null): number | null => (bytes === null ? null : bytes / 2 ** 20);

/** Counts of underruns and faults begin at zero with each phase; a chart shows what each step added. */
const added = (steps: readonly Step[], pick: (step: Step) => number | null): (number | null)[] =>
  steps.map((step, i) => {
    const [before, now] = [i === 0 ? 0 : pick(steps[i - 1]!), pick(step)];
    if (before === null || now === null) return null;
    return now >= before ? now - before : now;
  });

const chartsOf = (steps: readonly Step[]): Chart[] => {
  const of = (pick: (step: Step) => number | null) => steps.map(pick);
  return [
    {
      title: 'First audio',
      unit: 'ms',
      lines: [
        { name: 'p50', color: 1, values: of(({ firstAudioMs }) => firstAudioMs?.p50 ?? null) },
        { name: 'p95', color: 2, values: of(({ firstAudioMs }) => firstAudioMs?.p95 ?? null) },
        { name: 'p99', color: 3, values: of(({ firstAudioMs }) => firstAudioMs?.p99 ?? null) },
      ],
    },
    {
      title: 'Memory of the service',
      unit: 'MiB',
      fromZero: false,
      lines: [
        { name: 'PSS', color: 1, values: of(({ pssBytes }) => mebi(pssBytes)) },
        { name: 'RSS', color: 2, values: of(({ rssBytes }) => mebi(rssBytes)) },
      ],
    },
    {
      title: 'Heap of the front thread, and what waits for sockets',
      unit: 'MiB',
      lines: [
        { name: 'heap', color: 1, values: of(({ frontHeapBytes }) => mebi(frontHeapBytes)) },
        { name: 'buffered', color: 2, values: of(({ bufferedBytes }) => mebi(bufferedBytes)) },
      ],
    },
    {
      title: 'Delay: event loop of the front thread, its answer to /healthz, the load’s own loop',
      unit: 'ms',
      lines: [
        { name: 'event loop p99', color: 1, values: of(({ loopDelayP99Ms }) => loopDelayP99Ms) },
        { name: '/healthz p99', color: 2, values: of(({ probeP99Ms }) => probeP99Ms) },
        { name: 'load p99', color: 4, values: of(({ loadLateP99Ms }) => loadLateP99Ms) },
      ],
    },
    {
      title: 'Underruns and faults, each step',
      unit: '',
      bars: true,
      lines: [
        { name: 'underruns', color: 3, values: added(steps, ({ underruns }) => underruns) },
        { name: 'unjudged (load late)', color: 4, values: added(steps, ({ unjudged }) => unjudged) },
        {
          name: 'lag, as the service counts it',
          color: 2,
          values: added(steps, (step) => step.serviceUnderruns),
        },
        { name: 'faults', color: 1, values: added(steps, ({ faults }) => faults) },
      ],
    },
    {
      title: 'Streams, and seconds of speech a second',
      unit: '',
      lines: [
        { name: 'streams', color: 1, values: of(({ streams }) => streams) },
        { name: 'speech', color: 2, values: of(({ speechPerSecond }) => speechPerSecond) },
      ],
    },
    {
      title: 'WebSockets that are open',
      unit: '',
      fromZero: false,
      lines: [{ name: 'sockets', color: 1, values: of(({ sockets }) => sockets) }],
    },
    {
      title: 'CPU',
      unit: 'cores',
      lines: [
        { name: 'synthesis', color: 1, values: of(({ cpu }) => cpu?.synthesis ?? null) },
        { name: 'actors', color: 2, values: of(({ cpu }) => cpu?.actor ?? null) },
        { name: 'front', color: 3, values: of(({ cpu }) => cpu?.front ?? null) },
        { name: 'other', color: 5, values: of(({ cpu }) => cpu?.other ?? null) },
        { name: 'load', color: 4, values: of(({ loadCpu }) => loadCpu) },
        { name: 'other programs', color: 6, values: of(({ othersCpu }) => othersCpu) },
      ],
    },
  ];
};

const tile = (name: string, value: string, note = ''): string =>
  `<div class="tile"><span>${escape(name)}</span><b>${escape(value)}</b><small>${escape(note)}</small></div>`;

const tilesOf = ({ settings, summary, measuredMs, warmUpMs }: SoakReport): string => {
  const { calibrated } = settings;
  const slopeOf = (kind: string) =>
    `${number(summary[`${kind}SlopeMBPerHour`], 2)} ± ${number(summary[`${kind}SlopeStandardErrorMBPerHour`], 2)} MB/h`;
  return [
    tile(
      'Measured',
      `${number(measuredMs / 60_000, 1)} min`,
      `after ${number(warmUpMs / 60_000, 1)} min of warm-up, which counts in all sums; seed ${settings.seed}`,
    ),
    tile('Idle WebSockets', number(settings.sockets), 'with a context opened and closed now and then'),
    tile(
      'Streaming clients',
      number(settings.contexts),
      calibrated === null
        ? 'as asked for'
        : `${number(calibrated.share * 100)} % of ${number(calibrated.held)} that the machine could serve`,
    ),
    tile('Clients over HTTP', number(settings.streams), `${number(summary['httpRequests'])} requests`),
    tile(
      'Speech heard',
      `${number(summary['audioHours'], 2)} h`,
      `${number(summary['speechSecondsPerSecond'], 1)} s a second, ${number(summary['replies'])} replies`,
    ),
    tile(
      'First audio, p50',
      `${number(summary['firstAudioP50Ms'], 1)} ms`,
      `p95 ${number(summary['firstAudioP95Ms'], 1)} ms, p99 ${number(summary['firstAudioP99Ms'], 1)} ms`,
    ),
    tile(
      'Underruns',
      number(summary['underruns']),
      `${number(summary['underrunsUnjudged'])} unjudged: the load was late`,
    ),
    summary['pssAtRestSlopeMBPerHour'] === null
      ? tile('Memory slope', slopeOf('pss'), 'after the warm-up')
      : tile(
          'Memory slope, at rest',
          slopeOf('pssAtRest'),
          `under load ${slopeOf('pss')}, after the warm-up`,
        ),
    tile(
      'CPU of the service',
      `${number(summary['serviceCpuCores'], 2)} cores`,
      `front ${number(summary['frontCpuCores'], 2)}; the load ${number(summary['loadCpuCores'], 2)}, other programs ${number(summary['othersCpuCores'], 2)}`,
    ),
  ].join('');
};

const verdicts = { kept: 'kept', broken: 'broken', unjudged: 'not judged' } as const;
const markOf = ({ passed }: Invariant): keyof typeof verdicts =>
  passed === null ? 'unjudged' : passed ? 'kept' : 'broken';

const rowOf = (invariant: Invariant): string => {
  const verdict = markOf(invariant);
  const examples =
    invariant.passed === false && invariant.examples.length > 0
      ? `<ul>${invariant.examples.map((line) => `<li>${escape(line)}</li>`).join('')}</ul>`
      : '';
  return `<tr class="${verdict}"><td><span class="verdict">${verdicts[verdict]}</span></td><td>${escape(invariant.what)}</td><td>${escape(invariant.found)}${examples}</td></tr>`;
};

/** The text must not end the script element. */
const asScript = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

export const renderPage = (report: SoakReport, assets: PageAssets): string => {
  const { endedEarly, invariants, machine, passed, series, startedAt, version } = report;
  const seconds = series.map(({ atMs }) => atMs / 1000);
  const marks = (['warm-up', 'measured'] as const).flatMap((name) => {
    const first = series.find(({ phase }) => phase === name);
    return first === undefined ? [] : [{ at: first.atMs / 1000, name }];
  });
  const data = {
    seconds,
    charts: chartsOf(series),
    marks,
  };
  const verdict = verdictOf(invariants);
  const early = endedEarly ? ' · ended early' : '';
  const where = `${machine.processor}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Soak of ${escape(startedAt.slice(0, 16).replace('T', ' '))}</title>
<style>${assets.style}</style>
<style>${pageStyle}</style>
</head>
<body>
<header>
<h1>Soak of syrinx ${escape(version)}</h1>
<p class="${passed ? 'kept' : 'broken'}"><span class="verdict">${escape(verdict)}</span>${early}</p>
<p>${escape(startedAt.slice(0, 16).replace('T', ' '))} UTC · ${escape(where)}</p>
</header>
<section class="tiles">${tilesOf(report)}</section>
<section><h2>Invariants</h2>
<table><thead><tr><th></th><th>Invariant</th><th>Found</th></tr></thead>
<tbody>${invariants.map(rowOf).join('\n')}</tbody></table></section>
<section><h2>Over time</h2>
<p class="note">Minutes since the load began; the lines mark where warm-up and measuring begin. Drag across a chart to look closer,
double-click to see everything.</p>
<div id="charts"></div></section>
<script>${assets.script}</script>
<script>const report = ${asScript(data)};
${chartScript}</script>
</body>
</html>
`;
};
