/**
 * What each listener gets when a socket speaks in many contexts: the scheduler, the step queues of two threads and the
 * clocks of the groups, with steps that take simulated time.
 */
import t from 'tap';
import { limits } from '../../src/limits.js';
import type { ContextSchedule, ScheduledSegment, SegmentOwner } from '../../src/speech/schedule.js';
import { Scheduler } from '../../src/speech/scheduler.js';
import { StepQueue } from '../../workers/step-queue.js';

const THREADS = 2;
const CHUNKS_MS = [120, 250];
const SEGMENT = 'A sentence of two seconds here.';
const MS_PER_CHARACTER = 70;

const segment = (index: number): ScheduledSegment => ({
  index,
  text: SEGMENT,
  words: [],
  tokenContinues: false,
  before: '',
  after: '',
  speak: true,
});

/** Plays in real time from its first audio on, and always has text. */
class Listener implements SegmentOwner {
  readonly #machine: Machine;
  readonly #schedule: ContextSchedule;
  readonly #jobs = new Map<ScheduledSegment, { playFromMs: number }>();
  readonly #beganMs: number;
  #segments = 0;
  #dryAtMs = Number.POSITIVE_INFINITY;
  firstAudioMs = Number.POSITIVE_INFINITY;
  dryMs = 0;
  heardMs = 0;

  constructor(machine: Machine, group: object) {
    this.#machine = machine;
    this.#beganMs = machine.nowMs;
    this.#schedule = machine.scheduler.open(group, this);
    this.#write();
  }

  start(started: ScheduledSegment, playFromMs: number): void {
    const job = { playFromMs };
    this.#jobs.set(started, job);
    const { group, runningSegments } = this.#schedule;
    const clock = runningSegments === 1 ? group.clock : undefined;
    void this.#machine
      .speak(job, clock, (chunkMs) => this.#hear(chunkMs))
      .then((durationMs) => {
        this.#jobs.delete(started);
        this.#write();
        this.#schedule.finished(started, durationMs);
      });
  }

  moved(moved: ScheduledSegment, playFromMs: number): void {
    const job = this.#jobs.get(moved);
    if (job !== undefined) job.playFromMs = playFromMs;
  }

  resumed(): void {}

  #write(): void {
    while (this.#schedule.queuedSegments < 2) this.#schedule.enqueue(segment(this.#segments++));
  }

  #hear(chunkMs: number): void {
    const { nowMs } = this.#machine;
    if (this.heardMs === 0) {
      this.firstAudioMs = nowMs - this.#beganMs;
      this.#dryAtMs = nowMs;
    }
    this.dryMs = Math.max(this.dryMs, nowMs - this.#dryAtMs);
    this.#dryAtMs = Math.max(this.#dryAtMs, nowMs) + chunkMs;
    this.heardMs += chunkMs;
    this.#schedule.handed(chunkMs);
  }
}

class Machine {
  readonly scheduler: Scheduler;
  nowMs = 1_000;
  readonly #msPerStepMs: number;
  readonly #threads = Array.from({ length: THREADS }, () => ({ queue: new StepQueue(), jobs: 0 }));
  readonly #sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];

  /** @param capacity seconds of speech that all threads make in a second */
  constructor(capacity: number) {
    this.#msPerStepMs = capacity / THREADS;
    this.scheduler = new Scheduler({
      clock: () => this.nowMs,
      threads: THREADS,
      jobsMax: THREADS * limits.jobsPerThreadMax,
      bounds: limits,
    });
  }

  listen(group: object = {}): Listener {
    return new Listener(this, group);
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
    job: { readonly playFromMs: number },
    clock: Parameters<StepQueue['enter']>[1],
    onChunk: (chunkMs: number) => void,
  ): Promise<number> {
    const thread = this.#threads.reduce((best, other) => (other.jobs < best.jobs ? other : best));
    thread.jobs++;
    const durationMs = SEGMENT.length * MS_PER_CHARACTER;
    let madeMs = 0;
    const dueMs = () => job.playFromMs + madeMs;
    for (let step = 0; madeMs < durationMs; step++) {
      await thread.queue.enter(dueMs, clock);
      const chunkMs = Math.min(CHUNKS_MS[Math.min(step, 1)] ?? 0, durationMs - madeMs);
      await new Promise<void>((wake) => {
        this.#sleepers.push({ atMs: this.nowMs + chunkMs / this.#msPerStepMs, wake });
      });
      clock?.made(chunkMs, dueMs(), this.nowMs);
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
const listeners = (machine: Machine, count: number, group?: object): Listener[] =>
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
  const others: Listener[] = [];
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
