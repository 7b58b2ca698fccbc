/** The invariants of a soak, and whether they held. */
import { percentile } from '../rig/statistics.js';
import {
  faultKinds,
  type AtRest,
  type Charges,
  type Fault,
  type LoadTick,
  type Quantiles,
  type Step,
} from './measures.js';
import { judgeMemory } from './memory.js';
import { minutesToJudgeMemory } from './phases.js';

export const bars = {
  firstAudioP99Ms: 200,
  /** Of the chunks with a listener; the operator's alert has the same bar. */
  lateChunkShare: 0.001,
  /** From capacity on: of the admitted replies, and of the chunks. */
  overloadShare: 0.02,
  /** Of the front thread, in 19 of 20 steps. */
  loopDelayP99Ms: 100,
  /** Of the replies: from there on, the others show too little. */
  disturbedShare: 0.4,
  /** Of `GET /healthz`, client included. */
  probeP99Ms: 250,
  /** More than at the start: pools grow to their size with the first use. */
  moreFiles: 4,
  moreThreads: 4,
} as const;

export interface Invariant {
  /** The page of the soak says what each means. */
  readonly name: string;
  /** `null`: not judged, for the reason in `found`. */
  readonly passed: boolean | null;
  readonly found: string;
  /** The first occurrences of what broke it. */
  readonly examples: readonly string[];
}

/** `null`: not known. */
export type Handles = { readonly files: number; readonly threads: number } | null;

/** What the service still has when all clients have left; `null`: not known. */
export type Leftovers = Readonly<Record<string, number | null>>;

export interface StoreFindings {
  /** Characters charged by key, or why they cannot be read. */
  readonly ledger: ReadonlyMap<string, number> | Error;
  /** Entries of a store without a fault, or what is wrong with it. */
  readonly entries: number | Error;
}

export interface ServiceEnd {
  /** The exit code or signal of the service, of several the first bad one; `null`: it runs elsewhere. */
  readonly end: string | null;
  /** `null`: the store is elsewhere. */
  readonly store: StoreFindings | null;
}

export interface LogFindings {
  readonly errors: number;
  readonly drops: number;
  readonly kept: readonly string[];
}

export interface Findings extends ServiceEnd {
  /** What the clients counted in the warm-up and while measuring. */
  readonly counts: Omit<LoadTick, 'loopLateMs' | 'cpuMs'>;
  readonly faults: readonly Fault[];
  /** Of the capacity; `null`: no part of it was asked for, and nothing may be refused. */
  readonly load: number | null;
  /** Hosts were restarted. */
  readonly hosts: boolean;
  /** After the warm-up, without rests. */
  readonly steps: readonly Step[];
  /** After the warm-up; none in a short soak, or where the service runs elsewhere. */
  readonly rests: readonly AtRest[];
  /** The soak is long enough, and the memory of the process can be read. */
  readonly isMemoryJudged: boolean;
  readonly answers: {
    readonly asked: number;
    readonly missed: number;
    readonly faults: readonly string[];
    readonly probes: Pick<Quantiles, 'count' | 'max' | 'p50' | 'p99'>;
  };
  readonly log: LogFindings | null;
  /** In the soak; `null`: unknown. */
  readonly threadRestarts: number | null;
  readonly atStart: Handles;
  readonly atEnd: Handles;
  readonly leftovers: Leftovers | null;
  readonly charges: Charges;
}

const count = (value: number): string => value.toLocaleString('en');
const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

const judged = (
  name: string,
  passed: boolean | null,
  found: string,
  examples: readonly string[] = [],
): Invariant => ({ name, passed, found, examples });

const examplesOf = ({ faults }: Findings, kind: Fault['kind']): string[] =>
  faults
    .filter((fault) => fault.kind === kind)
    .map(({ atMs, where, what }) => `${(atMs / 1000).toFixed(1)} s, ${where}: ${what}`);

const ofFaults = (findings: Findings): Invariant[] =>
  faultKinds.map((kind) => {
    const broken = findings.counts.faults[kind];
    return judged(kind, broken === 0, `${count(broken)} faults`, examplesOf(findings, kind));
  });

const restarts = ({ counts: { cut, faults, moved } }: Findings): Invariant => {
  const found = `${count(moved)} closed, ${count(cut)} of them in speech`;
  return judged('restarts', moved === 0 ? null : faults.sockets === 0, found);
};

const isOverloaded = ({ load }: Findings): boolean => load !== null && load >= 1;

const listening = (findings: Findings): Invariant[] => {
  const { disturbed, firstAudioMs, heard, refusals, spoilt, underruns, unjudged } = findings.counts;
  const examples = examplesOf(findings, 'underruns');
  const waits = `p50 ${ms(firstAudioMs.p50)}, p99 ${ms(firstAudioMs.p99)}`;
  const refused = `${count(refusals)} refused`;
  if (isOverloaded(findings)) {
    const found = `${count(spoilt)} of ${count(heard)} replies, first audio ${waits}; ${refused}`;
    return [judged('overload', heard === 0 ? null : spoilt <= bars.overloadShare * heard, found, examples)];
  }
  const aside = unjudged === 0 ? '' : `; ${count(unjudged)} more while the load was late or a host started`;
  const others = disturbed === 0 ? '' : `; ${count(disturbed)} more while a host started`;
  const isKnown = firstAudioMs.count > 0 && disturbed <= bars.disturbedShare * heard;
  return [
    judged('underruns', underruns === 0, `${count(underruns)} underruns${aside}`, examples),
    judged(
      'first-audio',
      isKnown ? firstAudioMs.p99 <= bars.firstAudioP99Ms : null,
      `${waits} of ${count(firstAudioMs.count)} replies${others}`,
    ),
    ...(findings.load === null ? [] : [judged('refusals', refusals === 0, refused)]),
  ];
};

/** The metric behind the operator's alert must agree with what the listeners heard. */
const ownCount = (findings: Findings): Invariant => {
  const share = isOverloaded(findings) ? bars.overloadShare : bars.lateChunkShare;
  const grown = (name: 'serviceUnderruns' | 'serviceChunks'): number => {
    const known = findings.steps.map((step) => step[name]).filter((value) => value !== null);
    return (known.at(-1) ?? 0) - (known[0] ?? 0);
  };
  const [late, chunks] = [grown('serviceUnderruns'), grown('serviceChunks')];
  const found = `${count(late)} of ${count(chunks)} chunks`;
  return judged('own-count', chunks === 0 ? null : late <= share * chunks, found);
};

const responsive = ({ steps, answers }: Findings): Invariant[] => {
  const { asked, faults, missed, probes } = answers;
  const delays = steps.map(({ loopDelayP99Ms }) => loopDelayP99Ms).filter((delay) => delay !== null);
  const delayMs = delays.length === 0 ? null : percentile(delays, 0.95);
  const waits = `p50 ${ms(probes.p50)}, p99 ${ms(probes.p99)}, worst ${ms(probes.max)}`;
  return [
    judged(
      'event-loop',
      delayMs === null ? null : delayMs <= bars.loopDelayP99Ms,
      delayMs === null ? 'no metric' : `p99 ${ms(delayMs)}`,
    ),
    judged('probe', probes.count === 0 ? null : probes.p99 <= bars.probeP99Ms, waits),
    judged('operator', missed === 0, `${count(missed)} of ${count(asked)} without an answer`, faults),
  ];
};

const alive = ({ end, threadRestarts }: Findings): Invariant => {
  const isKept = (threadRestarts ?? 0) === 0 && (end ?? '0') === '0';
  const isKnown = end !== null || threadRestarts !== null;
  const how = end === null ? 'it runs elsewhere' : `ended with ${end}`;
  return judged(
    'alive',
    isKnown ? isKept : null,
    `${how}; threads restarted: ${threadRestarts ?? 'unknown'}`,
  );
};

const quietLog = ({ log }: Findings): Invariant =>
  log === null
    ? judged('log', null, 'not seen')
    : judged('log', log.errors + log.drops === 0, `${log.errors} errors, ${log.drops} dropped`, log.kept);

const memory = ({ steps, rests, isMemoryJudged }: Findings): Invariant => {
  const { passed, found } = judgeMemory(steps, rests);
  const from = isMemoryJudged ? '' : `; judged in a soak of ${minutesToJudgeMemory} minutes or more`;
  return judged('memory', isMemoryJudged ? passed : null, `${found}${from}`);
};

const handles = ({ atStart, atEnd }: Findings): Invariant => {
  if (atStart === null || atEnd === null) return judged('handles', null, 'unknown');
  const areBack =
    atEnd.files - atStart.files <= bars.moreFiles && atEnd.threads - atStart.threads <= bars.moreThreads;
  const found = `files ${atStart.files}, then ${atEnd.files}; threads ${atStart.threads}, then ${atEnd.threads}`;
  return judged('handles', areBack, found);
};

const slots = ({ leftovers }: Findings): Invariant => {
  const figures = Object.entries(leftovers ?? {}).filter(([, value]) => value !== null);
  const found = figures.map(([name, value]) => `${name} ${value}`).join(', ');
  if (found === '') return judged('slots', null, 'unknown');
  return judged(
    'slots',
    figures.every(([, value]) => value === 0),
    found,
  );
};

const elsewhere = 'the store is elsewhere';

const ledger = ({ charges, store }: Findings): Invariant => {
  if (store === null) return judged('ledger', null, elsewhere);
  const { ledger: charged } = store;
  if (charged instanceof Error) return judged('ledger', false, 'it cannot be read', [charged.message]);
  const wrong: string[] = [];
  let [exact, sum] = [0, 0];
  for (const [key, { min, max }] of Object.entries(charges)) {
    const characters = charged.get(key) ?? 0;
    sum += characters;
    if (min === max) exact++;
    if (characters < min || characters > max)
      wrong.push(`a key is charged ${count(characters)} where ${count(min)} to ${count(max)} are due`);
  }
  const keys = Object.keys(charges).length;
  const found = `${count(sum)} characters of ${count(keys)} keys, ${count(exact)} of them known exactly; ${count(wrong.length)} wrong`;
  return judged('ledger', wrong.length === 0, found, wrong);
};

const wholeStore = ({ store }: Findings): Invariant => {
  if (store === null) return judged('store', null, elsewhere);
  const { entries } = store;
  return entries instanceof Error
    ? judged('store', false, 'it is damaged, or cannot be read', [entries.message])
    : judged('store', true, `${count(entries)} entries, all read`);
};

/** A sentence; what was not judged does not count as kept. */
export const verdictOf = (invariants: readonly Invariant[]): string => {
  const broken = invariants.filter(({ passed }) => passed === false).length;
  const names = invariants.filter(({ passed }) => passed === null).map(({ name }) => name);
  const open = names.length === 0 ? '' : ` (not judged: ${names.join(', ')})`;
  if (broken > 0) return `${broken} of ${invariants.length} invariants were broken${open}`;
  return names.length === 0 ? 'every invariant was kept' : `no invariant was broken${open}`;
};

export const judge = (findings: Findings): Invariant[] => [
  ...ofFaults(findings),
  ...(findings.hosts ? [restarts(findings)] : []),
  ...listening(findings),
  ownCount(findings),
  ...responsive(findings),
  alive(findings),
  quietLog(findings),
  memory(findings),
  handles(findings),
  slots(findings),
  ledger(findings),
  wholeStore(findings),
];
