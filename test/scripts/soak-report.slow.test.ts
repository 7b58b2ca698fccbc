/** What a soak reports: its verdicts, its figures and its lines. */
import { closeSync, openSync, writeSync } from 'node:fs';
import t from 'tap';
import { bars, judge, verdictOf, type Findings } from '../../scripts/soak/invariants.js';
import { faultKinds, type FaultKind, type LoadTick, type Step } from '../../scripts/soak/measures.js';
import { judgeMemory, loadTrend } from '../../scripts/soak/memory.js';
import { Meter } from '../../scripts/soak/meter.js';
import { stepOf, type Reading } from '../../scripts/soak/series.js';
import { readStore } from '../../scripts/soak/service-access.js';
import { createKeys } from '../../scripts/operator.js';
import { storePath } from '../../src/store/sqlite/database.js';

const quantiles = { p50: 5, p95: 20, p99: 30, max: 40, count: 100 };
const noFaults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;

const tickAt = (atMs: number): LoadTick => ({
  ...new Meter(0, () => undefined).counts,
  ...{ streams: 10, audioMs: atMs * 8, heard: 100 },
  faults: noFaults,
  firstAudioMs: quantiles,
  loopLateMs: quantiles,
  endsStep: true,
  cpuMs: atMs / 10,
});

const readingAt = (atMs: number, pssBytes: number): Reading => ({
  atMs,
  tick: tickAt(atMs),
  busyMs: atMs * 1.5,
  sample: {
    pssBytes,
    frontHeapBytes: 2e7,
    cpu: { front: atMs / 10, actor: 0, synthesis: atMs / 2, other: 0 },
    loopDelayP99Ms: 12,
    streams: 10,
    contexts: 10,
    serviceUnderruns: 3 + atMs / 1_000_000,
    serviceChunks: atMs / 100,
    threadRestarts: 0,
  },
});

/** Of an hour, in steps of five seconds. */
const stepsOf = (pssAt: (minute: number) => number): Step[] =>
  Array.from({ length: 720 }, (_, i) => {
    const atMs = (i + 1) * 5_000;
    return stepOf(readingAt(atMs - 5_000, 0), readingAt(atMs, pssAt(atMs / 60_000)), 'measured');
  });

const ledger = new Map([
  ['a', 100],
  ['b', 70],
]);

const good: Findings = {
  faultCounts: noFaults,
  faults: [],
  underruns: 0,
  unjudged: 2,
  load: null,
  refusals: 0,
  heard: 100,
  spoilt: 0,
  disturbed: 0,
  moves: null,
  firstAudioMs: quantiles,
  steps: stepsOf((minute) => 3e8 + minute * 1e3),
  rests: [],
  isMemoryJudged: true,
  probes: quantiles,
  answers: { asked: 100, missed: 0, faults: [] },
  end: '0',
  log: { errors: 0, drops: 0, kept: [] },
  threadRestarts: 0,
  atStart: { files: 50, threads: 16 },
  atEnd: { files: 50, threads: 16 },
  leftovers: { requestsInFlight: 0, openContexts: 0, streams: 0, contexts: 0 },
  charges: { a: { min: 100, max: 100 }, b: { min: 50, max: 90 } },
  store: { ledger, entries: 7 },
};

const broken = (findings: Partial<Findings>) =>
  judge({ ...good, ...findings })
    .filter(({ passed }) => passed === false)
    .map(({ name }) => name);

void t.test(
  'below capacity nothing may be refused; from it on, the admitted are judged as in an overload',
  (t) => {
    t.same(broken({ load: 0.8 }), []);
    t.same(broken({ load: 0.8, refusals: 1 }), ['refusals']);
    const slow = { underruns: 2, firstAudioMs: { ...quantiles, p99: 250 }, refusals: 9, spoilt: 2 };
    t.same(broken({ ...slow, load: 0.8 }), ['underruns', 'first-audio', 'refusals']);
    t.same(broken({ ...slow, load: 2 }), [], 'two of a hundred replies');
    t.same(broken({ ...slow, load: 2, spoilt: 3 }), ['overload']);
    const late = (share: number) =>
      good.steps.map((step, i) => ({ ...step, serviceUnderruns: i * share * 50, serviceChunks: i * 50 }));
    t.same(broken({ load: 2, steps: late(0.015) }), []);
    t.same(broken({ load: 2, steps: late(0.03) }), ['own-count']);
    t.end();
  },
);

void t.test('each fault breaks its invariant, and no other', (t) => {
  t.same(broken({}), []);
  for (const kind of faultKinds) {
    const fault = { kind, atMs: 1, where: '1.2.3', what: 'wrong' };
    t.same(broken({ faultCounts: { ...noFaults, [kind]: 1 }, faults: [fault] }), [kind]);
  }
  t.same(broken({ underruns: 1 }), ['underruns']);
  const late = good.steps.map((step, i) => ({ ...step, serviceUnderruns: i }));
  t.same(broken({ steps: late }), ['own-count'], 'the service counts what listeners did not hear');
  t.same(broken({ firstAudioMs: { ...quantiles, p99: bars.firstAudioP99Ms + 1 } }), ['first-audio']);
  t.same(broken({ probes: { ...quantiles, p99: bars.probeP99Ms + 1 } }), ['probe']);
  t.same(broken({ answers: { asked: 9, missed: 1, faults: ['late'] } }), ['operator']);
  t.same(broken({ end: 'SIGKILL, in the middle of the soak' }), ['alive']);
  t.same(broken({ threadRestarts: 1 }), ['alive']);
  t.same(broken({ log: { errors: 1, drops: 0, kept: ['{}'] } }), ['log']);
  t.same(broken({ log: { errors: 0, drops: 1, kept: ['{}'] } }), ['log']);
  const growing = stepsOf((minute) => 3e8 + minute * 1e5);
  t.same(broken({ steps: growing }), ['memory']);
  t.same(broken({ steps: growing, isMemoryJudged: false }), [], 'it was not warmed up');
  t.same(broken({ atEnd: { files: 50 + bars.moreFiles + 1, threads: 16 } }), ['handles']);
  t.same(broken({ atEnd: { files: 50, threads: 16 + bars.moreThreads + 1 } }), ['handles']);
  t.same(broken({ leftovers: { ...good.leftovers!, contexts: 1 } }), ['slots']);
  for (const [key, characters] of [
    ['a', 99],
    ['a', 101],
    ['b', 49],
    ['b', 91],
  ] as const)
    t.same(
      broken({ store: { ledger: new Map([...ledger, [key, characters]]), entries: 7 } }),
      ['ledger'],
      `${key} ${characters}`,
    );
  const unreadable = new Error('no such table');
  t.same(broken({ store: { ledger: unreadable, entries: 7 } }), ['ledger']);
  t.same(broken({ store: { ledger, entries: unreadable } }), ['store']);
  t.same(
    broken({ end: null, threadRestarts: 1 }),
    ['alive'],
    'a thread of a service elsewhere was restarted',
  );
  t.same(broken({ threadRestarts: -1 }), ['alive'], 'the service was restarted meanwhile');
  t.end();
});

void t.test('what is unknown is not judged', (t) => {
  const elsewhere = judge({
    ...good,
    end: null,
    log: null,
    leftovers: null,
    store: null,
    threadRestarts: null,
    atEnd: { files: null, threads: null },
    firstAudioMs: { ...quantiles, count: 0 },
    steps: good.steps.slice(0, 60),
  });
  const unjudged = elsewhere.filter(({ passed }) => passed === null).map(({ name }) => name);
  t.equal(verdictOf(elsewhere), `no invariant was broken (not judged: ${unjudged.join(', ')})`);
  t.equal(verdictOf(judge(good)), 'every invariant was kept');
  t.same(unjudged.sort(), ['alive', 'first-audio', 'handles', 'ledger', 'log', 'memory', 'slots', 'store']);
  t.end();
});

void t.test('growth of memory is judged where its error allows it, and both are reported', (t) => {
  const memoryOf = (pssAt: (minute: number) => number) =>
    judge({ ...good, steps: stepsOf(pssAt) }).find(({ name }) => name === 'memory')!;
  const noisy = (growth: number) => (minute: number) =>
    3e8 + minute * growth + (Math.floor(minute / 9) % 2) * 2e7;
  const open = memoryOf(noisy(0));
  t.equal(open.passed, null);
  t.match(open.found, /PSS -?\d+\.\d+ ± \d+\.\d+ MB an hour.*beyond the bar/);
  t.equal(memoryOf(noisy(1e7)).passed, false, 'far beyond what the scatter leaves open');
  t.equal(memoryOf(noisy(-1e7)).passed, true, 'far below it');
  const flat = memoryOf((minute) => 3e8 + (Math.floor(minute / 9) % 2) * 1e5);
  t.equal(flat.passed, true);
  t.match(flat.found, /PSS -?\d+\.\d+ ± 0\.\d+ MB an hour/);
  t.end();
});

void t.test(
  'memory is judged by what is kept at rest, and under load only by growth beyond that of its clients',
  (t) => {
    const restsOf = (pssAt: (minute: number) => number) =>
      Array.from({ length: 7 }, (_, i) => ({
        atMs: (15 + i * 7.5) * 60_000,
        pssBytes: pssAt(15 + i * 7.5),
        kept: { heapBytes: 5e7, externalBytes: 1e8 },
      }));
    const swinging = stepsOf((minute) => 3e8 + 2e7 * Math.sin(minute / 3));
    const flat = restsOf((minute) => 2.5e8 + (minute % 2) * 1e5);
    const verdict = (...args: Parameters<typeof judgeMemory>) => judgeMemory(...args).passed;
    t.equal(verdict(swinging, []), null, 'clients leave more unread, then less');
    t.equal(verdict(swinging, flat), true);
    t.equal(
      verdict(
        swinging,
        restsOf((minute) => 2.5e8 + minute * 5e4),
      ),
      false,
      '3 MB an hour are kept',
    );
    t.equal(
      verdict(
        swinging,
        restsOf((minute) => 2.5e8 + (minute % 2) * 2e7),
      ),
      null,
      'rests that scatter',
    );
    t.equal(
      verdict(
        stepsOf((minute) => 3e8 + minute * 1e6),
        flat,
      ),
      false,
      'it comes back, and still grows',
    );
    t.equal(verdict(swinging.slice(0, 120), flat), null, 'too short');
    t.equal(verdict(swinging, flat.slice(0, 4)), null, 'too few rests');
    const refilling = good.steps.map((step) => {
      const sinceMs = Math.min(...flat.map(({ atMs }) => step.atMs - atMs).filter((ms) => ms >= 0));
      return { ...step, pssBytes: 3e8 - (sinceMs < 90_000 ? 5e7 : 0) };
    });
    t.equal(verdict(refilling, flat), true, 'what comes back after a rest is no growth');
    t.equal(loadTrend(refilling, flat, ({ pssBytes }) => pssBytes).trend?.slopePerHour, 0);
    t.match(
      judgeMemory(swinging, flat).found,
      /PSS at rest -?0\.\d+ ± 0\.\d+ MB an hour \(7 rests\), under load /,
    );
    t.end();
  },
);

void t.test('the store is read as it is, and one that cannot be read is reported', async (t) => {
  const dataDir = t.testdir();
  const place = { dataDir, storeUrl: null };
  const missing = await readStore(place, []);
  t.ok(missing.ledger instanceof Error && missing.entries instanceof Error);
  const [key = ''] = await createKeys(dataDir, [[null, null]]);
  t.same(await readStore(place, [key]), { ledger: new Map([[key, 0]]), entries: 0 });
  const handle = openSync(storePath(dataDir), 'r+');
  writeSync(handle, Buffer.alloc(2_000, 0xa5), 0, 2_000, 4_096);
  closeSync(handle);
  t.ok((await readStore(place, [key])).entries instanceof Error);
});

void t.test('a restart may close WebSockets, and a closed one that was owed speech is a fault', (t) => {
  const restarts = (findings: Partial<Findings>) =>
    judge({ ...good, ...findings }).find(({ name }) => name === 'restarts');
  t.equal(restarts({}), undefined, 'nothing was restarted');
  t.match(restarts({ moves: { moved: 7, cut: 2 } }), {
    passed: true,
    found: '7 closed, 2 of them in speech',
  });
  t.match(restarts({ moves: { moved: 0, cut: 0 } }), { passed: null });
  const faultCounts = { ...noFaults, sockets: 1 };
  t.match(restarts({ moves: { moved: 7, cut: 0 }, faultCounts }), { passed: false });
  t.end();
});
