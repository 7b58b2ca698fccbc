/**
 * What each listener gets when many speak at once, or a socket speaks in many contexts: the scheduler, the step queues of two
 * threads, the playback clocks and the shares of the groups, with steps that take simulated time.
 */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { Listener } from '../../src/speech/listener.js';
import { Scheduler, type ScheduledContext, type SegmentStart } from '../../src/speech/scheduler.js';
import { ClockTable, type PlaybackClock } from '../../src/threads/playback-clock.js';
import { StepQueue, type StepDue } from '../../workers/step-queue.js';
import { segment } from '../support/scheduling.js';
import { countShare } from '../../workers/synthesis-thread.js';

const THREADS = 2;
const CHUNKS_MS = [120, 250];
const SEGMENT = 'A sentence of two seconds here.';
const MS_PER_CHARACTER = 70;

/** Plays in real time from its first audio on, and always has text. */
class Hearer {
  readonly #machine: Machine;
  readonly #context: ScheduledContext;
  readonly #listener: Listener;
  readonly #group: number | undefined;
  readonly #beganMs: number;
  #segments = 0;
  firstAudioMs = Number.POSITIVE_INFINITY;
  dryMs = 0;

  constructor(machine: Machine, group?: object) {
    this.#machine = machine;
    this.#beganMs = machine.nowMs;
    this.#listener = new Listener(machine.clocks.clock(machine.clocks.take()), 'stream', machine.nowMs);
    this.#context = machine.scheduler.open({
      ...{ group: group ?? {}, listener: this.#listener, bytesPerMs: 0, speed: 1 },
      start: (start) => this.#start(start),
      move: () => undefined,
    });
    this.#group = group === undefined ? undefined : machine.scheduler.shareOf(this.#context);
    this.#write();
  }

  get heardMs(): number {
    return this.#listener.arrivedMs;
  }

  #start({ segment: started, startMs, isAwaited }: SegmentStart): void {
    const job = { clock: this.#listener.clock, startMs, isAwaited };
    const { clocks, scheduler } = this.#machine;
    const isShared = this.#group !== undefined && this.#context.running.length === 1;
    const share = isShared ? { group: this.#group, clock: clocks.clock(this.#group) } : undefined;
    void this.#machine
      .speak(job, share, (chunkMs) => this.#hear(started.index, chunkMs))
      .then((durationMs) => {
        this.#write();
        scheduler.finished(this.#context, started, durationMs);
      });
  }

  #write(): void {
    while (this.#context.queued.length < 2)
      this.#machine.scheduler.enqueue(this.#context, segment(this.#segments++, SEGMENT.length));
  }

  #hear(index: number, chunkMs: number): void {
    const { nowMs, scheduler } = this.#machine;
    if (this.heardMs === 0) this.firstAudioMs = nowMs - this.#beganMs;
    this.dryMs = Math.max(this.dryMs, this.#listener.arrived(nowMs, index, chunkMs));
    scheduler.handed(this.#context, chunkMs);
  }
}

interface SimulatedJob {
  readonly clock: PlaybackClock;
  readonly isAwaited: boolean;
  startMs: number;
}

class Machine {
  readonly clocks = new ClockTable(2_000);
  readonly scheduler: Scheduler;
  nowMs = 1_000;
  readonly #msPerStepMs: number;
  readonly #threads = Array.from({ length: THREADS }, () => ({
    queue: new StepQueue(() => this.nowMs),
    jobs: 0,
  }));
  readonly #sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];

  /** @param capacity seconds of speech that all threads make in a second */
  constructor(capacity: number) {
    this.#msPerStepMs = capacity / THREADS;
    this.scheduler = new Scheduler({
      clock: () => this.nowMs,
      clocks: this.clocks,
      threads: THREADS,
      jobsMax: THREADS * limits.jobsPerThreadMax,
      bounds: limits,
    });
  }

  listen(group?: object): Hearer {
    return new Hearer(this, group);
  }

  /** Time passes, and the threads work. */
  async run(durationMs: number): Promise<void> {
    const endMs = this.nowMs + durationMs;
    for (;;) {
      // A queue chooses the next step one turn of the event loop after a step.
      for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
      let next = 0;
      this.#sleepers.forEach(({ atMs }, at) => {
        if (atMs < (this.#sleepers[next]?.atMs ?? 0)) next = at;
      });
      const [sleeper] = this.#sleepers.splice(next, 1);
      if (sleeper === undefined) throw new Error('no thread works');
      if (sleeper.atMs > endMs) {
        this.#sleepers.push(sleeper);
        this.nowMs = endMs;
        return;
      }
      this.nowMs = sleeper.atMs;
      sleeper.wake();
    }
  }

  /** @returns milliseconds of the segment */
  async speak(
    job: SimulatedJob,
    share: StepDue['share'],
    onChunk: (chunkMs: number) => void,
  ): Promise<number> {
    const thread = this.#threads.reduce((best, other) => (other.jobs < best.jobs ? other : best));
    thread.jobs++;
    const durationMs = SEGMENT.length * MS_PER_CHARACTER;
    let madeMs = 0;
    const dueMs = () => job.clock.at(job.startMs + madeMs);
    for (let step = 0; madeMs < durationMs; step++) {
      await thread.queue.enter({ dueMs, share, urgency: job.isAwaited && step === 0 ? 'first' : 'playing' });
      const chunkMs = Math.min(CHUNKS_MS[Math.min(step, 1)] ?? 0, durationMs - madeMs);
      await new Promise<void>((wake) => {
        this.#sleepers.push({ atMs: this.nowMs + chunkMs / this.#msPerStepMs, wake });
      });
      if (share !== undefined) countShare(share.clock, chunkMs, this.nowMs);
      madeMs += chunkMs;
      thread.queue.leave();
      onChunk(chunkMs);
    }
    thread.jobs--;
    return durationMs;
  }
}

const most = (values: readonly number[]): number => Math.max(...values);
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const listeners = (machine: Machine, count: number, group?: object): Hearer[] =>
  Array.from({ length: count }, () => machine.listen(group));

t.test('five contexts of a socket that begin at once have their first audio step by step', async (t) => {
  const alone = new Machine(60);
  const one = alone.listen();
  await alone.run(1_000);
  const machine = new Machine(60);
  const five = listeners(machine, 5, {});
  await machine.run(1_000);
  const last = most(five.map(({ firstAudioMs }) => firstAudioMs));
  t.ok(last <= 3.001 * one.firstAudioMs, `${last} ms, alone ${one.firstAudioMs} ms`);
  t.equal(most(five.map(({ dryMs }) => dryMs)), 0);
});

t.test('within the capacity nobody runs dry beside a socket with 64 contexts', async (t) => {
  const machine = new Machine(100);
  const socket = listeners(machine, 64, {});
  await machine.run(300);
  const others = listeners(machine, 10);
  await machine.run(5_000);
  t.equal(most(others.map(({ dryMs }) => dryMs)), 0);
  t.ok(most(others.map(({ firstAudioMs }) => firstAudioMs)) < 40, 'they are served at once');
  t.equal(most(socket.map(({ dryMs }) => dryMs)), 0, 'nor does the socket');
});

t.test('over the capacity the socket gets what is left, and nobody else runs dry', async (t) => {
  const machine = new Machine(20);
  const socket = listeners(machine, 64, {});
  const others: Hearer[] = [];
  for (let other = 0; other < 10; other++) {
    await machine.run(150);
    others.push(machine.listen());
  }
  await machine.run(10_000);
  t.equal(most(others.map(({ dryMs }) => dryMs)), 0);
  t.ok(sum(socket.map(({ heardMs }) => heardMs)) > 60_000, 'the socket is not starved');
});

t.test('when there is not enough for all others, the socket gets what one of them gets', async (t) => {
  const machine = new Machine(5.5);
  const socket = listeners(machine, 64, {});
  const others = listeners(machine, 10);
  await machine.run(5_000);
  const before = sum(socket.map(({ heardMs }) => heardMs));
  const othersBefore = sum(others.map(({ heardMs }) => heardMs));
  await machine.run(40_000);
  const share = sum(socket.map(({ heardMs }) => heardMs)) - before;
  const each = (sum(others.map(({ heardMs }) => heardMs)) - othersBefore) / others.length;
  t.ok(share > 0.6 * each && share < 1.6 * each, `${share} ms, each other ${each} ms`);
});

t.test('a listener beside nine sockets of 60 contexts is served at once, and does not run dry', async (t) => {
  const machine = new Machine(40);
  for (let socket = 0; socket < 9; socket++) listeners(machine, 60, {});
  await machine.run(2_000);
  const one = machine.listen();
  await machine.run(5_000);
  t.ok(one.firstAudioMs < 40, `${one.firstAudioMs} ms`);
  t.equal(one.dryMs, 0);
});

t.test(
  'a burst of half of what the machine holds is served within half a second, and nobody runs dry',
  async (t) => {
    const machine = new Machine(90);
    const burst = listeners(machine, 45);
    await machine.run(10_000);
    const last = most(burst.map(({ firstAudioMs }) => firstAudioMs));
    t.ok(last <= 500, `${last} ms`);
    const dryMs = most(burst.map((one) => one.dryMs));
    t.ok(dryMs <= 100, `${dryMs} ms dry`);
    t.ok(Math.min(...burst.map(({ heardMs }) => heardMs)) > 9_000, 'all of them are heard');
  },
);

t.test('a burst does not make those run dry who listen already', async (t) => {
  const machine = new Machine(90);
  const before = listeners(machine, 30);
  await machine.run(3_000);
  const burst = listeners(machine, 45);
  await machine.run(5_000);
  t.equal(most(before.map(({ dryMs }) => dryMs)), 0);
  const last = most(burst.map(({ firstAudioMs }) => firstAudioMs));
  t.ok(last <= 500, `${last} ms`);
});
