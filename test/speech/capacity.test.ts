/** Which utterances the one rule admits: by hand, and on a simulated machine. */
import t from 'tap';
import { seededRandom } from '../../scripts/rig/random.js';
import { Capacity, type Demand, type Supply } from '../../src/speech/capacity.js';
import { Costs } from '../../src/speech/costs.js';
import type { LongStep, VoiceCost } from '../../src/threads/voices.js';

const THREADS = 2;
/** What each step costs in the simulation, whatever it makes. */
const STEP_CPU_MS = 1;
/** What the rule promises of a supply. */
const PROMISED = 0.9;
/** The same in a burst. */
const BURST_PROMISED = 0.7;
/** What the rule asks for beyond what a listener plays: as much as 25 ms of CPU time make. */
const IN_HAND_MS = 25 / 0.02;

/** Of a listener who waits for first audio. */
const demand = (given: Partial<Demand> = {}): Demand => ({
  account: 'default',
  group: {},
  voiceId: 'ada',
  encoding: 'pcm',
  remainingMs: 4_000,
  slackMs: 0,
  isAwaiting: true,
  ...given,
});

/** A listener with this much in hand, who needs much more. */
const playing = (slackMs = 0, given: Partial<Demand> = {}): Demand =>
  demand({ remainingMs: 60_000, isAwaiting: false, slackMs, ...given });

const listeners = (count: number, one: (at: number) => Demand): Demand[] =>
  Array.from({ length: count }, (_, at) => one(at));

const supply: Supply = { synthesisThreads: THREADS, longThreads: THREADS - 1, actorThreads: 1, cores: 2 };

const costsOf = (voice: (voiceId: string) => VoiceCost, encodingCpu = 0.001) => ({
  voices: { of: voice },
  encodings: { of: () => ({ cpu: encodingCpu, beginMs: 0 }) },
});

const create = ({
  demands = [],
  voice = { cpu: 0.02, beginMs: 8 },
  encodingCpu = 0.001,
  has = supply,
  longStepOf,
}: {
  demands?: readonly Demand[];
  voice?: VoiceCost;
  encodingCpu?: number;
  has?: Supply;
  longStepOf?: (voiceId: string) => LongStep | undefined;
} = {}) =>
  new Capacity({
    demands: () => demands,
    supply: () => has,
    costs: costsOf(() => voice, encodingCpu),
    ...(longStepOf !== undefined && { longStepOf }),
  });

/** How many utterances like this it admits. */
const admitted = (capacity: Capacity, one: () => Demand, nowMs = 0): number => {
  for (let count = 0; count < 10_000; count++) if (capacity.refusal(one(), nowMs) !== null) return count;
  return Number.POSITIVE_INFINITY;
};

/** What the rule holds of listeners with nothing in hand: over many seconds each needs one of speech a second. */
const capacityOf = (cpu: number): number => (THREADS * PROMISED) / cpu;

t.test(
  'a burst from silence of more than half of the capacity is admitted, and not one of twice of it',
  (t) => {
    const capacity = create();
    const held = capacityOf(0.02);
    const count = admitted(capacity, () => demand({ remainingMs: 10_000 }));
    t.ok(count > 0.6 * held && count < 0.65 * held, `${count}, of ${held} who listen for long`);
    t.end();
  },
);

t.test('a crowd that began one after the other, not all at once, is no larger for that', (t) => {
  const crowd = listeners(52, (at) => demand({ remainingMs: 10_000, slackMs: -3 * at }));
  t.ok(crowd.length > 0.55 * capacityOf(0.02));
  t.equal(create({ demands: crowd }).refusal(demand(), 0), null);
  t.end();
});

t.test(
  'a burst ends after a second; then first audio must come soon, until the machine is calm again',
  (t) => {
    // Nobody of them has begun: their first second of speech is too much for the first second.
    const crowd = listeners(45, () => demand({ remainingMs: 4_000 }));
    const capacity = create({ demands: crowd });
    t.equal(capacity.refusal(demand(), 10_000), null, 'the burst begins');
    t.ok(capacity.isFull(10_000));
    t.equal(capacity.refusal(demand(), 10_900), null);
    t.match(capacity.refusal(demand(), 11_100), { firstAudioMsMax: 150, withinSeconds: 1 }, 'it is over');
    t.not(capacity.refusal(demand(), 15_000), null, 'the same crowd is no other burst');
    t.equal(capacity.isFull(20_100), false);
    t.equal(capacity.refusal(demand(), 20_100), null, 'another one after five calm seconds');
    t.end();
  },
);

t.test('a burst may wait for a second: what it begins with is no work of the first second', (t) => {
  // All are admitted by their speech, and their first steps take 600 ms of each thread.
  const burst = listeners(40, () => demand({ remainingMs: 2_000 }));
  t.ok(create({ demands: burst, voice: { cpu: 0.002, beginMs: 30 } }).refusal(demand(), 0) === null);
  const slow = create({ demands: burst, voice: { cpu: 0.002, beginMs: 120 } }).refusal(demand(), 0);
  t.match(
    slow,
    { withinSeconds: 2, supply: 'cores', firstAudioMsMax: 1_000 },
    'more than two seconds to begin',
  );
  t.end();
});

t.test('under a steady load it is full at what the machine can make', (t) => {
  const held = capacityOf(0.02);
  const at = (count: number) =>
    create({
      demands: listeners(count, (one) => playing(IN_HAND_MS - 900 + (one % 10) * 200)),
      encodingCpu: 0,
    });
  t.equal(at(Math.floor(0.9 * held)).refusal(demand(), 0), null);
  t.not(at(Math.ceil(1.05 * held)).refusal(demand(), 0), null);
  const { ratio } = at(Math.round(held / 2)).fullness(0);
  t.ok(ratio > 0.45 && ratio < 0.65, `half full: ${ratio}`);
  t.end();
});

t.test('listeners with much in hand count, because they need speech again when that is played', (t) => {
  const held = capacityOf(0.02);
  const at = (count: number, inHandMs: number) =>
    create({
      demands: listeners(count, () => playing(inHandMs, { remainingMs: 3_600_000 })),
      encodingCpu: 0,
    });
  for (const inHandMs of [2_000, 10_000, 20_000, 40_000]) {
    t.not(at(Math.ceil(1.25 * held), inHandMs).refusal(demand(), 0), null, `${inHandMs} ms in hand`);
    const small = at(Math.ceil(1.25 * held), inHandMs).refusal(demand({ account: 'small' }), 0);
    if (inHandMs >= 20_000) t.equal(small, null, 'a small account is served as long as it can be');
  }
  t.equal(at(Math.floor(0.9 * held), 20_000).refusal(demand(), 0), null);
  t.end();
});

t.test('an account that fills the machine leaves room for small ones', (t) => {
  const capacity = create();
  const held = admitted(capacity, () => demand({ account: 'large' }));
  t.not(capacity.refusal(demand({ account: 'large' }), 0), null);
  const small = admitted(capacity, () => demand({ account: 'small' }));
  t.ok(small > 0 && small <= held / 4, `${small} beside ${held}`);
  const equal = create();
  let count = 0;
  admitted(equal, () => demand({ account: count++ % 2 === 0 ? 'a' : 'b' }));
  for (const account of ['a', 'b']) t.not(equal.refusal(demand({ account }), 0), null, 'equal ones share');
  t.end();
});

t.test('what a large account is to have in hand, or waits for, does not keep out a small one', (t) => {
  // Within a second they need 630 ms of work to play, and 790 to have 1,250 ms in hand then.
  const large = listeners(30, (at) => playing(at % 2 === 0 ? 0 : -20, { account: 'large' }));
  const has = { ...supply, cores: 1.2 };
  const capacity = create({ demands: large, has });
  t.not(capacity.refusal(demand({ account: 'large' }), 0), null);
  t.equal(capacity.refusal(demand({ account: 'small' }), 0), null);
  const waiting = create({ demands: listeners(120, () => demand({ account: 'large', remainingMs: 500 })) });
  waiting.refusal(demand({ account: 'large' }), 0);
  t.not(waiting.refusal(demand({ account: 'large' }), 1_100), null, 'the burst is over');
  t.equal(waiting.refusal(demand({ account: 'small' }), 1_100), null);
  const short = create({ demands: large, has: { ...supply, cores: 0.9 } });
  t.not(short.refusal(demand({ account: 'small' }), 0), null, 'what they play does');
  t.end();
});

t.test('2,050 demands are counted in a twentieth of the time, and what is freed counts then', (t) => {
  let counts = 0;
  let demands = listeners(2_050, (at) => playing(0, { group: `socket ${Math.floor(at / 64)}` }));
  const capacity = new Capacity({
    demands: () => {
      counts++;
      return demands;
    },
    supply: () => supply,
    costs: costsOf(() => ({ cpu: 0.2, beginMs: 8 })),
  });
  for (let ms = 0; ms < 400; ms++) {
    capacity.freed();
    capacity.refusal(demand(), ms);
  }
  t.equal(counts, 10);
  demands = [];
  t.not(capacity.refusal(demand(), 399), null);
  t.equal(capacity.refusal(demand(), 401), null);
  t.end();
});

t.test('with few demands, what is freed counts at once', (t) => {
  const demands = listeners(40, () => playing(0));
  const capacity = create({ demands, voice: { cpu: 0.2, beginMs: 8 } });
  t.not(capacity.refusal(demand(), 0), null);
  demands.length = 0;
  capacity.freed();
  t.equal(capacity.refusal(demand(), 0), null, 'within the same microseconds');
  t.end();
});

t.test('a listener with much in hand does not count for the seconds that it has', (t) => {
  const held = Math.round(capacityOf(0.02));
  const many = create({ demands: listeners(2 * held, () => playing(10_000, { remainingMs: 2_000 })) });
  t.equal(many.refusal(demand(), 0), null, 'two seconds in ten');
  const soon = create({ demands: listeners(2 * held, () => playing(3_000)) });
  t.match(soon.refusal(demand(), 0), { withinSeconds: 48 }, 'who plays on for long needs more than there is');
  const ending = create({
    demands: listeners(Math.round(1.2 * held), () => playing(3_000, { remainingMs: 3_000 })),
  });
  t.equal(ending.refusal(demand(), 0), null, 'four seconds for what the machine makes in less');
  t.end();
});

t.test('it refuses what would be too much at any second, and says so', (t) => {
  const has = { ...supply, cores: 8, actorThreads: 8 };
  const capacity = create({
    has,
    demands: listeners(40, () => playing(0, { remainingMs: 2_000 })),
    encodingCpu: 0,
  });
  // Each needs its two seconds of speech within the first one: what it is to have in hand, beyond what it plays.
  t.equal(capacity.refusal(playing(5_000), 0), null, `1,600 ms of work, of ${2_000 * PROMISED}`);
  const more = create({
    has,
    demands: listeners(60, () => playing(0, { remainingMs: 2_000 })),
    encodingCpu: 0,
  });
  const refused = more.refusal(playing(5_000), 0);
  t.match(refused, { supply: 'synthesis threads', withinSeconds: 1, promisedMs: 2_000 * BURST_PROMISED });
  t.ok(Math.abs((refused?.askedMs ?? 0) - 60 * 2_000 * 0.02) < 1e-6, `asked ${refused?.askedMs}`);
  t.ok(Math.abs((refused?.ratio ?? 0) - (refused?.askedMs ?? 0) / (refused?.promisedMs ?? 1)) < 1e-9);
  t.end();
});

t.test('each of the four supplies binds', (t) => {
  const plenty: Supply = { synthesisThreads: 100, longThreads: 99, actorThreads: 100, cores: 100 };
  const long = (voiceId: string) => (voiceId === 'ada' ? { ms: 400, speechMs: 5_000 } : undefined);
  const busy = listeners(200, () => playing());
  const refusalOf = (has: Partial<Supply>, longStepOf?: typeof long) =>
    create({
      ...{ demands: busy, encodingCpu: 0.02, has: { ...plenty, ...has } },
      ...(longStepOf !== undefined && { longStepOf }),
    }).refusal(playing(), 0);
  t.equal(refusalOf({}), null);
  t.match(refusalOf({ synthesisThreads: 2 }), { supply: 'synthesis threads' });
  t.match(refusalOf({ actorThreads: 2 }), { supply: 'actor threads' }, 'although it has synthesis threads');
  t.match(refusalOf({ cores: 2, synthesisThreads: 90 }), { supply: 'cores' });
  t.match(refusalOf({ longThreads: 2 }, long), { supply: 'threads for long steps' });
  t.end();
});

t.test('an idle thread admits one utterance, however slow the voice', (t) => {
  const capacity = create({ voice: { cpu: 5, beginMs: 2_000 } });
  t.equal(admitted(capacity, demand), THREADS);
  const busy = create({ voice: { cpu: 5, beginMs: 2_000 }, demands: [playing()] });
  t.equal(admitted(busy, demand), THREADS - 1);
  t.equal(
    admitted(create({ voice: { cpu: 5, beginMs: 0 }, has: { ...supply, cores: 0.01 } }), demand),
    THREADS,
  );
  t.end();
});

t.test('voices with long steps fill the threads for them, and leave the others to short steps', (t) => {
  const slow = () => playing(1_000, { voiceId: 'slow' });
  const capacity = new Capacity({
    demands: () => [],
    supply: () => supply,
    costs: costsOf((voiceId) =>
      voiceId === 'slow' ? { cpu: 0.4, beginMs: 2_000 } : { cpu: 0.02, beginMs: 8 },
    ),
    longStepOf: (voiceId) => (voiceId === 'slow' ? { ms: 2_000, speechMs: 5_000 } : undefined),
  });
  t.equal(admitted(capacity, slow), 2, 'three would need more than one thread');
  t.match(capacity.refusal(slow(), 0), { supply: 'threads for long steps' });
  t.ok(capacity.fullness(0).ratio > 0.7, 'which the metric shows');
  t.ok(admitted(capacity, () => playing(500)) > 10, 'short steps still have a thread');
  t.end();
});

t.test('listeners who wait for a long first step do not keep others out', (t) => {
  const capacity = new Capacity({
    demands: () => listeners(3, () => demand({ voiceId: 'slow', remainingMs: 200 })),
    supply: () => supply,
    costs: costsOf((voiceId) =>
      voiceId === 'slow' ? { cpu: 0.1, beginMs: 1_900 } : { cpu: 0.01, beginMs: 4 },
    ),
    longStepOf: (voiceId) => (voiceId === 'slow' ? { ms: 2_000, speechMs: 20_000 } : undefined),
  });
  t.equal(capacity.refusal(demand(), 0), null);
  t.end();
});

t.test('the contexts of a socket count as one listener for others, and get what others leave', (t) => {
  const held = Math.round(capacityOf(0.02));
  const greedy = listeners(4, () => playing()).map(({ group }) => group);
  const demands = greedy.flatMap((group) => listeners(held, () => playing(0, { group })));
  const capacity = create({ demands });
  t.ok(capacity.fullness(0).ratio < 0.12, 'their listeners may run dry: that is their own doing');
  t.not(capacity.refusal(demand({ group: greedy[0]! }), 0), null, 'beyond a slot it gets what is left');
  t.ok(admitted(capacity, () => playing(1_000)) > 0.6 * held, 'others need not share what it has too much');
  const group = {};
  const mixed = create({ demands: [playing(9_000, { group }), playing(0, { group, remainingMs: 1_000 })] });
  const alone = create({ demands: [playing(0, { remainingMs: 1_000 })] });
  t.ok(mixed.fullness(0).ratio < 1.5 * alone.fullness(0).ratio);
  const others = listeners(held, () => playing());
  const beside = create({ demands: [...others, playing(0, { group })] }).refusal(demand({ group }), 0);
  t.not(beside, null);
  t.strictSame(
    beside,
    create({ demands: [...others, playing()] }).refusal(demand(), 0),
    'it counts its own once',
  );
  t.end();
});

t.test('an utterance that is admitted counts at once, one that is over no more', (t) => {
  let demands = listeners(200, () => playing());
  const capacity = new Capacity({
    demands: () => demands,
    supply: () => supply,
    costs: costsOf(() => ({ cpu: 0.02, beginMs: 8 })),
  });
  t.not(capacity.refusal(demand(), 1_000), null);
  demands = [];
  t.not(capacity.refusal(demand(), 1_005), null, 'what was counted is used for some milliseconds');
  capacity.freed();
  t.equal(capacity.refusal(demand(), 1_005), null);
  t.ok(capacity.fullness(1_005).ratio > 0);
  t.equal(capacity.fullness(1_025).ratio, 0, 'counted again, without the one that never began');
  t.end();
});

interface SimulatedContext {
  readonly group: object;
  readonly startMs: number;
  readonly totalMs: number;
  madeMs: number;
  chunks: number;
  firstMs: number;
  isDry: boolean;
}

/** A machine that speaks by earliest deadline, one chunk at a time on each thread. First audio waits as in the step queue. */
class Machine {
  nowMs = 0;
  /** Whether those that ended ran dry. */
  readonly dry: boolean[] = [];
  readonly firstAudioMs: number[] = [];
  servedMs = 0;
  refused = 0;
  readonly #cpuPerMs: number;
  readonly #capacity: Capacity;
  readonly #contexts = new Set<SimulatedContext>();
  readonly #freeMs = Array.from({ length: THREADS }, () => 0);
  readonly #costs = new Costs();
  #effort = { cpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };

  constructor(cpuPerMs: number) {
    this.#cpuPerMs = cpuPerMs;
    this.#costs.voices.measured('ada', { cpu: cpuPerMs, beginMs: STEP_CPU_MS + 120 * cpuPerMs });
    this.#costs.encodings.measured('pcm', { cpu: 0.0001, beginMs: 0 });
    this.#capacity = new Capacity({
      demands: () => this.#demands(),
      supply: () => supply,
      costs: this.#costs,
    });
  }

  arrive(totalMs: number): void {
    if (this.#capacity.refusal(demand({ remainingMs: totalMs }), this.nowMs) !== null) this.refused++;
    else
      this.#contexts.add({
        group: {},
        startMs: this.nowMs,
        madeMs: 0,
        chunks: 0,
        totalMs,
        firstMs: 0,
        isDry: false,
      });
  }

  /** Runs the threads for a millisecond. */
  advance(): void {
    this.nowMs++;
    if (this.nowMs % 250 === 0) {
      this.#costs.voices.add('ada', this.#effort);
      this.#effort = { cpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };
    }
    for (let thread = 0; thread < THREADS; thread++)
      while (this.#freeMs[thread]! < this.nowMs) {
        const dueMs = ({ startMs, firstMs, madeMs }: SimulatedContext): number =>
          madeMs > 0
            ? firstMs + madeMs
            : Math.max(startMs, Math.min(this.#freeMs[thread]! + 60, startMs + 1_000));
        const [next] = [...this.#contexts].sort((a, b) => dueMs(a) - dueMs(b));
        if (next === undefined) {
          this.#freeMs[thread] = this.nowMs;
          break;
        }
        // A step takes about 25 ms at most.
        const chunkMs = Math.min([120, 250, 500, 1_000][Math.min(next.chunks++, 3)]!, 25 / this.#cpuPerMs);
        const stepMs = Math.min(chunkMs, next.totalMs - next.madeMs);
        const stepCpuMs = STEP_CPU_MS + stepMs * this.#cpuPerMs;
        this.#freeMs[thread]! += stepCpuMs;
        this.#effort.cpuMs += stepCpuMs;
        this.#effort.speechMs += stepMs;
        if (next.madeMs === 0) this.#effort.begun++;
        if (next.madeMs === 0) this.#effort.beginMs += stepCpuMs;
        const doneMs = this.#freeMs[thread]!;
        if (next.madeMs === 0) {
          next.firstMs = doneMs;
          this.firstAudioMs.push(doneMs - next.startMs);
        } else {
          const dryMs = Math.max(0, doneMs - next.firstMs - next.madeMs);
          next.firstMs += dryMs;
          if (dryMs > 100) next.isDry = true;
        }
        next.madeMs += stepMs;
        this.servedMs += stepMs;
        if (next.madeMs < next.totalMs) continue;
        this.#contexts.delete(next);
        this.dry.push(next.isDry);
      }
  }

  *#demands(): Iterable<Demand> {
    for (const { group, startMs, firstMs, madeMs, totalMs } of this.#contexts)
      yield demand({
        group,
        remainingMs: totalMs - madeMs,
        slackMs: (madeMs > 0 ? firstMs + madeMs : startMs) - this.nowMs,
        isAwaiting: madeMs === 0,
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
    t.ok(machine.refused > 0);
    const dry = machine.dry.filter(Boolean).length;
    t.ok(dry <= 0.02 * machine.dry.length, `${dry} of ${machine.dry.length} ran dry`);
    const firstMs = machine.firstAudioMs.toSorted((a, b) => a - b);
    const [p95 = 0, p99 = 0] = [0.95, 0.99].map((part) => firstMs[Math.floor(part * firstMs.length)]);
    t.ok(p95 <= 400 && p99 <= 1_000, `first audio after ${p95.toFixed(0)}, ${p99.toFixed(0)} ms`);
    const served = machine.servedMs / (20_000 * capacityPerMs);
    t.ok(served >= 0.85, `${served.toFixed(2)} of the capacity was used`);
    t.end();
  });

t.test('nothing is refused at nine tenths of the load that a simulated machine holds', (t) => {
  const random = seededRandom(8);
  const machine = new Machine(0.02);
  const capacityPerMs = THREADS / (0.02 + STEP_CPU_MS / 500);
  let nextMs = 0;
  for (let ms = 0; ms < 20_000; ms++) {
    for (; nextMs <= ms; nextMs += (-Math.log(1 - random()) * 4_500) / (0.9 * capacityPerMs))
      machine.arrive(3_000 + random() * 3_000);
    machine.advance();
  }
  t.equal(machine.refused, 0);
  t.equal(machine.dry.filter(Boolean).length, 0);
  t.end();
});
