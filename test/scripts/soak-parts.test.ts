/** The parts of a soak that decide: its clients' keys, what is late, which invariant a finding breaks, what grows. */
import t from 'tap';
import { UsageError } from '../../scripts/command.js';
import { LoopClock } from '../../scripts/rig/loop-clock.js';
import { Playback } from '../../scripts/rig/playback.js';
import { bars, judge, verdictOf, type Findings } from '../../scripts/soak/invariants.js';
import { faultKinds, type FaultKind, type Step } from '../../scripts/soak/measures.js';
import { judgeMemory } from '../../scripts/soak/memory.js';
import { Meter } from '../../scripts/soak/meter.js';
import { readOptions } from '../../scripts/soak/options.js';
import { drawLife, isTidy, keyOfClient, keysNeeded } from '../../scripts/soak/population.js';

void t.test('all that a tidy client sends is spoken, and it shares its key with tidy clients only', (t) => {
  const clients = Array.from({ length: 40 }, (_, client) => client);
  for (const client of clients.filter(isTidy))
    for (let life = 0; life < 20; life++) {
      const { contexts, vanishes } = drawLife(3, client, life);
      t.ok(!vanishes && contexts.every(({ ending }) => ending !== 'cancel'), `client ${client}`);
    }
  const sockets = Array.from({ length: keysNeeded(40) }, (_, i) => `s${i}`);
  const keys = { sockets, http: [], idle: 'idle', isShared: false };
  for (const users of Map.groupBy(clients, (client) => keyOfClient(keys, client)).values()) {
    t.equal(new Set(users.map(isTidy)).size, 1, 'tidy and untidy do not share a key');
    t.ok(users.length <= 9, 'a key has a slot for each of its clients');
  }
  t.end();
});

void t.test('a listener that has heard everything is dry until more audio comes', (t) => {
  const playback = new Playback();
  playback.begin(900);
  t.equal(playback.audio(0, 950), null, 'a chunk without audio is none');
  t.same(playback.audio(100, 1_000), { kind: 'first', waitedMs: 100 }, 'first audio is played at once');
  t.equal(playback.audio(300, 1_050), null);
  t.equal(playback.aheadMs(1_100), 200);
  t.same(playback.audio(500, 1_450), { kind: 'dry', sinceMs: 1_300, waitedMs: 150 });
  t.equal(playback.aheadMs(1_450), 200, 'late audio is played when it comes');
  t.equal(playback.audio(500, 1_800), null, 'a chunk without audio is none');
  playback.begin(1_800);
  t.equal(playback.aheadMs(1_800), 0, 'a new stream has no audio yet');
  t.same(playback.audio(50, 9_000), { kind: 'first', waitedMs: 7_200 });
  t.equal(playback.audioMs, 550);
  t.end();
});

void t.test('a gap is an underrun only when the text was there, and we and the machine were in time', (t) => {
  /** @returns underruns, gaps that are not judged, spoilt replies */
  const counts = (completeMs: number | null, untilMs: number, clientLateMs = 0, isDisturbed = false) => {
    const clock = new LoopClock(20, 1_000);
    clock.tick(1_020 + clientLateMs);
    for (let nowMs = 1_040 + clientLateMs; nowMs <= untilMs; nowMs += 20) clock.tick(nowMs);
    const meter = new Meter(0, clock, () => undefined);
    meter.isDisturbed = isDisturbed;
    const reply = { where: 'x', completeMs, isSpoilt: false };
    meter.hear(reply, { kind: 'dry', sinceMs: 1_000, waitedMs: untilMs - 1_000 }, untilMs);
    return [meter.underruns, meter.unjudged, meter.spoilt];
  };
  t.same(counts(0, 1_300), [1, 0, 1]);
  t.same(counts(0, 1_080), [1, 0, 0], 'short for an overload');
  t.same(counts(0, 1_015), [0, 0, 0], 'shorter than anyone hears');
  t.same(counts(null, 1_300), [0, 0, 0], 'the text is not complete');
  t.same(counts(1_150, 1_300), [0, 0, 0], 'it has only just been sent');
  t.same(counts(0, 1_300, 290), [0, 1, 0], 'the client itself was late by as much');
  t.same(counts(0, 1_300, 100), [1, 0, 1], 'it was late, but not by as much');
  t.same(counts(0, 1_300, 0, true), [0, 1, 0], 'another program takes the cores');
  t.end();
});

void t.test('a wrong command line is refused with the name of the option', (t) => {
  const remote = ['--url', 'http://a', '--key', 'k'];
  for (const [args, message] of [
    [remote, /9 clients at most, and a key serves 6/],
    [['--url', 'http://a', '--key', 'k,l', '--contexts', '9', '--streams', '4'], /13 clients/],
    [
      [...remote, '--ops-url', 'http://b', '--minutes', '25', '--contexts', '5', '--streams', '1'],
      /9 clients/,
    ],
    [['--load', '0.8', '--hosts', '3'], /--load and --hosts do not go together/],
    [[...remote, '--rests', '2'], /--rests/],
  ] as const)
    t.throws(() => readOptions(args), Object.assign(new UsageError(), { message }), args.join(' '));
  t.match(readOptions(['--load', '0.8', '--contexts', '50']), { load: 0.8, contexts: 50 });
  const options = readOptions(['--url', 'http://127.0.0.1:9', '--key', 'a, b', '--ops-url', 'http://x:1/']);
  t.match(options.remote, { keys: ['a', 'b'], opsUrl: 'http://x:1' });
  t.end();
});

const quantiles = { p50: 5, p95: 20, p99: 30, max: 40, count: 100 };
const noFaults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
const counts = {
  ...new Meter(0, new LoopClock(20, 0), () => undefined).counts,
  ...{ heard: 100, unjudged: 2, faults: noFaults, firstAudioMs: quantiles },
};

/** Of an hour, in steps of five seconds. */
const stepsOf = (pssAt: (minute: number) => number): Step[] =>
  Array.from({ length: 720 }, (_, i) => ({
    ...{ atMs: (i + 1) * 5_000, phase: 'measured', streams: 10, speechPerSecond: 8 },
    ...{ pssBytes: pssAt((i + 1) / 12), frontHeapBytes: 2e7, loopDelayP99Ms: 12, threadRestarts: 0 },
    ...{ serviceStreams: 10, serviceContexts: 10, serviceUnderruns: 3, serviceChunks: i * 50 },
    ...{ serviceCpu: 0.6, loadCpu: 0.1, othersCpu: 0.1 },
  }));

const ledger = new Map([
  ['a', 100],
  ['b', 70],
]);
const answers = { asked: 100, missed: 0, faults: [], probes: quantiles };
const good: Findings = {
  ...{ counts, faults: [], load: null, hosts: false },
  ...{ steps: stepsOf((minute) => 3e8 + minute * 1e3), rests: [], isMemoryJudged: true },
  ...{ answers, end: '0', log: { errors: 0, drops: 0, kept: [] }, threadRestarts: 0 },
  ...{ atStart: { files: 50, threads: 16 }, atEnd: { files: 50, threads: 16 } },
  leftovers: { requestsInFlight: 0, openContexts: 0, streams: 0, contexts: 0 },
  charges: { a: { min: 100, max: 100 }, b: { min: 50, max: 90 } },
  store: { ledger, entries: 7 },
};

const broken = (findings: Partial<Findings>) =>
  judge({ ...good, ...findings })
    .filter(({ passed }) => passed === false)
    .map(({ name }) => name);
const brokenBy = (fields: object, findings: Partial<Findings> = {}) =>
  broken({ ...findings, counts: { ...counts, ...fields } });

void t.test(
  'below capacity nothing may be refused; from it on, the admitted are judged as in an overload',
  (t) => {
    t.same(broken({ load: 0.8 }), []);
    t.same(brokenBy({ refusals: 1 }, { load: 0.8 }), ['refusals']);
    const slow = { underruns: 2, firstAudioMs: { ...quantiles, p99: 250 }, refusals: 9, spoilt: 2 };
    t.same(brokenBy(slow, { load: 0.8 }), ['underruns', 'first-audio', 'refusals']);
    t.same(brokenBy(slow, { load: 2 }), [], 'two of a hundred replies');
    t.same(brokenBy({ ...slow, spoilt: 3 }, { load: 2 }), ['overload']);
    const late = (share: number) =>
      good.steps.map((step, i) => ({ ...step, serviceUnderruns: i * share * 50 }));
    t.same(broken({ load: 2, steps: late(0.015) }), []);
    t.same(broken({ load: 2, steps: late(0.03) }), ['own-count']);
    t.end();
  },
);

void t.test('each fault breaks its invariant, and no other', (t) => {
  t.same(broken({}), []);
  for (const kind of faultKinds) t.same(brokenBy({ faults: { ...noFaults, [kind]: 1 } }), [kind]);
  t.same(brokenBy({ underruns: 1 }), ['underruns']);
  const late = good.steps.map((step, i) => ({ ...step, serviceUnderruns: i }));
  t.same(broken({ steps: late }), ['own-count'], 'the service counts what listeners did not hear');
  t.same(brokenBy({ firstAudioMs: { ...quantiles, p99: bars.firstAudioP99Ms + 1 } }), ['first-audio']);
  const slow = { ...quantiles, p99: bars.probeP99Ms + 1 };
  t.same(broken({ answers: { ...answers, probes: slow } }), ['probe']);
  t.same(broken({ answers: { ...answers, missed: 1 } }), ['operator']);
  t.same(broken({ end: 'SIGKILL, in the middle of the soak' }), ['alive']);
  t.same(broken({ threadRestarts: 1 }), ['alive']);
  t.same(broken({ end: null, threadRestarts: -1 }), ['alive'], 'a service elsewhere was restarted');
  t.same(broken({ log: { errors: 1, drops: 0, kept: [] } }), ['log']);
  t.same(broken({ log: { errors: 0, drops: 1, kept: [] } }), ['log']);
  const growing = stepsOf((minute) => 3e8 + minute * 1e5);
  t.same(broken({ steps: growing }), ['memory']);
  t.same(broken({ steps: growing, isMemoryJudged: false }), [], 'it was not warmed up');
  t.same(broken({ atEnd: { files: 50 + bars.moreFiles + 1, threads: 16 } }), ['handles']);
  t.same(broken({ atEnd: { files: 50, threads: 16 + bars.moreThreads + 1 } }), ['handles']);
  t.same(broken({ leftovers: { ...good.leftovers, contexts: 1 } }), ['slots']);
  for (const charged of [{ a: 99 }, { a: 101 }, { b: 49 }, { b: 91 }]) {
    const store = { ledger: new Map([...ledger, ...Object.entries(charged)]), entries: 7 };
    t.same(broken({ store }), ['ledger'], JSON.stringify(charged));
  }
  const unreadable = new Error('no such table');
  t.same(broken({ store: { ledger: unreadable, entries: 7 } }), ['ledger']);
  t.same(broken({ store: { ledger, entries: unreadable } }), ['store']);
  t.same(brokenBy({ moved: 7, faults: { ...noFaults, sockets: 1 } }, { hosts: true }), [
    'sockets',
    'restarts',
  ]);
  t.end();
});

void t.test('what is unknown is not judged', (t) => {
  const elsewhere = judge({
    ...good,
    ...{ end: null, log: null, leftovers: null, store: null, threadRestarts: null, atEnd: null, hosts: true },
    counts: { ...counts, firstAudioMs: { ...quantiles, count: 0 } },
    steps: good.steps.slice(0, 60),
  });
  const unjudged = elsewhere.filter(({ passed }) => passed === null).map(({ name }) => name);
  t.equal(verdictOf(elsewhere), `no invariant was broken (not judged: ${unjudged.join(', ')})`);
  t.equal(verdictOf(judge(good)), 'every invariant was kept');
  t.same(unjudged.sort(), [
    'alive',
    'first-audio',
    'handles',
    'ledger',
    'log',
    'memory',
    'restarts',
    'slots',
    'store',
  ]);
  t.end();
});

void t.test(
  'memory is judged by what is kept at rest, and under load only by growth beyond its clients',
  (t) => {
    const restsOf = (pssAt: (minute: number) => number) =>
      Array.from({ length: 7 }, (_, i) => ({
        atMs: (15 + i * 7.5) * 60_000,
        pssBytes: pssAt(15 + i * 7.5),
        kept: { heapBytes: 5e7, externalBytes: 1e8 },
      }));
    const swinging = stepsOf((minute) => 3e8 + 2e7 * Math.sin(minute / 3));
    const flat = restsOf((minute) => 2.5e8 + (minute % 2) * 1e5);
    const growing = restsOf((minute) => 2.5e8 + minute * 5e4);
    const scattered = restsOf((minute) => 2.5e8 + (minute % 2) * 2e7);
    const verdict = (...args: Parameters<typeof judgeMemory>) => judgeMemory(...args).passed;
    t.equal(verdict(swinging, []), null, 'clients leave more unread, then less');
    t.equal(verdict(swinging, flat), true);
    t.equal(verdict(swinging, growing), false, '3 MB an hour are kept');
    t.equal(verdict(swinging, scattered), null, 'rests that scatter');
    const returning = stepsOf((minute) => 3e8 + minute * 1e6);
    t.equal(verdict(returning, flat), false, 'it comes back, and still grows');
    t.equal(verdict(swinging.slice(0, 120), flat), null, 'too short');
    t.equal(verdict(swinging, flat.slice(0, 4)), null, 'too few rests');
    const refilling = good.steps.map((step) => {
      const sinceMs = Math.min(...flat.map(({ atMs }) => step.atMs - atMs).filter((ms) => ms >= 0));
      return { ...step, pssBytes: 3e8 - (sinceMs < 90_000 ? 5e7 : 0) };
    });
    t.equal(verdict(refilling, flat), true, 'what comes back after a rest is no growth');
    t.match(
      judgeMemory(swinging, flat).found,
      /PSS at rest -?0\.\d+ ± 0\.\d+ MB an hour \(7 rests\), under load /,
    );
    t.end();
  },
);
