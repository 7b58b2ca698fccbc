/** The invariants of a soak, and whether they held. */
import { percentile } from '../rig/statistics.js';
import type { AtRest, Charges, Fault, FaultKind, Quantiles, Step } from './measures.js';
import { judgeMemory, memoryBars } from './memory.js';
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
  readonly name: string;
  readonly what: string;
  /** `null`: not judged, for the reason in `found`. */
  readonly passed: boolean | null;
  readonly found: string;
  /** The first occurrences of what broke it. */
  readonly examples: readonly string[];
}

export interface Handles {
  readonly files: number | null;
  readonly threads: number | null;
}

/** What the service still has when all clients have left. */
export interface Leftovers {
  readonly requestsInFlight: number | null;
  readonly openContexts: number | null;
  readonly streams: number | null;
  readonly contexts: number | null;
}

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

export interface Findings extends ServiceEnd {
  readonly faultCounts: Readonly<Record<FaultKind, number>>;
  readonly faults: readonly Fault[];
  /** In the warm-up and while measuring. */
  readonly underruns: number;
  readonly unjudged: number;
  /** Of the capacity; `null`: no part of it was asked for, and nothing may be refused. */
  readonly load: number | null;
  readonly refusals: number;
  /** Replies that listeners began to hear. */
  readonly heard: number;
  /** Those with first audio or a gap beyond what an overload allows. */
  readonly spoilt: number;
  /** Replies whose first audio was not judged, because a host started. */
  readonly disturbed: number;
  /** WebSockets that restarts closed; `null`: nothing was restarted. */
  readonly moves: { readonly moved: number; readonly cut: number } | null;
  readonly firstAudioMs: Quantiles;
  /** After the warm-up, without rests. */
  readonly steps: readonly Step[];
  /** After the warm-up; none in a short soak, or where the service runs elsewhere. */
  readonly rests: readonly AtRest[];
  /** The soak is long enough, and the memory of the process can be read. */
  readonly isMemoryJudged: boolean;
  readonly probes: Quantiles;
  readonly answers: { readonly asked: number; readonly missed: number; readonly faults: readonly string[] };
  readonly log: { readonly errors: number; readonly drops: number; readonly kept: readonly string[] } | null;
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
  what: string,
  passed: boolean | null,
  found: string,
  examples: readonly string[] = [],
): Invariant => ({ name, what, passed, found, examples });

const describeFault = ({ atMs, where, what }: Fault): string =>
  `${(atMs / 1000).toFixed(1)} s, ${where}: ${what}`;

const titles: Readonly<Record<FaultKind, string>> = {
  frames: 'Every frame is valid, in order, and of an open context; context_closed is the last',
  audio: 'Audio is well formed, complete, and as long as its words take',
  words: 'Every word comes once, in order',
  flushes: 'Every flush is completed once, in order and in time',
  errors: 'Every provoked error frame comes, and no other',
  statuses: 'Every request gets its status: 200, or the refusal that it provoked',
  sockets: 'The service closes no WebSocket, and releases those whose clients leave',
  answers: 'Every context is opened and closed, and every request answered, in time',
};

const ofFaults = ({ faultCounts, faults }: Findings): Invariant[] =>
  Object.entries(titles).map(([name, what]) => {
    const broken = faultCounts[name as FaultKind];
    const examples = faults.filter(({ kind }) => kind === name).map(describeFault);
    return judged(name, what, broken === 0, `${count(broken)} faults`, examples);
  });

const restarts = ({ faultCounts, moves }: Findings): Invariant[] =>
  moves === null
    ? []
    : [
        judged(
          'restarts',
          'A restart closes only WebSockets that are quiet (1001), and those that speak when DRAIN_SECONDS are over',
          moves.moved === 0 ? null : faultCounts.sockets === 0,
          `${count(moves.moved)} closed, ${count(moves.cut)} of them in speech`,
        ),
      ];

const isOverloaded = ({ load }: Findings): boolean => load !== null && load >= 1;

const admittedInTime = ({ faults, firstAudioMs, heard, refusals, spoilt }: Findings): Invariant => {
  const { p50, p99 } = firstAudioMs;
  const what = `Of the admitted replies, at most ${bars.overloadShare * 100} % have first audio after 300 ms or a gap of more than 100 ms`;
  const found = `${count(spoilt)} of ${count(heard)} replies, first audio p50 ${ms(p50)}, p99 ${ms(p99)}; ${count(refusals)} refused`;
  const examples = faults.filter(({ kind }) => kind === 'underruns').map(describeFault);
  return judged('overload', what, heard === 0 ? null : spoilt <= bars.overloadShare * heard, found, examples);
};

const noneRefused = ({ refusals }: Findings): Invariant =>
  judged(
    'refusals',
    'Below capacity the service refuses nothing',
    refusals === 0,
    `${count(refusals)} refused`,
  );

const listening = ({
  disturbed,
  faults,
  firstAudioMs,
  heard: begun,
  underruns,
  unjudged,
}: Findings): Invariant[] => {
  const examples = faults.filter(({ kind }) => kind === 'underruns').map(describeFault);
  const aside = unjudged === 0 ? '' : `; ${count(unjudged)} more while the load was late or a host started`;
  const { count: heard, p50, p99 } = firstAudioMs;
  return [
    judged(
      'underruns',
      'No listener that reads in real time has nothing to play in the middle of a reply',
      underruns === 0,
      `${count(underruns)} underruns${aside}`,
      examples,
    ),
    judged(
      'first-audio',
      `First audio comes within ${bars.firstAudioP99Ms} ms (p99)`,
      heard === 0 || disturbed > bars.disturbedShare * begun ? null : p99 <= bars.firstAudioP99Ms,
      heard === 0
        ? 'no listeners'
        : `p50 ${ms(p50)}, p99 ${ms(p99)} of ${count(heard)} replies${disturbed === 0 ? '' : `; ${count(disturbed)} more while a host started`}`,
    ),
  ];
};

/** The metric behind the operator's alert must agree with what the listeners heard. */
const ownCount = (findings: Findings): Invariant => {
  const { steps } = findings;
  const share = isOverloaded(findings) ? bars.overloadShare : bars.lateChunkShare;
  const grown = (pick: (step: Step) => number | null): number | null => {
    const known = steps.map(pick).filter((value) => value !== null);
    return known.length === 0 ? null : known.at(-1)! - known[0]!;
  };
  const [late, chunks] = [grown((step) => step.serviceUnderruns), grown((step) => step.serviceChunks)];
  return judged(
    'own-count',
    `The service counts at most ${share * 1_000} of 1,000 chunks of audio as late`,
    late === null || chunks === null || chunks === 0 ? null : late <= share * chunks,
    late === null || chunks === null ? 'no metric' : `${count(late)} of ${count(chunks)} chunks`,
  );
};

const responsive = ({ steps, probes, answers }: Findings): Invariant[] => {
  const delays = steps.flatMap(({ loopDelayP99Ms }) => (loopDelayP99Ms === null ? [] : [loopDelayP99Ms]));
  const delayMs = delays.length === 0 ? 0 : percentile(delays, 0.95);
  return [
    judged(
      'event-loop',
      `The front thread's event loop is late by at most ${bars.loopDelayP99Ms} ms (p99)`,
      delays.length === 0 ? null : delayMs <= bars.loopDelayP99Ms,
      delays.length === 0 ? 'no metric' : `p99 ${ms(delayMs)}`,
    ),
    judged(
      'probe',
      `GET /healthz answers within ${bars.probeP99Ms} ms (p99)`,
      probes.count === 0 ? null : probes.p99 <= bars.probeP99Ms,
      `p50 ${ms(probes.p50)}, p99 ${ms(probes.p99)}, worst ${ms(probes.max)}`,
    ),
    judged(
      'operator',
      'Health, metrics and SIGUSR2 are always answered',
      answers.missed === 0,
      `${count(answers.missed)} of ${count(answers.asked)} without an answer`,
      answers.faults,
    ),
  ];
};

const memory = ({ steps, rests, isMemoryJudged }: Findings): Invariant => {
  const { passed, found } = judgeMemory(steps, rests);
  const what = `Memory (PSS) grows by at most ${memoryBars.slopeMBPerHour} MB an hour after warm-up`;
  const from = `; judged in a soak of ${minutesToJudgeMemory} minutes or more`;
  return isMemoryJudged
    ? judged('memory', what, passed, found)
    : judged('memory', what, null, `${found}${from}`);
};

const handles = ({ atStart, atEnd }: Findings): Invariant => {
  const what = 'Files, sockets and threads are back to what they were';
  const { files, threads } = atEnd;
  if (files === null || atStart.files === null) return judged('handles', what, null, 'unknown');
  const moreThreads = threads === null || atStart.threads === null ? 0 : threads - atStart.threads;
  const passed = files - atStart.files <= bars.moreFiles && moreThreads <= bars.moreThreads;
  const found = `files ${count(atStart.files)}, then ${count(files)}; threads ${String(atStart.threads)}, then ${String(threads)}`;
  return judged('handles', what, passed, found);
};

const describeRestarts = (restarts: number | null): string => {
  if (restarts === null) return 'restarts of threads unknown';
  return restarts < 0 ? 'its count of restarts began again at zero' : `${count(restarts)} threads restarted`;
};

const staysAlive = ({ end, threadRestarts }: Findings): boolean | null => {
  if (threadRestarts !== null && threadRestarts !== 0) return false;
  if (end !== null) return end === '0';
  return threadRestarts === null ? null : true;
};

const alive = (findings: Findings): Invariant => {
  const { end, threadRestarts } = findings;
  const how = end === null ? 'it runs elsewhere' : `ended with ${end}`;
  return judged(
    'alive',
    'The service and its threads never stop, and the service ends well',
    staysAlive(findings),
    `${how}; ${describeRestarts(threadRestarts)}`,
  );
};

const quietLog = ({ log }: Findings): Invariant =>
  judged(
    'log',
    'The log has no error, and no connection dropped as silent, stalled or flooding',
    log === null ? null : log.errors + log.drops === 0,
    log === null ? 'not seen' : `${count(log.errors)} errors, ${count(log.drops)} dropped`,
    log?.kept ?? [],
  );

const slots = ({ leftovers }: Findings): Invariant => {
  const what = 'When all clients have left, no request, context or stream is left';
  const figures = Object.entries(leftovers ?? {}).filter(([, value]) => value !== null) as [string, number][];
  if (figures.length === 0) return judged('slots', what, null, 'unknown');
  const found = figures.map(([name, value]) => `${name} ${value}`).join(', ');
  return judged(
    'slots',
    what,
    figures.every(([, value]) => value === 0),
    found,
  );
};

const elsewhere = 'the store is elsewhere';

const ledger = ({ charges, store }: Findings): Invariant => {
  const what = 'Every key is charged for what its clients heard, to the character where no client broke off';
  if (store === null) return judged('ledger', what, null, elsewhere);
  const { ledger: charged } = store;
  if (charged instanceof Error) return judged('ledger', what, false, 'it cannot be read', [charged.message]);
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
  return judged('ledger', what, wrong.length === 0, found, wrong);
};

const wholeStore = ({ store }: Findings): Invariant => {
  const what = 'When the service has ended, its store verifies';
  if (store === null) return judged('store', what, null, elsewhere);
  const { entries } = store;
  return entries instanceof Error
    ? judged('store', what, false, 'it is damaged, or cannot be read', [entries.message])
    : judged('store', what, true, `${count(entries)} entries, all read`);
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
  ...restarts(findings),
  ...(isOverloaded(findings) ? [admittedInTime(findings)] : listening(findings)),
  ...(findings.load !== null && findings.load < 1 ? [noneRefused(findings)] : []),
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
