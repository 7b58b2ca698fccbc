/**
 * A context on the front thread: text in, segments to the scheduler, announcements to the actor, frames to the transport.
 *
 *   open --append*, flush*--> speaking --end--> ending --(actor: closed)--> over
 *     any of these --(fault)--> failed;  any --release--> released (lease closed, no frame follows)
 */
import { randomInt } from 'node:crypto';
import { hasLongFrames } from '../api/formats.js';
import { faultPlace } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { OneByOne } from '../slices.js';
import type { Metrics } from '../metrics.js';
import { isBlank } from '../text/words.js';
import type { ActorThreads } from '../threads/actor-threads.js';
import type { Generation, Generations } from '../threads/generations.js';
import type { Lexicons } from '../threads/lexicons.js';
import {
  actorOfContext,
  isWholeFraming,
  type FailureCode,
  type Frame,
  type SegmentRequest,
} from '../threads/messages.js';
import type { ClockTable } from '../threads/playback-clock.js';
import type { Job, JobOutcome } from '../threads/synthesis-thread.js';
import { heldBytesPerMs } from './audio-budget.js';
import type { Demand } from './capacity.js';
import { Listener } from './listener.js';
import type { ScheduledContext, ScheduledSegment, Scheduler, SegmentStart } from './scheduler.js';
import type { Activity, ContextOptions, FrameSink, SpeechContext, Utterance } from './speech.js';
import { tokensOf, Utterances } from './utterances.js';

/** Segments cut ahead of the scheduler: enough that it never waits for the cutter. */
const SEGMENTS_AHEAD = 4;
/** Text that comes word by word counts as at least this much speech until its next segment is complete. */
export const COMING_MS_MIN = 2_000;
/** When no words came for this long, those that are held need nothing now. One whose listener ran dry longer ago asks again. */
const PAUSE_MS_MAX = 1_000;
/** How often one that has left the load asks whether there is room for it again. */
const RETURN_MS = 250;

export interface ContextParts {
  readonly id: number;
  readonly options: ContextOptions;
  readonly sink: FrameSink;
  readonly scheduler: Scheduler;
  readonly generations: Generations;
  readonly actors: ActorThreads;
  readonly bounds: Bounds;
  readonly lexicons: Lexicons['of'];
  readonly clocks: ClockTable;
  readonly metrics: Pick<Metrics, 'playback' | 'segment' | 'speechIn'>;
  readonly log: Pick<Log, 'error'>;
  readonly admits: (utterance: Utterance) => boolean;
  /** Whether the machine has room for a listener who had left the load. */
  readonly returns: (demand: Demand) => boolean;
  readonly later: OneByOne;
  /** The context takes no more frames: called once. */
  readonly onOver: (context: Context) => void;
  /** Its transport has everything: called once. */
  readonly onReleased: () => void;
}

/** Silence for a request without text. No engine runs for it: an empty text is free, and must not delay others. */
const BLANK_MS = 300;
/** The part of it by which two answers may differ: they should not have the same length. */
const BLANK_SPREAD = 0.12;
const blankMs = (seed: number): number => BLANK_MS * (1 + BLANK_SPREAD * (seed / 2 ** 31 - 1));

export class Context implements SpeechContext {
  readonly id: number;
  readonly schedule: ScheduledContext;
  readonly listener: Listener;
  readonly #parts: ContextParts;
  readonly #sampleRateHz: number;
  #generation: Generation;
  readonly #utterances: Utterances;
  readonly #jobs = new Map<ScheduledSegment, Job>();
  readonly #clock: number;
  readonly #speech: { inc(seconds: number): void };
  #lastWordsMs = Number.NEGATIVE_INFINITY;
  /** Of started segments: one that runs again makes the same samples. */
  readonly #attempts = new Map<
    ScheduledSegment,
    Required<Pick<SegmentRequest, 'seed' | 'isFirst' | 'begins'>> & { retries: number }
  >();
  readonly #utteranceSeed = randomInt(2 ** 32);
  /** Segments that the actor knows of. */
  #announced = 0;
  /** Announced before the last flush that the actor knows of. */
  #flushedSegments = 0;
  #spokenSegments = 0;
  #openFlushes = 0;
  #unhandedFrames = 0;
  #closeSent = false;
  #isFeeding = false;
  /** It has left the load, and when it asks to return. */
  #hasLeft = false;
  #returnsAtMs = 0;
  #over = false;
  #released = false;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.id = parts.id;
    const { format, framing, timestamps, clientContextId, settings, lease } = parts.options;
    this.#generation = parts.generations.enter();
    this.#sampleRateHz = this.#generation.voices.sampleRateHz(settings.voiceId);
    const language = this.#generation.voices.language(settings.voiceId);
    this.#utterances = new Utterances(parts.bounds, parts.options, language, (spoken) =>
      parts.lexicons(lease.account, spoken),
    );
    this.#speech = parts.metrics.speechIn(format.encoding);
    this.#clock = parts.clocks.take();
    this.listener = new Listener(parts.clocks.clock(this.#clock), framing, parts.scheduler.nowMs());
    this.schedule = parts.scheduler.open({
      group: parts.options.group ?? (isWholeFraming(framing) ? lease.account : lease),
      account: lease.account,
      listener: this.listener,
      bytesPerMs: heldBytesPerMs(format, this.#sampleRateHz),
      mayStart: () => this.#mayStart(),
      // The scheduler calls it while it serves any context: a fault must end only this one.
      start: (start) => this.#guarded(start.segment, () => this.#start(start)),
      move: (segment, startMs) => this.#jobs.get(segment)?.setStart(startMs),
    });
    parts.actors.send({
      type: 'open',
      contextId: parts.id,
      format,
      framing,
      timestamps,
      engineSampleRateHz: this.#sampleRateHz,
      clock: this.#clock,
      ...(clientContextId !== undefined && { clientContextId }),
    });
  }

  get activity(): Activity {
    if (this.#released) return 'idle';
    const isSpeaking = this.#over
      ? this.#unhandedFrames > 0
      : this.#utterances.isEnded ||
        this.#utterances.hasPending ||
        this.#openFlushes > 0 ||
        this.#spokenSegments < this.#utterances.cutSegments ||
        this.#unhandedFrames > 0;
    if (isSpeaking) return 'speaking';
    return !this.#over && this.#utterances.holdsWords ? 'holding' : 'idle';
  }

  /** Text was cut, or is about to be, and the listener has not heard all that was made of it. */
  get #isMidUtterance(): boolean {
    if (this.activity === 'speaking' || this.#jobs.size > 0) return true;
    return this.activity === 'holding' && this.#utterances.hasBegunUtterance;
  }

  get #isClosed(): boolean {
    return this.#over || this.#utterances.isEnded;
  }

  /** Nothing came since the last flush, which is answered: another one is no work for the actor. */
  get #isFlushed(): boolean {
    const { cutSegments, hasPending, uncutUnits } = this.#utterances;
    return this.#openFlushes + uncutUnits === 0 && !hasPending && cutSegments === this.#flushedSegments;
  }

  /** Its listener plays, or has just run dry within an utterance. */
  get #isPlaying(): boolean {
    const slackMs = this.listener.slackMs(this.#parts.scheduler.nowMs());
    return slackMs > (this.#utterances.hasBegunUtterance ? -PAUSE_MS_MAX : 0);
  }

  admits(text: string): boolean {
    const { cutSegments, uncutMs } = this.#utterances;
    if (this.#isPlaying || this.#unhandedFrames > 0 || this.#spokenSegments < cutSegments) return true;
    const { options, admits } = this.#parts;
    return admits({ ...options, pieces: [{ text }], uncutMs });
  }

  append(text: string, pieces: Parameters<SpeechContext['append']>[1] = [{ text }]): void {
    if (this.#isClosed || (text === '' && pieces.every(({ pauseMs }) => pauseMs === undefined))) return;
    if (!isBlank(text)) this.#lastWordsMs = this.#parts.scheduler.nowMs();
    for (const piece of pieces) this.#utterances.append(piece.text, piece);
    // Once: each feed may hold the thread for a slice, and a text may have thousands of pieces.
    this.#feed();
  }

  flush(flushId: string): void {
    if (this.#isClosed) return;
    if (this.#isFlushed) {
      this.#parts.sink({ type: 'flushed', contextId: this.id, flushId });
      return;
    }
    this.#openFlushes++;
    this.#utterances.flush(flushId);
    this.#feed();
  }

  dropUtterance(): number {
    if (this.#isClosed) return 0;
    return this.#utterances.drop(this.#announced, (fromSegment) =>
      this.#parts.scheduler.withdraw(this.schedule, fromSegment),
    );
  }

  end(): void {
    if (this.#isClosed) return;
    this.#utterances.end();
    this.#feed();
  }

  handed(frame: Extract<Frame, { type: 'audio' }>): void {
    if (this.#released) return;
    this.#unhandedFrames--;
    this.#speech.inc(frame.durationMs / 1000);
    try {
      this.#parts.scheduler.handed(this.schedule, frame.durationMs);
    } catch (error) {
      // Not at once: the transport is in the middle of a write.
      setImmediate(() => this.#onFault(error));
    }
    this.#parts.options.lease.delivered(frame.durationMs, this.#parts.options.settings.voiceId);
    // A whole result is charged when it is complete: one that fails is free.
    if (!isWholeFraming(this.#parts.options.framing)) this.#chargeUpTo(frame.segment);
    this.renew();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#abandon();
    this.#parts.scheduler.close(this.schedule);
    this.#parts.clocks.give(this.#clock);
    this.#parts.onReleased();
    this.#parts.options.lease.close();
  }

  /** Takes a frame of its actor. */
  deliver(frame: Frame): void {
    if (this.#over) return;
    switch (frame.type) {
      case 'audio':
        this.#unhandedFrames++;
        this.#arrived(frame.segment, frame.durationMs);
        break;
      case 'spoken':
        this.#spokenSegments = frame.segment + 1;
        break;
      case 'flushed':
        this.#openFlushes--;
        break;
      case 'closed':
        if (isWholeFraming(this.#parts.options.framing)) this.#chargeUpTo(this.#utterances.cutSegments - 1);
        this.#finish();
        break;
      case 'failed':
        this.fail(frame.reason);
        return;
      case 'head':
      case 'timestamps':
    }
    this.#parts.sink(frame);
    this.renew();
  }

  /** Moves to the current voices, if they have its voice at its rate; within an utterance only if that has the same files. */
  renew(): void {
    const { generations, options } = this.#parts;
    const before = this.#generation;
    if (this.#over || before === generations.current) return;
    const { voiceId } = options.settings;
    this.#generation = generations.move(before, voiceId, this.#sampleRateHz, this.#isMidUtterance);
    if (this.#generation === before) return;
    // Segments that run end where they began.
    const running = [...this.#jobs.values()].map(({ outcome }) => outcome);
    void Promise.all(running).then(() => generations.leave(before));
  }

  /** It keeps older voices. */
  get isOutdated(): boolean {
    return !this.#over && this.#generation !== this.#parts.generations.current;
  }

  /** Nothing is spoken, or is about to be. */
  get isQuiet(): boolean {
    return this.activity !== 'speaking' && this.#jobs.size === 0;
  }

  /**
   * What its listener still needs; `null` while there is no speech to be made, and none is about to come. A listener who does not
   * keep up with its audio leaves the load with this call: it would keep others out, and needs nothing until it returns.
   */
  demandNow(): Demand | null {
    const { listener, schedule } = this;
    const { scheduler } = this.#parts;
    // With a shut gate, nothing more is made until its listener, or another one of its account, takes audio.
    const waits = this.#unhandedFrames > 0 || scheduler.isGateShut(schedule);
    if (waits && schedule.running.length === 0 && !listener.keepsUp(scheduler.nowMs())) this.#hasLeft = true;
    return this.#hasLeft ? null : this.#need();
  }

  /** The same of one that has left the load, too. */
  #need(): Demand | null {
    const { listener, schedule } = this;
    if (this.#over || listener.isFile) return null;
    const { scheduler, options } = this.#parts;
    const { hasPending, holdsWords, uncutMs } = this.#utterances;
    const isToBeMade = hasPending || schedule.queued.length > 0 || schedule.running.length > 0;
    const nowMs = scheduler.nowMs();
    const slackMs = listener.slackMs(nowMs);
    // Held words are free, and may never be spoken: without speech that plays they take nothing from others.
    const isComing = holdsWords && slackMs > 0 && nowMs - this.#lastWordsMs < PAUSE_MS_MAX;
    if (!isToBeMade && !isComing) return null;
    const remainingMs = schedule.expectedMs + uncutMs - listener.arrivedMs;
    return {
      account: options.lease.account,
      group: schedule.group.key,
      voiceId: options.settings.voiceId,
      encoding: options.format.encoding,
      remainingMs: Math.max(remainingMs, isToBeMade ? 0 : COMING_MS_MIN),
      slackMs,
      // In a crowd the first cut waits for its turn.
      isAwaiting: listener.isAwaiting || (hasPending && slackMs <= 0),
    };
  }

  #mayStart(): boolean {
    if (!this.#hasLeft) return true;
    const nowMs = this.#parts.scheduler.nowMs();
    if (nowMs < this.#returnsAtMs) return false;
    this.#returnsAtMs = nowMs + RETURN_MS;
    const need = this.#need();
    this.#hasLeft = need !== null && !this.#parts.returns(need);
    return !this.#hasLeft;
  }

  /** Ends the context early and reports that to its transport; without a code it is a fault of the service. */
  fail(reason: string, code?: FailureCode): void {
    if (this.#over) return;
    this.#abandon();
    this.#parts.sink({ type: 'failed', contextId: this.id, reason, code });
  }

  #arrived(segment: number, durationMs: number): void {
    const { metrics, scheduler } = this.#parts;
    const lateMs = this.listener.arrived(scheduler.nowMs(), segment, durationMs);
    if (!this.listener.isFile) metrics.playback(lateMs);
    scheduler.came(this.schedule, segment, this.listener.arrivedMs - this.schedule.audio.startOf(segment));
  }

  #start({ segment, startMs, isAwaited, begins, readySinceMs }: SegmentStart): void {
    if (segment.index >= this.#announced) {
      this.#sendFlushes();
      this.#announce(segment);
    }
    const { options } = this.#parts;
    const { request } = segment;
    const { isFile } = this.listener;
    const isShared = isFile || (options.group !== undefined && this.schedule.running.length === 1);
    const share = isShared ? this.#parts.scheduler.shareOf(this.schedule) : undefined;
    const attempt = this.#attempts.get(segment) ?? {
      ...{ seed: randomInt(2 ** 32), isFirst: isAwaited && !isFile, retries: 0 },
      begins: begins === 'short' && hasLongFrames(options.format.encoding) ? 'medium' : begins,
    };
    this.#attempts.set(segment, attempt);
    const job = {
      contextId: this.id,
      segment: segment.index,
      ...request,
      ...(request.pauseMs === undefined && isBlank(request.text) && { pauseMs: blankMs(attempt.seed) }),
      ...{ seed: attempt.seed, isFirst: attempt.isFirst, begins: attempt.begins },
      utteranceSeed: this.#utteranceSeed,
      actor: actorOfContext(this.id),
      clock: this.#clock,
      account: options.lease.account,
      // One that runs behind another of its context has time: it does not count for the group.
      ...(share !== undefined && { share }),
      urgency: isFile ? ('file' as const) : isAwaited ? ('first' as const) : ('playing' as const),
    };
    // The job starts last: nothing after it may fail.
    const running = this.#generation.pool.run(job, this.listener.clock, startMs);
    this.#jobs.set(segment, running);
    void running.outcome.then((outcome) =>
      this.#guarded(segment, () => this.#onOutcome(segment, readySinceMs, outcome)),
    );
    this.#feed();
  }

  /** Runs a reaction. A fault ends this context and no other, and its segment runs no more. */
  #guarded(segment: ScheduledSegment, react: () => void): void {
    try {
      react();
    } catch (error) {
      this.#onFault(error);
      this.#parts.scheduler.abandoned(this.schedule, segment);
    }
  }

  /** A fault of the service fails the context. If all frames are out already, only the log can report it. */
  #onFault(error: unknown): void {
    const reason = `a fault of the scheduling: ${faultPlace(error)}`;
    if (this.#over) this.#parts.log.error({ contextId: this.id, reason }, 'a context failed after its end');
    else this.fail(reason);
  }

  #onOutcome(segment: ScheduledSegment, readySinceMs: number, outcome: JobOutcome): void {
    this.#jobs.delete(segment);
    const { metrics, scheduler } = this.#parts;
    const audioMs = outcome.type === 'done' ? (outcome.samples * 1000) / this.#sampleRateHz : null;
    if ('effort' in outcome && outcome.effort !== null)
      metrics.segment(outcome.effort.startedMs - readySinceMs, outcome.effort.computeMs, audioMs);
    if (audioMs !== null) {
      this.#attempts.delete(segment);
      scheduler.finished(this.schedule, segment, audioMs);
      this.renew();
    } else if (outcome.type === 'interrupted') this.#retry(segment, outcome.inStep);
    else this.#failSegment(segment, outcome.type === 'failed' ? outcome.reason : 'its segment was cancelled');
  }

  /** Its thread ended in no step of it: it runs again, and the actor drops the samples that it has already. */
  #retry(segment: ScheduledSegment, inStep: boolean): void {
    const attempt = this.#attempts.get(segment);
    if (attempt !== undefined && !inStep) attempt.retries++;
    if (this.#over || attempt === undefined || attempt.retries > this.#parts.bounds.segmentRetriesMax)
      this.#failSegment(segment, 'its synthesis threads kept ending');
    else this.#parts.scheduler.requeue(this.schedule, segment);
  }

  /** Ends the context, unless it is over; its segment runs no more. */
  #failSegment(segment: ScheduledSegment, reason: string): void {
    this.fail(reason);
    this.#parts.scheduler.abandoned(this.schedule, segment);
  }

  readonly #feed = (): void => {
    // Starting a segment feeds again: without this guard the inner call would overtake the outer one's segments.
    const { bounds, later, options, scheduler } = this.#parts;
    if (this.#isFeeding || later.has(this.#feed, options.lease.account)) return;
    this.#isFeeding = true;
    const endMs = scheduler.nowMs() + bounds.sliceMsMax;
    try {
      while (!this.#over && this.schedule.queued.length < SEGMENTS_AHEAD) {
        // A megabyte of white space has no segment, and Chinese is slow to cut: other contexts must not wait for the end.
        if (scheduler.nowMs() > endMs) {
          later.add(this.#feed, options.lease.account);
          break;
        }
        const segments = this.#utterances.cut();
        if (segments === null) break;
        for (const segment of segments) scheduler.enqueue(this.schedule, segment);
      }
    } catch (error) {
      this.#onFault(error);
    } finally {
      this.#isFeeding = false;
    }
    this.#sendFlushes();
    this.#closeWhenFed();
  };

  /** A flush, like the close, is announced after the last segment before it. */
  #sendFlushes(): void {
    if (this.#over) return;
    for (;;) {
      const flush = this.#utterances.takeFlush(this.#announced);
      if (flush === undefined) return;
      this.#flushedSegments = this.#announced;
      this.#parts.scheduler.tailAsked(this.schedule, this.#announced - 1);
      this.#parts.actors.send({ type: 'flush', contextId: this.id, ...flush });
    }
  }

  /** The actor closes when it has released what was announced: so the close is announced last. */
  #closeWhenFed(): void {
    if (this.#over || this.#closeSent || !this.#utterances.isCutToEnd) return;
    if (this.#announced < this.#utterances.cutSegments) return;
    this.#closeSent = true;
    this.#parts.scheduler.tailAsked(this.schedule, this.#announced - 1);
    this.#parts.actors.send({ type: 'close', contextId: this.id, ...this.#utterances.takeBlank() });
  }

  #announce(segment: ScheduledSegment): void {
    this.#announced = segment.index + 1;
    this.#parts.actors.send({
      type: 'segment',
      contextId: this.id,
      segment: segment.index,
      ...tokensOf(segment, this.#parts.options),
      tokenContinues: segment.tokenContinues,
    });
  }

  #chargeUpTo(segment: number): void {
    const { lease, settings } = this.#parts.options;
    lease.settle(this.#utterances.charge(segment), settings.voiceId);
  }

  /** Stops everything below: no segment starts, running ones end at their next step, the actor forgets the context. */
  #abandon(): void {
    if (this.#over) return;
    for (const job of this.#jobs.values()) job.cancel();
    this.#parts.actors.send({ type: 'cancel', contextId: this.id });
    this.#parts.scheduler.close(this.schedule);
    this.#finish();
  }

  /** Audio that was made and waits for its socket still counts for the gate, until the release. */
  #finish(): void {
    this.#over = true;
    this.#utterances.clear();
    this.#parts.generations.leave(this.#generation);
    this.#parts.onOver(this);
  }
}
