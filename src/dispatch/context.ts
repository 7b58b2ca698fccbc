/**
 * A context on the front thread: text in, segments to the scheduler, marks to the actor, frames to the transport.
 *
 *   open --append*--> feeding --end--> ending --(actor: closed)--> over
 *     any of these --(fault)--> failed;  any --release--> released (lease closed, nothing follows)
 *
 * Text is cut as the queue drains, so that a megabyte of it neither blocks the thread nor fills the queue.
 */
import { randomInt } from 'node:crypto';
import { normalise } from '../text/normalise/normalise.js';
import { codePointCount } from '../text/code-points.js';
import { Segmenter } from '../text/segments.js';
import { limits } from '../limits.js';
import type { ActorThreads } from './actor-threads.js';
import type { Frame } from './messages.js';
import type { ContextSchedule, ScheduledSegment, Scheduler } from './scheduler.js';
import type { ContextOptions, FrameSink, SpeechContext } from './speech.js';
import type { JobOutcome, SynthesisPool } from './synthesis-pool.js';

/** Segments cut ahead of the scheduler: enough that it never waits for the cutter. */
const SEGMENTS_AHEAD = 4;
/** UTF-16 units cut at a time: about 0.05 ms of work, so that the first segment starts before the rest is looked at. */
const SLICE_UNITS = 512;
const DEFAULT_TEMPERATURE = 1;

export interface ContextParts {
  readonly id: number;
  readonly actor: number;
  readonly sampleRateHz: number;
  readonly options: ContextOptions;
  readonly sink: FrameSink;
  readonly scheduler: Scheduler;
  readonly pool: SynthesisPool;
  readonly actors: ActorThreads;
  /** The context needs no more mail: called once. */
  readonly onOver: (context: Context) => void;
}

const randomSeed = (): number => randomInt(2 ** 32);

export class Context implements SpeechContext {
  readonly id: number;
  readonly actor: number;
  readonly schedule: ContextSchedule;
  readonly #parts: ContextParts;
  readonly #segmenter = new Segmenter();
  readonly #pendingText: string[] = [];
  readonly #slots = new Map<ScheduledSegment, number>();
  readonly #retries = new Map<ScheduledSegment, number>();
  readonly #seeds = new Map<ScheduledSegment, number>();
  readonly #utteranceSeed = randomSeed();
  /** Code points of segments not charged yet, from segment `#nextCharge` on. */
  readonly #charges: number[] = [];
  #unspokenCharacters = 0;
  #nextCharge = 0;
  #nextSegment = 0;
  #nextMark = 0;
  #ended = false;
  #cutToEnd = false;
  #closeSent = false;
  #feeding = false;
  #over = false;
  #released = false;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.actor = parts.actor;
    this.schedule = parts.scheduler.open(parts.options.lease);
    const { format, framing, timestamps } = parts.options;
    parts.actors.send(parts.actor, {
      type: 'open',
      contextId: parts.id,
      format,
      framing,
      timestamps,
      engineSampleRateHz: parts.sampleRateHz,
    });
  }

  append(text: string): void {
    if (this.#over || this.#ended || text === '') return;
    this.#pendingText.push(text);
    this.#feed();
  }

  end(): void {
    if (this.#over || this.#ended) return;
    this.#ended = true;
    this.#feed();
  }

  handed(frame: Extract<Frame, { type: 'audio' }>): void {
    if (this.#released) return;
    this.schedule.handed(frame.durationMs);
    // A whole result is charged when it is complete: one that fails is free.
    if (this.#parts.options.framing !== 'whole') this.#chargeUpTo(frame.segment);
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#abandon();
    this.#parts.options.lease.close();
  }

  /** A frame of this context came from its actor. */
  deliver(frame: Frame): void {
    if (this.#over) return;
    if (frame.type === 'closed') {
      if (this.#parts.options.framing === 'whole') this.#chargeUpTo(this.#nextSegment - 1);
      this.#finish();
    } else if (frame.type === 'failed') {
      this.fail(frame.reason);
      return;
    }
    this.#parts.sink(frame);
  }

  /** Ends the context short, telling its transport. */
  fail(reason: string): void {
    if (this.#over) return;
    this.#abandon();
    this.#parts.sink({ type: 'failed', contextId: this.id, reason });
  }

  /** The scheduler starts one of this context's segments: in the turn of any other, whom a fault must not meet. */
  start(segment: ScheduledSegment, playFromMs: number): void {
    this.#guarded(segment, () => this.#start(segment, playFromMs));
  }

  #start(segment: ScheduledSegment, playFromMs: number): void {
    if (segment.index >= this.#nextMark) this.#sendMark(segment);
    const { pool, options } = this.#parts;
    let seed = this.#seeds.get(segment);
    if (seed === undefined) this.#seeds.set(segment, (seed = randomSeed()));
    const job = {
      contextId: this.id,
      segment: segment.index,
      text: segment.text,
      words: segment.words,
      ...(options.normalizeText === true && { spoken: normalise(segment.text, segment.words) }),
      before: segment.before,
      after: segment.after,
      voiceId: options.voiceId,
      temperature: options.temperature ?? DEFAULT_TEMPERATURE,
      seed,
      utteranceSeed: this.#utteranceSeed,
      actor: this.actor,
    };
    // Last, so that whatever can fail has not: the slot is given back by the job's end.
    const slot = pool.reserve(playFromMs);
    this.#slots.set(segment, slot);
    void pool
      .run({ ...job, slot })
      .then((outcome) => this.#guarded(segment, () => this.#onOutcome(segment, outcome)));
    this.#feed();
  }

  /** A fault of ours ends this context and no other; the segment is no longer counted as running. */
  #guarded(segment: ScheduledSegment, react: () => void): void {
    try {
      react();
    } catch (error) {
      this.schedule.finished(segment, 0);
      this.fail(`a fault of the dispatch: ${error instanceof Error ? error.name : typeof error}`);
    }
  }

  /** The scheduler moved the playback clock of a running segment. */
  moved(segment: ScheduledSegment, playFromMs: number): void {
    const slot = this.#slots.get(segment);
    if (slot !== undefined) this.#parts.pool.setPlayFrom(slot, playFromMs);
  }

  #onOutcome(segment: ScheduledSegment, outcome: JobOutcome): void {
    this.#slots.delete(segment);
    switch (outcome.type) {
      case 'done':
        this.#forget(segment);
        this.schedule.finished(segment, (outcome.samples * 1000) / this.#parts.sampleRateHz);
        return;
      case 'cancelled':
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
    const retries = (this.#retries.get(segment) ?? 0) + 1;
    if (this.#over || retries > limits.segmentRetriesMax) {
      this.schedule.finished(segment, 0);
      this.fail('its synthesis threads kept ending');
      return;
    }
    this.#retries.set(segment, retries);
    this.schedule.requeue(segment);
  }

  #forget(segment: ScheduledSegment): void {
    this.#retries.delete(segment);
    this.#seeds.delete(segment);
  }

  #feed(): void {
    // Starting a segment feeds again: without this guard the inner call would overtake the outer one's segments.
    if (this.#feeding) return;
    this.#feeding = true;
    while (this.#isHungry() && this.#cut());
    this.#feeding = false;
    this.#closeWhenFed();
  }

  #isHungry(): boolean {
    return !this.#over && this.schedule.queuedSegments < SEGMENTS_AHEAD;
  }

  /** The actor closes when it has released what it was told of: so it is told after the last segment's mark. */
  #closeWhenFed(): void {
    if (this.#over || this.#closeSent || !this.#cutToEnd || this.#nextMark < this.#nextSegment) return;
    this.#closeSent = true;
    this.#parts.actors.send(this.actor, { type: 'close', contextId: this.id });
  }

  /** Cuts the next slice of text into segments. `false` when there is nothing to cut. */
  #cut(): boolean {
    const text = this.#pendingText.shift();
    if (text !== undefined) {
      if (text.length > SLICE_UNITS) this.#pendingText.unshift(text.slice(SLICE_UNITS));
      this.#enqueue(this.#segmenter.push(text.slice(0, SLICE_UNITS)));
      return true;
    }
    if (!this.#ended || this.#cutToEnd) return false;
    this.#cutToEnd = true;
    this.#enqueue(this.#segmenter.end());
    return true;
  }

  #enqueue(segments: ReturnType<Segmenter['push']>): void {
    for (const segment of segments) {
      this.#unspokenCharacters += codePointCount(segment.text);
      if (!segment.speak) continue;
      // White space between segments is charged with the one after it.
      this.#charges.push(this.#unspokenCharacters);
      this.#unspokenCharacters = 0;
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
    let characters = 0;
    while (this.#nextCharge <= segment) {
      characters += this.#charges.shift() ?? 0;
      this.#nextCharge++;
    }
    if (characters > 0) this.#parts.options.lease.settle(characters);
  }

  /** Stops everything below: no segment starts, running ones end at their next step, the actor forgets. */
  #abandon(): void {
    if (this.#over) return;
    for (const slot of this.#slots.values()) this.#parts.pool.cancel(slot);
    this.#parts.actors.send(this.actor, { type: 'cancel', contextId: this.id });
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#pendingText.length = 0;
    this.#parts.scheduler.close(this.schedule);
    this.#parts.onOver(this);
  }
}
