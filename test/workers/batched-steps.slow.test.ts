/** Which steps run as one, and what listeners hear of it on a simulated GPU. */
import t from 'tap';
import { seededRandom } from '../../scripts/rig/random.js';
import { Capacity } from '../../src/speech/capacity.js';
import { PlaybackClock } from '../../src/threads/playback-clock.js';
import { StepQueue } from '../../workers/step-queue.js';
import { type GpuTimes, type SimulatedListener, simulate } from '../support/simulated-gpu.js';

const settle = () => new Promise((resolve) => setImmediate(resolve));

interface NamedStep {
  readonly name: string;
  readonly engine: { readonly batchMax: number };
  readonly window: number;
}

/** A queue whose turns are written down: the names of the steps that run as one. */
const recorded = () => {
  const queue = new StepQueue<NamedStep>(() => 0);
  const turns: string[] = [];
  const enter = (
    name: string,
    dueMs: number,
    engine: NamedStep['engine'],
    more: { window?: number; group?: number; longMs?: number } = {},
  ) => {
    const step = { name, engine, window: more.window ?? 0 };
    const share = more.group === undefined ? undefined : { group: more.group, clock: new PlaybackClock() };
    void queue
      .enter({ dueMs: () => dueMs, share }, more.longMs, step)
      .then((others) => turns.push([step, ...others].map((one) => one.name).join('')));
  };
  const next = async () => {
    queue.leave();
    await settle();
    await settle();
    return turns.at(-1);
  };
  return { enter, next, turns };
};

t.test(
  'the step that is due first takes those with its engine and window, the most urgent first',
  async (t) => {
    const { enter, next } = recorded();
    const [gpu, other, cpu] = [{ batchMax: 3 }, { batchMax: 4 }, { batchMax: 1 }];
    enter('0', 0, gpu);
    enter('a', 5, gpu);
    enter('b', 3, gpu);
    enter('c', 4, gpu);
    enter('d', 1, gpu);
    enter('e', 2, other);
    enter('f', 2, gpu, { window: 1 });
    enter('g', 6, other);
    enter('h', 7, cpu);
    enter('i', 8, cpu);
    t.equal(await next(), 'dbc', 'no more than its engine takes');
    t.equal(await next(), 'eg');
    t.equal(await next(), 'f', 'another window has another length');
    t.equal(await next(), 'a', 'it does not wait for more');
    t.equal(await next(), 'h');
    t.equal(await next(), 'i', 'on the CPU one at a time');
  },
);

t.test('an engine that loses its GPU takes no more with a step', async (t) => {
  const { enter, next } = recorded();
  const engine = { batchMax: 4 };
  enter('0', 0, engine);
  enter('a', 1, engine);
  enter('b', 2, engine);
  engine.batchMax = 1;
  t.equal(await next(), 'a');
  t.equal(await next(), 'b');
});

t.test('a group has one place in a batch, and those that are left', async (t) => {
  const { enter, next } = recorded();
  const engine = { batchMax: 4 };
  enter('0', 0, engine);
  enter('a', 1, engine, { group: 1 });
  enter('b', 2, engine, { group: 1 });
  enter('c', 3, engine, { group: 1 });
  enter('d', 4, engine, { group: 2 });
  enter('e', 5, engine);
  t.equal(await next(), 'adeb');
  t.equal(await next(), 'c');
});

/** A run of 16 items makes 16 s of audio in 20 ms, and one alone a second in 5 ms. */
const times: GpuTimes = { launchMs: 4, audioSecondMs: 1, batchMax: 16 };
const longestMs = times.launchMs + times.batchMax * times.audioSecondMs;
/** Listeners of 11 s whose 13 chunks are all made in full batches. */
const capacity = 11_000 / (11 * times.audioSecondMs + (13 * times.launchMs) / times.batchMax);

/** Listeners of 2 to 20 s of audio, so many at a time on average. */
const arrivals = (seed: number, atATime: number, untilMs: number): SimulatedListener[] => {
  const random = seededRandom(seed);
  const listeners: SimulatedListener[] = [];
  const meanMs = 11_000;
  for (let arrivesMs = 0; arrivesMs < untilMs;) {
    arrivesMs += (-Math.log(1 - random()) * meanMs) / atATime;
    listeners.push({ arrivesMs, audioMs: 2_000 + 18_000 * random() });
  }
  return listeners;
};

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

t.test('up to 0.7 of the capacity no listener runs dry, and batches grow with the load', async (t) => {
  let before = 0;
  // First chunks are short and do not wait for others. So their batches are not full, and above 0.75 listeners run dry.
  for (const part of [0.01, 0.2, 0.7]) {
    const listeners = arrivals(1, part * capacity, 10_000);
    const { heard, runs } = await simulate(listeners, times);
    const load = `${part} of the capacity`;
    t.equal(heard.length, listeners.length);
    t.ok(
      heard.every(({ endedMs }) => endedMs > 0),
      `${load}: all are spoken`,
    );
    t.equal(Math.max(...heard.map(({ dryMs }) => dryMs)), 0, `${load}: none is dry`);
    const size = meanOf(runs.map(({ members }) => members.length));
    t.ok(size > before, `${load}: ${size.toFixed(1)} steps in a batch`);
    before = size;
    if (part === 0.01) t.ok(size < 1.3, 'a listener alone waits for nobody');
    const first = Math.max(...heard.map(({ firstAudioMs }) => firstAudioMs));
    t.ok(first < 4 * longestMs, `${load}: first audio after ${first.toFixed(0)} ms at most`);
  }
});

t.test('admission fills the GPU, not only until it is never idle, and no listener runs dry', async (t) => {
  const supply = { synthesisThreads: 1, longThreads: 1, actorThreads: 16, cores: 16 };
  const listeners = arrivals(1, 2 * capacity, 15_000);
  const { heard, runs } = await simulate(
    listeners,
    times,
    (options) => new Capacity({ ...options, supply: () => supply }),
  );
  const admitted = listeners.flatMap(({ arrivesMs, audioMs }, i) =>
    heard[i]!.isRefused ? [] : [{ from: arrivesMs, to: arrivesMs + audioMs, ...heard[i]! }],
  );
  const playing = admitted.filter(({ from, to }) => from < 14_000 && to > 14_000).length;
  const part = playing / capacity;
  t.ok(part > 0.7 && part < 0.9, `${playing} listeners at once, ${part.toFixed(2)} of the capacity`);
  const alone = runs.filter(({ members }) => members.length === 1).length;
  t.ok(alone < runs.length / 2, `${alone} of ${runs.length} runs have one step`);
  const dryMs = Math.max(...admitted.map((one) => one.dryMs));
  t.ok(dryMs <= 100, `none is dry for more than ${dryMs.toFixed(0)} ms`);
  const first = Math.max(...admitted.map(({ firstAudioMs }) => firstAudioMs));
  t.ok(first < 500, `first audio after ${first.toFixed(0)} ms at most`);
});

t.test('without batches the same GPU is out of capacity', async (t) => {
  const { heard } = await simulate(arrivals(1, 0.7 * capacity, 7_000), { ...times, batchMax: 1 });
  const longestMs = Math.max(...heard.map(({ dryMs, firstAudioMs }) => Math.max(dryMs, firstAudioMs)));
  t.ok(longestMs > 1_000, `somebody waits for ${longestMs.toFixed(0)} ms`);
});

t.test('a burst of new listeners is served in batches, before those who have audio', async (t) => {
  const playing = Array.from({ length: 40 }, () => ({ arrivesMs: 0, audioMs: 20_000 }));
  const burst = Array.from({ length: 48 }, () => ({ arrivesMs: 5_000, audioMs: 3_000 }));
  const { heard, runs } = await simulate([...playing, ...burst], times);
  const served = runs.filter(({ atMs, window }) => atMs >= 5_000 && window === 0);
  t.same(
    served.map(({ members }) => members.length),
    [1, 16, 16, 15],
    'the first found the queue free',
  );
  const worst = Math.max(...heard.slice(40).map(({ firstAudioMs }) => firstAudioMs));
  t.ok(
    worst <= 4 * longestMs,
    `the last has first audio after ${worst.toFixed(0)} ms: the run before, and three batches`,
  );
});

t.test('beyond the capacity a group of many contexts gets what one listener gets', async (t) => {
  const slow = { launchMs: 40, audioSecondMs: 10, batchMax: 4 };
  const others = Array.from({ length: 60 }, () => ({ arrivesMs: 0, audioMs: 10_000 }));
  const group = Array.from({ length: 60 }, () => ({ arrivesMs: 0, audioMs: 10_000, group: 1 }));
  const { runs } = await simulate([...group, ...others], slow);
  const members = runs.filter(({ atMs }) => atMs < 5_000).flatMap((run) => run.members);
  const ofGroup = members.filter((listener) => listener < group.length).length;
  t.ok(members.length > 200, `${members.length} steps`);
  t.ok(ofGroup < members.length / 10, `${ofGroup} of them for the group`);
});
