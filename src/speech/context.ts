/**
 * A context on the front thread: text in, segments to the scheduler, marks to the actor, frames to the transport.
 *
 *   open --append*, flush*--> feeding --end--> ending --(actor: closed)--> over
 *     any of these --(fault)--> failed;  any --release--> released (lease closed, nothing follows)
 *
 * Text is cut as the queue drains, so that a megabyte of it neither blocks the thread nor fills the queue.
 */
import { randomInt } from 'node:crypto';
import { normalise } from '../text/normalise/normalise.js';
import { codePointCount, endOfSlice } from '../text/code-points.js';
import { Segmenter } from '../text/segments.js';
import { faultPlace } from '../fault.js';
import type { Bounds } from '../limits.js';
import { heldBytesAMs } from './audio-bytes.js';
import type { ActorThreads } from '../threads/actor-threads.js';
import { Charges } from './charges.js';
import type { ContextMeter } from './context-meter.js';
import type { FailureCode, Frame } from '../threads/messages.js';
import type { ContextSchedule, ScheduledSegment, Scheduler } from './scheduler.js';
import type { Activity, ContextOptions, FrameSink, SpeechContext } from './speech.js';
import type { Generation, Generations } from '../threads/generations.js';
import type { Job } from '../threads/synthesis-pool.js';
import type { JobOutcome } from '../threads/synthesis-thread.js';

/** Segments cut ahead of the scheduler: enough that it never waits for the cutter. */
const SEGMENTS_AHEAD = 4;
/** UTF-16 units cut at a time: about 0.05 ms of work, so that the first segment starts before the rest is looked at. */
const SLICE_UNITS = 512;

export interface ContextParts {
  readonly id: number;
  readonly actor: number;
  readonly options: ContextOptions;
  readonly sink: FrameSink;
  readonly scheduler: Scheduler;
  readonly generations: Generations;
  readonly actors: ActorThreads;
  readonly bounds: Bounds;
  readonly meter: ContextMeter;
  /** The context needs no more mail: called once. */
  readonly onOver: (context: Context) => void;
}

export class Context implements SpeechContext {
  readonly id: number;
  readonly actor: number;
  readonly schedule: ContextSchedule;
  readonly #parts: ContextParts;
  readonly #sampleRateHz: number;
  /** Whose threads speak it. */
  #generation: Generation;
  readonly #segmenter: Segmenter;
  readonly #pending: (string | { readonly flushId: string })[] = [];
  /** Flushes whose text is cut, with the number of segments before them. */
  readonly #flushes: { readonly flushId: string; readonly segments: number }[] = [];
  readonly #jobs = new Map<ScheduledSegment, Job>();
  /** Of segments that were started: run again, they have the same seed. */
  readonly #attempts = new Map<ScheduledSegment, { readonly seed: number; retries: number }>();
  readonly #utteranceSeed = randomInt(2 ** 32);
  readonly #charges = new Charges();
  #nextSegment = 0;
  #nextMark = 0;
  /** Segments before the last flush that was cut: they are of a turn that is complete. */
  #turnStart = 0;
  #spokenSegments = 0;
  #openFlushes = 0;
  #unhandedFrames = 0;
  #ended = false;
  #cutToEnd = false;
  #closeSent = false;
  #feeding = false;
  #over = false;
  #released = false;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    ({ id: this.id, actor: this.actor } = parts);
    this.#segmenter = new Segmenter(parts.bounds);
    const { format, framing, timestamps, clientContextId, settings, group, lease } = parts.options;
    this.#generation = parts.generations.enter();
    this.#sampleRateHz = this.#generation.voices.sampleRateHz(settings.voiceId);
    const bytesAMs = heldBytesAMs(format, this.#sampleRateHz);
    this.schedule = parts.scheduler.open(group ?? lease, { bytesAMs, onResumed: parts.meter.resumed });
    parts.actors.send(parts.actor, {
      type: 'open',
      contextId: parts.id,
      format,
      framing,
      timestamps,
      engineSampleRateHz: this.#sampleRateHz,
      ...(clientContextId !== undefined && { clientContextId }),
    });
  }

  get activity(): Activity {
    if (this.#released) return 'idle';
    const isSpeaking = this.#over
      ? this.#unhandedFrames > 0
      : this.#ended ||
        this.#pending.length > 0 ||
        this.#openFlushes > 0 ||
        this.#spokenSegments < this.#nextSegment ||
        this.#unhandedFrames > 0;
    if (isSpeaking) return 'speaking';
    return !this.#over && this.#segmenter.holdsWords ? 'holding' : 'idle';
  }

  /** Text was cut, or is about to be, and not all that it became is heard. */
  get #isMidUtterance(): boolean {
    if (this.activity === 'holding') return this.#nextSegment > this.#turnStart;
    return this.activity === 'speaking' || this.#jobs.size > 0;
  }

  append(text: string): void {
    if (this.#over || this.#ended || text === '') return;
    const last = this.#pending.at(-1);
    // Words that come letter by letter wait as a few long texts.
    if (typeof last === 'string' && last.length < SLICE_UNITS)
      this.#pending[this.#pending.length - 1] = last + text;
    else this.#pending.push(text);
    this.#feed();
  }

  flush(flushId: string): void {
    if (this.#over || this.#ended) return;
    this.#openFlushes++;
    this.#pending.push({ flushId });
    this.#feed();
  }

  dropTurn(): number {
    if (this.#over || this.#ended) return 0;
    let characters = 0;
    const flushed = this.#pending.findLastIndex((entry) => typeof entry !== 'string');
    for (const text of this.#pending.splice(flushed + 1) as string[]) characters += codePointCount(text);
    // Text before a flush that is still to be cut is of a turn that is complete, and so is all that was cut before.
    if (flushed >= 0) return characters;
    for (const segment of this.#segmenter.flush()) characters += codePointCount(segment.text);
    const kept = Math.max(this.#nextMark, this.#turnStart);
    this.schedule.withdraw(kept);
    characters += this.#charges.drop(kept);
    this.#nextSegment = kept;
    return characters;
  }

  end(): void {
    if (this.#over || this.#ended) return;
    this.#ended = true;
    this.#feed();
  }

  handed(frame: Extract<Frame, { type: 'audio' }>): void {
    if (this.#released) return;
    this.#unhandedFrames--;
    this.#parts.meter.handed(frame);
    this.schedule.handed(frame.durationMs);
    // A whole result is charged when it is complete: one that fails is free.
    if (this.#parts.options.framing !== 'whole') this.#chargeUpTo(frame.segment);
    this.renew();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#abandon();
    this.#parts.scheduler.close(this.schedule);
    this.#parts.options.lease.close();
  }

  deliver(frame: Frame): void {
    if (this.#over) return;
    switch (frame.type) {
      case 'audio':
        this.#unhandedFrames++;
        this.#parts.meter.arrived(frame);
        break;
      case 'spoken':
        this.#spokenSegments = frame.segment + 1;
        break;
      case 'flushed':
        this.#openFlushes--;
        break;
      case 'closed':
        if (this.#parts.options.framing === 'whole') this.#chargeUpTo(this.#nextSegment - 1);
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

  /** Moves to the voices of now when nothing of an utterance is under way, if its voice is there at its rate. */
  renew(): void {
    const { generations, options } = this.#parts;
    if (this.#over || generations.isCurrent(this.#generation) || this.#isMidUtterance) return;
    this.#generation = generations.move(this.#generation, options.settings.voiceId, this.#sampleRateHz);
  }

  /** It keeps older voices, and is not heard. */
  get isOutdated(): boolean {
    if (this.#over || this.activity === 'speaking' || this.#jobs.size > 0) return false;
    return !this.#parts.generations.isCurrent(this.#generation);
  }

  /** Ends the context short, telling its transport; without a code it is a fault of ours. */
  fail(reason: string, code?: FailureCode): void {
    if (this.#over) return;
    this.#abandon();
    this.#parts.sink({ type: 'failed', contextId: this.id, reason, code });
  }

  /** The scheduler starts one of this context's segments: in the turn of any other, whom a fault must not meet. */
  start(segment: ScheduledSegment, playFromMs: number, readySinceMs: number): void {
    this.#guarded(segment, () => this.#start(segment, playFromMs, readySinceMs));
  }

  #start(segment: ScheduledSegment, playFromMs: number, readySinceMs: number): void {
    if (segment.index >= this.#nextMark) {
      this.#sendFlushes();
      this.#sendMark(segment);
    }
    const { bounds, options } = this.#parts;
    const { settings } = options;
    const attempt = this.#attempts.get(segment) ?? { seed: randomInt(2 ** 32), retries: 0 };
    this.#attempts.set(segment, attempt);
    const job = {
      contextId: this.id,
      segment: segment.index,
      text: segment.text,
      words: segment.words,
      ...(settings.normalizeText && { spoken: normalise(segment.text, segment.words, bounds) }),
      before: segment.before,
      after: segment.after,
      settings,
      seed: attempt.seed,
      utteranceSeed: this.#utteranceSeed,
      actor: this.actor,
    };
    // Last, so that whatever can fail has not.
    const running = this.#generation.pool.run(job, playFromMs);
    this.#jobs.set(segment, running);
    void running.outcome.then((outcome) =>
      this.#guarded(segment, () => this.#onOutcome(segment, readySinceMs, outcome)),
    );
    this.#feed();
  }

  /** A fault of ours ends this context and no other; the segment is no longer counted as running. */
  #guarded(segment: ScheduledSegment, react: () => void): void {
    try {
      react();
    } catch (error) {
      this.schedule.finished(segment, 0);
      this.fail(`a fault of the dispatch: ${faultPlace(error)}`);
    }
  }

  /** The scheduler moved the playback clock of a running segment. */
  moved(segment: ScheduledSegment, playFromMs: number): void {
    this.#jobs.get(segment)?.setPlayFrom(playFromMs);
  }

  #onOutcome(segment: ScheduledSegment, readySinceMs: number, outcome: JobOutcome): void {
    this.#jobs.delete(segment);
    switch (outcome.type) {
      case 'done': {
        const audioMs = (outcome.samples * 1000) / this.#sampleRateHz;
        this.#parts.meter.made(readySinceMs, outcome.effort, audioMs);
        this.#attempts.delete(segment);
        this.schedule.finished(segment, audioMs);
        this.renew();
        return;
      }
      case 'cancelled':
        this.#parts.meter.made(readySinceMs, outcome.effort, null);
        this.schedule.finished(segment, 0);
        return;
      case 'interrupted':
        this.#retry(segment);
        return;
      case 'failed':
        this.schedule.finished(segment, 0);
        this.fail(outcome.reason);
    }
  }

  /** Runs a bystander of a thread's death again: the same seed gives the same samples, of which the actor drops what it has. */
  #retry(segment: ScheduledSegment): void {
    const attempt = this.#attempts.get(segment);
    if (this.#over || attempt === undefined || ++attempt.retries > this.#parts.bounds.segmentRetriesMax) {
      this.schedule.finished(segment, 0);
      this.fail('its synthesis threads kept ending');
      return;
    }
    this.schedule.requeue(segment);
  }

  #feed(): void {
    // Starting a segment feeds again: without this guard the inner call would overtake the outer one's segments.
    if (this.#feeding) return;
    this.#feeding = true;
    while (!this.#over && this.schedule.queuedSegments < SEGMENTS_AHEAD && this.#cut());
    this.#feeding = false;
    this.#sendFlushes();
    this.#closeWhenFed();
  }

  /** As the close, a flush is told after the mark of the last segment before it. */
  #sendFlushes(): void {
    if (this.#over) return;
    for (let next = this.#flushes[0]; next !== undefined; next = this.#flushes[0]) {
      if (this.#nextMark < next.segments) return;
      this.#flushes.shift();
      this.schedule.tailAsked(this.#nextMark - 1);
      this.#parts.actors.send(this.actor, { type: 'flush', contextId: this.id, flushId: next.flushId });
    }
  }

  /** The actor closes when it has released what it was told of: so it is told after the last segment's mark. */
  #closeWhenFed(): void {
    if (this.#over || this.#closeSent || !this.#cutToEnd || this.#nextMark < this.#nextSegment) return;
    this.#closeSent = true;
    this.schedule.tailAsked(this.#nextMark - 1);
    this.#parts.actors.send(this.actor, { type: 'close', contextId: this.id });
  }

  /** Cuts the next slice of text into segments. `false` when there is nothing to cut. */
  #cut(): boolean {
    const next = this.#pending.shift();
    if (typeof next === 'string') {
      const end = endOfSlice(next, SLICE_UNITS);
      if (end < next.length) this.#pending.unshift(next.slice(end));
      this.#enqueue(this.#segmenter.push(next.slice(0, end)));
      return true;
    }
    if (next !== undefined) {
      this.#enqueue(this.#segmenter.flush());
      this.#turnStart = this.#nextSegment;
      this.#flushes.push({ flushId: next.flushId, segments: this.#nextSegment });
      return true;
    }
    if (!this.#ended || this.#cutToEnd) return false;
    this.#cutToEnd = true;
    // A request for blank text is answered by a short silence; on a socket nothing was asked for.
    this.#enqueue(this.#segmenter[this.#parts.options.framing === 'socket' ? 'flush' : 'end']());
    return true;
  }

  #enqueue(segments: ReturnType<Segmenter['push']>): void {
    for (const segment of segments) {
      this.#charges.add(codePointCount(segment.text));
      if (!segment.speak) continue;
      this.#charges.endSegment();
      this.schedule.enqueue({ ...segment, index: this.#nextSegment++ });
    }
  }

  #sendMark(segment: ScheduledSegment): void {
    this.#nextMark = segment.index + 1;
    this.#parts.actors.send(this.actor, {
      type: 'segment',
      contextId: this.id,
      segment: segment.index,
      words: this.#parts.options.timestamps
        ? segment.words.map(({ start, end }) => segment.text.slice(start, end))
        : [],
      tokenContinues: segment.tokenContinues,
    });
  }

  #chargeUpTo(segment: number): void {
    const characters = this.#charges.take(segment);
    if (characters > 0) this.#parts.options.lease.settle(characters);
  }

  /** Stops everything below: no segment starts, running ones end at their next step, the actor forgets. */
  #abandon(): void {
    if (this.#over) return;
    for (const job of this.#jobs.values()) job.cancel();
    this.#parts.actors.send(this.actor, { type: 'cancel', contextId: this.id });
    this.#parts.scheduler.close(this.schedule);
    this.#finish();
  }

  /** What was made and waits for its socket still counts for the gate, until the release. */
  #finish(): void {
    this.#over = true;
    this.#pending.length = 0;
    this.#flushes.length = 0;
    this.#parts.generations.leave(this.#generation);
    this.#parts.onOver(this);
  }
}
