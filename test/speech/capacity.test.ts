import t from 'tap';
import { Capacity, type Demand, type WorkSample } from '../../src/speech/capacity.js';
import { demandOf } from '../../src/speech/demand.js';
import { seededRandom } from '../../scripts/rig/random.js';

const THREADS = 2;
/** What each step costs in the simulation, whatever it makes. */
const STEP_CPU_MS = 1;

const demand = (given: Partial<Demand> = {}): Demand => ({
  group: {},
  voiceId: 'ada',
  encoding: 'pcm',
  remainingMs: 4_000,
  slackMs: 0,
  awaited: 'first',
  ...given,
});

const supply = { synthesisThreads: THREADS, longThreads: THREADS - 1, actorThreads: 1, cores: 2 };

/** Work at this CPU time for a millisecond of speech. */
const worked = (cpuPerMs: number, given: Partial<WorkSample> = {}): WorkSample => ({
  elapsedMs: 250,
  voices: new Map([
    [
      'ada',
      {
        wallMs: 1_000 * cpuPerMs,
        cpuMs: 1_000 * cpuPerMs,
        aroundCpuMs: 0,
        speechMs: 1_000,
        begun: 1,
        beginMs: 4,
      },
    ],
  ]),
  encodings: new Map([
    ['pcm', { wallMs: 1, cpuMs: 1, aroundCpuMs: 0, speechMs: 1_000, begun: 0, beginMs: 0 }],
  ]),
  spareCpuMs: 500,
  ...given,
});

/** Listeners with some audio who play on: how many does it admit? */
const playersAdmitted = (capacity: Capacity): number => {
  for (let admitted = 0; admitted < 10_000; admitted++)
    if (!capacity.admits(demand({ awaited: 'later', slackMs: 500 }), 0)) return admitted;
  return Number.POSITIVE_INFINITY;
};

t.test('one utterance for each synthesis thread is admitted, however slow the voice', (t) => {
  const capacity = new Capacity(
    () => [],
    () => supply,
  );
  capacity.measure(worked(5));
  t.equal(capacity.admits(demand(), 0), true);
  t.equal(capacity.admits(demand(), 0), true);
  t.equal(capacity.admits(demand(), 0), false);
  t.end();
});

t.test('voices with long steps fill the threads for them, and leave the others to short steps', (t) => {
  const capacity = new Capacity(
    () => [],
    () => supply,
    (voiceId) => (voiceId === 'slow' ? { ms: 2_000, speechMs: 5_000 } : undefined),
  );
  const slow = () => demand({ voiceId: 'slow', awaited: 'later', slackMs: 1_000 });
  t.ok(capacity.admits(slow(), 0), 'one for each thread of theirs, in any case');
  t.ok(capacity.admits(slow(), 0), 'the declared cost counts until one is measured: 0.4 cores x 0.8');
  t.notOk(capacity.admits(slow(), 0), 'three would need more than nine tenths of one thread');
  t.ok(capacity.ratio(0) > 0.7, 'which the metric shows');
  t.ok(playersAdmitted(capacity) > 10, 'short steps still have a thread');
  t.notOk(capacity.admits(slow(), 0));
  t.end();
});

t.test('listeners who wait for a long first step do not keep others out', (t) => {
  const waiting = Array.from({ length: 3 }, () => demand({ voiceId: 'slow', remainingMs: 200 }));
  const capacity = new Capacity(
    () => waiting,
    () => supply,
    (voiceId) => (voiceId === 'slow' ? { ms: 2_000, speechMs: 20_000 } : undefined),
  );
  for (let i = 0; i < 4; i++)
    capacity.measure(
      worked(0.01, {
        voices: new Map([
          ['slow', { wallMs: 900, cpuMs: 900, aroundCpuMs: 0, speechMs: 9_000, begun: 1, beginMs: 900 }],
          ['ada', { wallMs: 10, cpuMs: 10, aroundCpuMs: 0, speechMs: 1_000, begun: 1, beginMs: 4 }],
        ]),
      }),
    );
  t.ok(capacity.admits(demand(), 0));
  t.end();
});

t.test('it admits what the measured cost allows, and less when a neighbour takes the CPU', (t) => {
  const capacity = new Capacity(
    () => [],
    () => supply,
  );
  for (let i = 0; i < 20; i++) capacity.measure(worked(0.01));
  // 2 cores / (0.01 + 0.001), of which nine tenths are promised; each listener needs 1 / (0.5 + 0.5) of real time.
  const alone = playersAdmitted(capacity);
  t.ok(alone > 155 && alone < 170, `${alone}`);

  const besideNeighbour = new Capacity(
    () => [],
    () => supply,
  );
  for (let i = 0; i < 20; i++) besideNeighbour.measure(worked(0.01));
  // Two seconds in which another program has one of two cores, and steps wait for a core.
  for (let i = 0; i < 8; i++)
    besideNeighbour.measure(
      worked(0.01, {
        spareCpuMs: 250,
        voices: new Map([
          ['ada', { wallMs: 20, cpuMs: 10, aroundCpuMs: 0, speechMs: 1_000, begun: 1, beginMs: 8 }],
        ]),
      }),
    );
  const beside = playersAdmitted(besideNeighbour);
  t.ok(beside < 0.65 * alone && beside > 0.4 * alone, `${beside} of ${alone}`);
  t.end();
});

t.test('a slow encoder fills the actor threads before the voice fills its own', (t) => {
  const capacity = new Capacity(
    () => [],
    () => supply,
  );
  const slow = new Map([
    ['pcm', { wallMs: 20, cpuMs: 20, aroundCpuMs: 0, speechMs: 1_000, begun: 0, beginMs: 0 }],
  ] as const);
  for (let i = 0; i < 20; i++) capacity.measure(worked(0.002, { encodings: slow }));
  const admitted = playersAdmitted(capacity);
  t.ok(admitted > 40 && admitted < 50, `${admitted}: one actor thread makes 50 s of speech a second`);
  t.end();
});

t.test('a burst is admitted as far as first audio comes soon', (t) => {
  const capacity = new Capacity(
    () => [],
    () => supply,
  );
  for (let i = 0; i < 20; i++) capacity.measure(worked(0.001));
  let admitted = 0;
  while (capacity.admits(demand(), 0)) admitted++;
  t.ok(admitted >= 60 && admitted <= 80, `${admitted}: 150 ms, 4 ms each, on two threads`);
  t.end();
});

t.test('listeners who are about to run dry stop admission, whatever the estimates say', (t) => {
  let playing: Demand[] = [];
  const capacity = new Capacity(
    () => playing,
    () => supply,
  );
  capacity.measure(worked(0.02));
  playing = Array.from({ length: 40 }, () => demand({ awaited: 'later', slackMs: 1_000 }));
  t.equal(capacity.admits(demand(), 1_000), true);
  playing = playing.map((one, i) => ({ ...one, slackMs: i < 10 ? 5 : 1_000 }));
  t.equal(capacity.admits(demand(), 2_000), false);
  t.ok(capacity.ratio(2_000) > 1);
  t.end();
});

t.test('the contexts of a socket count as one listener for others, and get what others leave', (t) => {
  const greedy = Array.from({ length: 4 }, () => ({}));
  const capacity = new Capacity(
    () =>
      greedy.flatMap((group) =>
        Array.from({ length: 130 }, () => demand({ group, awaited: 'later', slackMs: 0 })),
      ),
    () => supply,
  );
  for (let i = 0; i < 20; i++) capacity.measure(worked(0.01));
  t.ok(capacity.ratio(0) < 0.9, 'their listeners may run dry: that is their own doing');
  t.equal(capacity.admits(demand({ group: greedy[0]! }), 0), false, 'beyond a slot it gets what is left');
  const group = {};
  t.equal(capacity.admits(demand({ group }), 0), true);
  t.equal(capacity.admits(demand({ group }), 0), true, 'others need not share what it has too much');
  t.end();
});

t.test('a bad sample of one voice does not refuse it for ever', (t) => {
  const listeners = Array.from({ length: 3 }, () => demand({ group: {}, awaited: 'later', slackMs: 2_000 }));
  const capacity = new Capacity(
    () => listeners,
    () => supply,
  );
  const none = { wallMs: 0, cpuMs: 0, aroundCpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };
  const voices = (bela: Partial<typeof none>) =>
    new Map([...worked(0.001).voices, ['bela', { ...none, ...bela }] as const]);
  capacity.measure(
    worked(0, {
      voices: voices({ wallMs: 500, cpuMs: 9, aroundCpuMs: 0, speechMs: 300, begun: 1, beginMs: 500 }),
    }),
  );
  const wanted = demand({ voiceId: 'bela' });
  t.equal(capacity.admits(wanted, 0), false, 'its first step took half a second');
  for (let ms = 0; ms < 11_000; ms += 250) capacity.measure(worked(0, { voices: voices({}) }));
  t.equal(capacity.admits(wanted, 11_000), true, 'it is measured again');
  t.end();
});

t.test('text that comes word by word counts as much when it is admitted as afterwards', (t) => {
  const utterance = {
    settings: { voiceId: 'ada', temperature: 1, normalizeText: false },
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
  } as const;
  t.ok(demandOf({ ...utterance, framing: 'socket', textUnits: 1 }).remainingMs >= 2_000);
  t.equal(demandOf({ ...utterance, framing: 'stream', textUnits: 10 }).remainingMs, 700);
  t.end();
});

t.test('a listener with much unplayed audio needs little, and a whole file less than a listener', (t) => {
  const ratioOf = (one: Demand): number => {
    const capacity = new Capacity(
      () => Array.from({ length: 50 }, () => ({ ...one, group: {} })),
      () => supply,
    );
    capacity.measure(worked(0.01));
    return capacity.ratio(0);
  };
  const starved = ratioOf(demand({ awaited: 'later', slackMs: 200 }));
  const ahead = ratioOf(demand({ awaited: 'later', slackMs: 12_000 }));
  const whole = ratioOf(demand({ awaited: 'none', slackMs: 10_000 }));
  t.ok(ahead < 0.3 * starved, `${ahead} of ${starved}`);
  t.ok(whole < 0.4 * starved, `${whole} of ${starved}`);
  t.end();
});

/** A machine that speaks by earliest deadline, one chunk at a time on each thread. */
class Machine {
  nowMs = 0;
  readonly late: boolean[] = [];
  servedMs = 0;
  refused = 0;
  readonly #cpuPerMs: number;
  readonly #capacity: Capacity;
  readonly #contexts = new Set<{
    group: object;
    startMs: number;
    madeMs: number;
    chunks: number;
    totalMs: number;
    firstMs: number;
    isLate: boolean;
  }>();
  readonly #freeMs = Array.from({ length: THREADS }, () => 0);
  #effort = { wallMs: 0, cpuMs: 0, aroundCpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };

  constructor(cpuPerMs: number) {
    this.#cpuPerMs = cpuPerMs;
    this.#capacity = new Capacity(
      () => this.#demands(),
      () => supply,
    );
    this.#capacity.measure(worked(cpuPerMs));
  }

  arrive(totalMs: number): void {
    if (!this.#capacity.admits(demand({ remainingMs: totalMs }), this.nowMs)) this.refused++;
    else
      this.#contexts.add({
        group: {},
        startMs: this.nowMs,
        madeMs: 0,
        chunks: 0,
        totalMs,
        firstMs: 0,
        isLate: false,
      });
  }

  /** Runs the threads for a millisecond. */
  advance(): void {
    this.nowMs++;
    if (this.nowMs % 250 === 0) {
      this.#capacity.measure(worked(0, { voices: new Map([['ada', this.#effort]]) }));
      this.#effort = { wallMs: 0, cpuMs: 0, aroundCpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };
    }
    for (let thread = 0; thread < THREADS; thread++)
      while (this.#freeMs[thread]! < this.nowMs) {
        const next = [...this.#contexts].sort((a, b) => a.startMs + a.madeMs - (b.startMs + b.madeMs))[0];
        if (next === undefined) {
          this.#freeMs[thread] = this.nowMs;
          break;
        }
        // A step takes about 25 ms at most.
        const chunkMs = Math.min([120, 250, 500, 1_000][Math.min(next.chunks++, 3)]!, 25 / this.#cpuPerMs);
        const stepMs = Math.min(chunkMs, next.totalMs - next.madeMs);
        const stepCpuMs = STEP_CPU_MS + stepMs * this.#cpuPerMs;
        this.#freeMs[thread]! += stepCpuMs;
        this.#effort.wallMs += stepCpuMs;
        this.#effort.cpuMs += stepCpuMs;
        this.#effort.speechMs += stepMs;
        if (next.madeMs === 0) this.#effort.begun++;
        if (next.madeMs === 0) this.#effort.beginMs += stepCpuMs;
        const doneMs = this.#freeMs[thread]!;
        if (next.madeMs === 0) {
          next.firstMs = doneMs;
          next.isLate = doneMs - next.startMs > 300;
        } else if (doneMs > next.firstMs + next.madeMs + 100) next.isLate = true;
        next.madeMs += stepMs;
        this.servedMs += stepMs;
        if (next.madeMs < next.totalMs) continue;
        this.#contexts.delete(next);
        this.late.push(next.isLate);
      }
  }

  *#demands(): Iterable<Demand> {
    for (const { group, firstMs, madeMs, totalMs } of this.#contexts)
      yield demand({
        group,
        remainingMs: totalMs - madeMs,
        ...(madeMs > 0 && { awaited: 'later', slackMs: Math.max(0, firstMs + madeMs - this.nowMs) }),
      });
  }
}

for (const [times, cpuPerMs] of [
  [2, 0.04],
  [10, 0.04],
  [4, 0.2],
] as const)
  t.test(`${times} times the load that a simulated machine holds, at ${cpuPerMs} of real time`, (t) => {
    const random = seededRandom(times);
    const machine = new Machine(cpuPerMs);
    const capacityPerMs = THREADS / (cpuPerMs + STEP_CPU_MS / 500);
    let nextMs = 0;
    for (let ms = 0; ms < 20_000; ms++) {
      for (; nextMs <= ms; nextMs += (-Math.log(1 - random()) * 4_500) / (times * capacityPerMs))
        machine.arrive(3_000 + random() * 3_000);
      machine.advance();
    }
    const late = machine.late.filter(Boolean).length;
    t.ok(machine.refused > 0);
    t.ok(late <= 0.02 * machine.late.length, `${late} of ${machine.late.length} came late`);
    const served = machine.servedMs / (20_000 * capacityPerMs);
    t.ok(served >= 0.7, `${served.toFixed(2)} of the capacity was used`);
    t.end();
  });

t.test('nothing is refused at eight tenths of the load that a simulated machine holds', (t) => {
  const random = seededRandom(8);
  const machine = new Machine(0.02);
  const capacityPerMs = THREADS / (0.02 + STEP_CPU_MS / 500);
  let nextMs = 0;
  for (let ms = 0; ms < 20_000; ms++) {
    for (; nextMs <= ms; nextMs += (-Math.log(1 - random()) * 4_500) / (0.8 * capacityPerMs))
      machine.arrive(3_000 + random() * 3_000);
    machine.advance();
  }
  t.equal(machine.refused, 0);
  t.equal(machine.late.filter(Boolean).length, 0);
  t.end();
});
