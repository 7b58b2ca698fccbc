/** The scheduler starts what its definition says (`scan-scheduler.ts`), at the same moment, over random schedules. */
import t from 'tap';
import { Scheduler, type ScheduledSegment, type SchedulerOptions } from '../../src/speech/scheduler.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { seedOfRun, times } from '../fuzz/check.js';
import { ScanScheduler } from '../support/scan-scheduler.js';
import { BenchContext, schedulerOptions, segment, type Policy, type Start } from '../support/scheduling.js';

const SCHEDULES = 500 * times;
const ACTIONS = 150;

/** One context, with what the schedule needs to know of it to act as its transport. */
class Actor<C> {
  queuedEnd = 0;
  startedEnd = 0;
  isClosed = false;
  /** Audio that may be handed over. */
  unsentMs = 0;
  /** Made so far of segments that are not finished. */
  readonly madeMs = new Map<number, number>();
  readonly running: ScheduledSegment[] = [];
  /** Several contexts may hear of the same wake in any order. */
  readonly heard: string[] = [];
  readonly schedule: BenchContext<C>;
  readonly #name: number;
  readonly #starts: string[];

  constructor(
    scheduler: Policy<C>,
    name: number,
    starts: string[],
    options: { readonly group: object; readonly bytesPerMs: number; readonly isFile?: boolean },
  ) {
    this.#name = name;
    this.#starts = starts;
    const { group, bytesPerMs, isFile = false } = options;
    this.schedule = new BenchContext(scheduler, {
      ...{ group, bytesPerMs, framing: isFile ? 'whole' : 'stream' },
      onStart: (start) => this.#started(start),
      onMove: (move) => this.heard.push(`moved ${name}.${move.segment.index} ${move.playFromMs}`),
      resumed: (nowMs, index) => this.heard.push(`resumed ${name}.${index} ${nowMs}`),
    });
  }

  #started({ segment: started, playFromMs, readySinceMs, isAwaited, begins }: Start<C>): void {
    this.startedEnd = Math.max(this.startedEnd, started.index + 1);
    this.running.push(started);
    const what = `${this.#name}.${started.index} ${playFromMs} ${readySinceMs}`;
    const line = `start ${what} ${begins}${isAwaited === true ? ' awaited' : ''}`;
    this.#starts.push(line);
    this.heard.push(line);
  }
}

/** @returns all that happened, the same for the same seed if the policies are the same */
const live = <C>(seed: number, create: (options: SchedulerOptions) => Policy<C>): string[] => {
  const random = seededRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const starts: string[] = [];
  let nowMs = 0;
  const threads = 1 + below(3);
  const unsentAudioMsMax = 500 + below(6_000);
  const scheduler = create(
    schedulerOptions(() => nowMs, {
      ...{ threads, jobsMax: threads + below(below(2) === 0 ? 4 : 16) },
      bounds: {
        unsentAudioMsMax,
        unsentAudioMsPerLeaseMax: unsentAudioMsMax * (1 + below(2)),
        expectedAudioMsPerLeaseMax: unsentAudioMsMax * (1 + below(4)),
        // Often too small for all, so that the budget refuses some.
        unsentAudioBytesMax: [Number.POSITIVE_INFINITY, 2_000_000, 1_000_000, 600_000][below(4)] ?? 0,
      },
    }),
  );
  const groups = Array.from({ length: 1 + below(5) }, () => ({}));
  const filesPart = below(2) * 0.3;
  const actors: Actor<C>[] = [];
  const open = (): void => {
    const group = groups[below(groups.length)] ?? {};
    const isFile = random() < filesPart;
    actors.push(new Actor(scheduler, actors.length, starts, { group, bytesPerMs: 16 * below(4), isFile }));
  };
  open();
  for (let action = 0; action < ACTIONS; action++) {
    // Equal deadlines must occur.
    nowMs += below(3) === 0 ? below(800) : 0;
    const actor = actors[below(actors.length)] as Actor<C>;
    const running = actor.running[below(actor.running.length)];
    const choice = below(100);
    if (choice < 8 && actors.length < 14) open();
    else if (choice < 40) {
      if (!actor.isClosed)
        for (let count = 1 + below(4); count > 0; count--)
          actor.schedule.enqueue(segment(actor.queuedEnd++, 1 + below(60)));
    } else if (choice < 65 && running !== undefined) {
      actor.running.splice(actor.running.indexOf(running), 1);
      const madeMs = actor.madeMs.get(running.index) ?? 0;
      const durationMs = madeMs + 100 * below(40);
      actor.madeMs.delete(running.index);
      actor.unsentMs += durationMs - madeMs;
      actor.schedule.finished(running, durationMs);
    } else if (choice < 70 && running !== undefined) {
      actor.running.splice(actor.running.indexOf(running), 1);
      actor.schedule.requeue(running);
    } else if (choice < 74) {
      // Audio comes before its segment is finished, and some segments outlast their estimate.
      const index = Math.min(...actor.running.map((one) => one.index));
      const isFirst = [...actor.madeMs.keys()].every((other) => other >= index);
      if (actor.running.length > 0 && isFirst) {
        const madeMs = 100 * below(40);
        actor.madeMs.set(index, (actor.madeMs.get(index) ?? 0) + madeMs);
        actor.unsentMs += madeMs;
      }
    } else if (choice < 92) {
      const durationMs = Math.min(actor.unsentMs, 50 * below(120));
      actor.unsentMs -= durationMs;
      actor.schedule.handed(durationMs);
    } else if (choice < 95) {
      actor.schedule.withdraw(actor.startedEnd);
      if (!actor.isClosed) actor.queuedEnd = actor.startedEnd;
    } else if (choice < 97) {
      actor.isClosed = true;
      actor.schedule.close();
    } else scheduler.setPaused(below(3) === 0);
    starts.push(`${action}: ${scheduler.audio.bytes} bytes`);
    for (const { heard } of actors) heard.push(`${action}`);
  }
  return [...starts, ...actors.flatMap(({ heard }) => heard)];
};

t.test('the scheduler starts what its definition starts', (t) => {
  let starts = 0;
  let resumes = 0;
  const firstSeed = seedOfRun() * 100_000;
  for (let seed = firstSeed; seed < firstSeed + SCHEDULES; seed++) {
    const log = live(seed, (options) => new Scheduler(options));
    const scanned = live(seed, (options) => new ScanScheduler(options));
    const differs = log.findIndex((line, at) => line !== scanned[at]);
    if (differs >= 0 || log.length !== scanned.length) {
      t.strictSame(log.slice(0, differs + 1), scanned.slice(0, differs + 1), `seed ${seed}`);
      break;
    }
    starts += log.filter((line) => line.startsWith('start')).length;
    resumes += log.filter((line) => line.startsWith('resumed')).length;
  }
  t.ok(starts > 20 * SCHEDULES, `${starts} starts`);
  t.ok(resumes > 10 * SCHEDULES, `${resumes} resumes`);
  t.end();
});

t.test(
  'a context that the audio budget refused starts when there is room, with nothing of its own to give back',
  (t) => {
    const bounds = {
      unsentAudioMsMax: 1_000,
      unsentAudioMsPerLeaseMax: 2_000,
      expectedAudioMsPerLeaseMax: 4_000,
      unsentAudioBytesMax: 1_000_000,
    };
    const scheduler = new Scheduler(schedulerOptions(() => 0, { bounds }));
    const actor = (name: number) => new Actor(scheduler, name, [], { group: {}, bytesPerMs: 48 });
    const [large, refused] = [actor(0), actor(1)];
    large.schedule.enqueue(segment(0, 10));
    large.schedule.finished(large.running[0] as ScheduledSegment, 30_000);
    t.ok(scheduler.audio.bytes > bounds.unsentAudioBytesMax);
    refused.schedule.enqueue(segment(0, 10));
    t.equal(refused.running.length, 0);
    large.schedule.handed(30_000);
    t.equal(refused.running.length, 1);
    t.end();
  },
);
