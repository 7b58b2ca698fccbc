/** A scheduler on a clock that the test moves, whose segments are recorded when they start, and ended by hand. */
import { Listener } from '../../src/speech/listener.js';
import {
  Scheduler,
  type ScheduledContext,
  type ScheduledOptions,
  type ScheduledSegment,
  type SchedulerOptions,
  type SegmentStart,
} from '../../src/speech/scheduler.js';
import type { Framing } from '../../src/threads/messages.js';
import { ClockTable, PlaybackClock } from '../../src/threads/playback-clock.js';

export const segment = (index: number, characters = 50): ScheduledSegment => ({
  index,
  expectedMs: 70 * characters,
  tokenContinues: false,
  request: {
    ...{ text: 'a'.repeat(characters), words: [], before: '', after: '' },
    settings: { voiceId: 'ada', temperature: 1, normalizeText: false },
  },
});

/** A listener who tells when there is something to make again. */
class ToldListener extends Listener {
  readonly #tell: (nowMs: number, segment: number) => void;

  constructor(framing: Framing, nowMs: number, tell: (nowMs: number, segment: number) => void) {
    super(new PlaybackClock(), framing, nowMs);
    this.#tell = tell;
  }

  override resumed(nowMs: number, segment: number): void {
    super.resumed(nowMs, segment);
    this.#tell(nowMs, segment);
  }
}

/** What the scheduler and its oracle have in common. */
export interface Policy<C> {
  readonly audio: { readonly bytes: number };
  nowMs(): number;
  open(options: ScheduledOptions): C;
  close(context: C): void;
  setPaused(isPaused: boolean): void;
  enqueue(context: C, segment: ScheduledSegment): void;
  withdraw(context: C, fromIndex: number): void;
  finished(context: C, segment: ScheduledSegment, durationMs: number): void;
  requeue(context: C, segment: ScheduledSegment): void;
  abandoned(context: C, segment: ScheduledSegment): void;
  handed(context: C, durationMs: number): void;
}

export interface Start<C = ScheduledContext> {
  readonly schedule: BenchContext<C>;
  readonly segment: ScheduledSegment;
  /** When its first sample plays. */
  readonly playFromMs: number;
  readonly readySinceMs?: number;
  readonly isAwaited?: boolean;
  readonly begins?: SegmentStart['begins'];
}

export interface BenchContextOptions<C = ScheduledContext> {
  readonly group?: object | string;
  readonly framing?: Framing;
  readonly bytesPerMs?: number;
  readonly account?: string;
  readonly onStart?: (start: Start<C>) => void;
  readonly onMove?: (move: Start<C>) => void;
  readonly resumed?: (nowMs: number, segment: number) => void;
}

/** A context with its listener. Audio is handed over as soon as it comes. */
export class BenchContext<C = ScheduledContext> {
  readonly listener: Listener;
  readonly context: C;
  readonly #scheduler: Policy<C>;

  constructor(scheduler: Policy<C>, options: BenchContextOptions<C> = {}) {
    const { onStart, onMove, resumed = () => undefined } = options;
    const { group = {}, framing = 'stream', bytesPerMs = 0, account } = options;
    this.#scheduler = scheduler;
    this.listener = new ToldListener(framing, scheduler.nowMs(), resumed);
    const { clock } = this.listener;
    this.context = scheduler.open({
      ...{ group, listener: this.listener, bytesPerMs },
      ...(account !== undefined && { account }),
      start: ({ segment: started, startMs, ...more }) => {
        onStart?.({ schedule: this, segment: started, playFromMs: clock.at(startMs), ...more });
      },
      move: (moved, startMs) => onMove?.({ schedule: this, segment: moved, playFromMs: clock.at(startMs) }),
    });
  }

  enqueue(added: ScheduledSegment): void {
    this.#scheduler.enqueue(this.context, added);
  }

  withdraw(fromIndex: number): void {
    this.#scheduler.withdraw(this.context, fromIndex);
  }

  finished(done: ScheduledSegment, durationMs: number): void {
    this.#scheduler.finished(this.context, done, durationMs);
  }

  requeue(interrupted: ScheduledSegment): void {
    this.#scheduler.requeue(this.context, interrupted);
  }

  abandoned(ended: ScheduledSegment): void {
    this.#scheduler.abandoned(this.context, ended);
  }

  handed(durationMs: number): void {
    this.listener.arrived(this.#scheduler.nowMs(), 0, durationMs);
    this.#scheduler.handed(this.context, durationMs);
  }

  close(): void {
    this.#scheduler.close(this.context);
  }
}

/** Unbounded, but for what is given. */
export const schedulerOptions = (
  clock: () => number,
  {
    threads = 1,
    jobsMax = 1,
    bounds = {},
  }: Partial<Omit<SchedulerOptions, 'bounds' | 'clock'>> & {
    readonly bounds?: Partial<SchedulerOptions['bounds']>;
  } = {},
): SchedulerOptions => ({
  ...{ clock, clocks: new ClockTable(1_000), threads, jobsMax },
  bounds: {
    unsentAudioMsMax: Number.POSITIVE_INFINITY,
    unsentAudioMsPerLeaseMax: Number.POSITIVE_INFINITY,
    expectedAudioMsPerLeaseMax: Number.POSITIVE_INFINITY,
    unsentAudioBytesMax: Number.POSITIVE_INFINITY,
    ...bounds,
  },
});

export const bench = ({ threads = 1, jobsMax = 1, unsentAudioMsMax = 10_000 } = {}) => {
  const clock = { nowMs: 0 };
  const starts: Start[] = [];
  const moves: Start[] = [];
  const scheduler = new Scheduler(
    schedulerOptions(() => clock.nowMs, {
      ...{ threads, jobsMax },
      bounds: {
        unsentAudioMsMax,
        unsentAudioMsPerLeaseMax: 2 * unsentAudioMsMax,
        expectedAudioMsPerLeaseMax: 4 * unsentAudioMsMax,
      },
    }),
  );
  /** Opens a context that records its starts and moves. */
  const open = (
    group: object | string = {},
    more: Pick<BenchContextOptions, 'framing' | 'bytesPerMs' | 'resumed' | 'account'> = {},
  ) =>
    new BenchContext<ScheduledContext>(scheduler, {
      ...{ group, ...more },
      onStart: (start) => starts.push(start),
      onMove: (move) => moves.push(move),
    });
  return { clock, starts, moves, scheduler, open };
};

export const last = <T>(items: readonly T[]): T => {
  const item = items.at(-1);
  if (item === undefined) throw new Error('nothing there');
  return item;
};

export const segment0 = (
  starts: readonly Start[],
  schedule: BenchContext,
  index: number,
): ScheduledSegment => {
  const found = starts.find((start) => start.schedule === schedule && start.segment.index === index);
  if (found === undefined) throw new Error(`segment ${index} never started`);
  return found.segment;
};
