/** What has to hold in a soak, and whether it did. */
import { judgeMemory, memoryBars, type AtRest } from './memory.js';
import { minutesToJudgeMemory } from './phases.js';
import type { Charges, Fault, FaultKind, Quantiles } from './protocol.js';
import type { Step } from './series.js';
import type { StoreFindings } from './store-findings.js';

export const bars = {
  firstAudioP99Ms: 200,
  /** Of the chunks that are listened to; where the alert of the operator's page begins. */
  lateChunkShare: 0.001,
  /** Of the front thread, in 19 of 20 steps. */
  loopDelayP99Ms: 100,
  /** Of `GET /healthz`, client included. */
  probeP99Ms: 250,
  /** Beyond those at the start: of pools that grow to their size with the first use. */
  moreFiles: 4,
  moreThreads: 4,
} as const;

export interface Invariant {
  readonly name: string;
  readonly what: string;
  /** `null`: it could not be judged, for the reason in `found`. */
  readonly passed: boolean | null;
  readonly found: string;
  /** The first occurrences of what broke it. */
  readonly examples: readonly string[];
}

export interface Handles {
  readonly files: number | null;
  readonly threads: number | null;
}

/** What is left when all clients are gone. */
export interface Leftovers {
  readonly requestsInFlight: number | null;
  readonly openContexts: number | null;
  readonly streams: number | null;
  readonly contexts: number | null;
}

export interface Findings {
  readonly faultCounts: Readonly<Record<FaultKind, number>>;
  readonly faults: readonly Fault[];
  /** While it was warmed up and measured. */
  readonly underruns: number;
  readonly unjudged: number;
  readonly firstAudioMs: Quantiles;
  /** After warm-up, rests left out. */
  readonly steps: readonly Step[];
  /** After warm-up, in their order; none where the soak is too short for them, or the service runs elsewhere. */
  readonly rests: readonly AtRest[];
  /** The soak is long enough, and its process tells of its memory. */
  readonly isMemoryJudged: boolean;
  readonly probes: Quantiles;
  readonly answers: { readonly asked: number; readonly missed: number; readonly faults: readonly string[] };
  /** `null`: the service runs elsewhere, or was not there to the end. */
  readonly end: string | null;
  readonly log: { readonly errors: number; readonly drops: number; readonly told: readonly string[] } | null;
  /** In the soak; `null`: not told. */
  readonly threadRestarts: number | null;
  readonly atStart: Handles;
  readonly atEnd: Handles;
  readonly leftovers: Leftovers | null;
  readonly charges: Charges;
  /** `null`: it is elsewhere. */
  readonly store: StoreFindings | null;
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
  frames: 'Every frame is valid, in order, and of a context that is open; context_closed is its last',
  audio: 'Audio is well formed, complete, and as long as its words take',
  words: 'Every word comes once, in order',
  flushes: 'Every flush is completed once, in order and in time',
  errors: 'No error frame but those that were provoked, and these all',
  statuses: 'Every request gets its status: 200, or the refusal that it provoked',
  sockets: 'No WebSocket is closed by the service; one whose client leaves is let go',
  answers: 'Every context is opened and closed, every request answered, in time',
};

const ofFaults = ({ faultCounts, faults }: Findings): Invariant[] =>
  Object.entries(titles).map(([name, what]) => {
    const broken = faultCounts[name as FaultKind];
    const examples = faults.filter(({ kind }) => kind === name).map(describeFault);
    return judged(name, what, broken === 0, `${count(broken)} times broken`, examples);
  });

const listening = ({ faults, firstAudioMs, underruns, unjudged }: Findings): Invariant[] => {
  const examples = faults.filter(({ kind }) => kind === 'underruns').map(describeFault);
  const aside = unjudged === 0 ? '' : `; ${count(unjudged)} more while the load itself was late`;
  const { count: heard, p50, p99 } = firstAudioMs;
  return [
    judged(
      'underruns',
      'No listener who reads at real time has nothing to play in the midst of a turn',
      underruns === 0,
      `${count(underruns)} underruns${aside}`,
      examples,
    ),
    judged(
      'first-audio',
      `First audio comes within ${String(bars.firstAudioP99Ms)} ms (p99)`,
      heard === 0 ? null : p99 <= bars.firstAudioP99Ms,
      heard === 0 ? 'nobody listened' : `p50 ${ms(p50)}, p99 ${ms(p99)} of ${count(heard)} turns`,
    ),
  ];
};

/** What an operator's alert goes by has to agree with what the listeners heard. */
const ownCount = ({ steps }: Findings): Invariant => {
  const grown = (pick: (step: Step) => number | null): number | null => {
    const told = steps.map(pick).filter((value) => value !== null);
    return told.length === 0 ? null : told.at(-1)! - told[0]!;
  };
  const [late, chunks] = [grown((step) => step.serviceUnderruns), grown((step) => step.serviceChunks)];
  return judged(
    'own-count',
    `The service itself counts at most ${String(bars.lateChunkShare * 1_000)} chunk of audio in 1,000 as late`,
    late === null || chunks === null || chunks === 0 ? null : late <= bars.lateChunkShare * chunks,
    late === null || chunks === null ? 'it does not tell' : `${count(late)} of ${count(chunks)} chunks`,
  );
};

const quantileOf = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? 0;

const responsive = ({ steps, probes, answers }: Findings): Invariant[] => {
  const delays = steps.flatMap(({ loopDelayP99Ms }) => (loopDelayP99Ms === null ? [] : [loopDelayP99Ms]));
  const delayMs = quantileOf(delays, 0.95);
  return [
    judged(
      'event-loop',
      `The front thread's event loop is late by at most ${String(bars.loopDelayP99Ms)} ms (p99)`,
      delays.length === 0 ? null : delayMs <= bars.loopDelayP99Ms,
      delays.length === 0 ? 'the service does not tell' : `p99 ${ms(delayMs)}`,
    ),
    judged(
      'probe',
      `GET /healthz answers within ${String(bars.probeP99Ms)} ms (p99)`,
      probes.count === 0 ? null : probes.p99 <= bars.probeP99Ms,
      `p50 ${ms(probes.p50)}, p99 ${ms(probes.p99)}, worst ${ms(probes.max)}`,
    ),
    judged(
      'operator',
      'Health, metrics and SIGUSR2 are answered all along',
      answers.missed === 0,
      `${count(answers.missed)} of ${count(answers.asked)} not`,
      answers.faults,
    ),
  ];
};

const memory = ({ steps, rests, isMemoryJudged }: Findings): Invariant => {
  const { passed, found } = judgeMemory(steps, rests);
  const what = `Memory (PSS) grows by at most ${String(memoryBars.slopeMBPerHour)} MB an hour after warm-up`;
  const from = `; judged in a soak of ${String(minutesToJudgeMemory)} minutes or more`;
  return isMemoryJudged
    ? judged('memory', what, passed, found)
    : judged('memory', what, null, `${found}${from}`);
};

const handles = ({ atStart, atEnd }: Findings): Invariant => {
  const what = 'Files, sockets and threads are back to what they were';
  const { files, threads } = atEnd;
  if (files === null || atStart.files === null) return judged('handles', what, null, 'not told');
  const moreThreads = threads === null || atStart.threads === null ? 0 : threads - atStart.threads;
  const passed = files - atStart.files <= bars.moreFiles && moreThreads <= bars.moreThreads;
  const found = `files ${count(atStart.files)}, then ${count(files)}; threads ${String(atStart.threads)}, then ${String(threads)}`;
  return judged('handles', what, passed, found);
};

const describeRestarts = (restarts: number | null): string => {
  if (restarts === null) return 'restarts of threads not told';
  return restarts < 0 ? 'its count of restarts began anew' : `${count(restarts)} threads started again`;
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
    'The service and its threads live all along, and it ends well',
    staysAlive(findings),
    `${how}; ${describeRestarts(threadRestarts)}`,
  );
};

const quietLog = ({ log }: Findings): Invariant =>
  judged(
    'log',
    'The log has no error, and nobody that was dropped as silent, stalled or flooding',
    log === null ? null : log.errors + log.drops === 0,
    log === null ? 'not seen' : `${count(log.errors)} errors, ${count(log.drops)} dropped`,
    log?.told ?? [],
  );

const slots = ({ leftovers }: Findings): Invariant => {
  const what = 'When all clients have left, no request, context or stream is left';
  const figures = Object.entries(leftovers ?? {}).filter(([, value]) => value !== null) as [string, number][];
  if (figures.length === 0) return judged('slots', what, null, 'not told');
  const found = figures.map(([name, value]) => `${name} ${String(value)}`).join(', ');
  return judged(
    'slots',
    what,
    figures.every(([, value]) => value === 0),
    found,
  );
};

const elsewhere = 'the store is elsewhere';

const ledger = ({ charges, store }: Findings): Invariant => {
  const what = 'Every key is charged for what its clients heard, to the character where none broke off';
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
  const what = 'When the service has ended, its store is good throughout';
  if (store === null) return judged('store', what, null, elsewhere);
  const { entries } = store;
  return entries instanceof Error
    ? judged('store', what, false, 'it is damaged, or cannot be read', [entries.message])
    : judged('store', what, true, `${count(entries)} entries, all read`);
};

/** In a sentence: what was not judged is not said to have been kept. */
export const verdictOf = (invariants: readonly Invariant[]): string => {
  const broken = invariants.filter(({ passed }) => passed === false).length;
  const names = invariants.filter(({ passed }) => passed === null).map(({ name }) => name);
  const open = names.length === 0 ? '' : ` (not judged: ${names.join(', ')})`;
  if (broken > 0) return `${String(broken)} of ${String(invariants.length)} invariants were broken${open}`;
  return names.length === 0 ? 'every invariant was kept' : `no invariant was broken${open}`;
};

export const judge = (findings: Findings): Invariant[] => [
  ...ofFaults(findings),
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
