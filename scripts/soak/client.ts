/**
 * What all clients of a soak have in common: a client rests and acts in turn. A stopped one ends what it does, and stays away
 * until it is resumed.
 *
 *   resting --(its time has come)--> acting --rest--> resting --(stopped)--> gone --resume--> resting
 */
import type { LoopClock } from '../rig/loop-clock.js';
import type { Arrival } from '../rig/playback.js';
import type { FaultKind, Target } from './measures.js';
import type { Meter, Reply } from './meter.js';
import { judgeDry } from './plausible.js';

export interface ClientParts {
  readonly seed: number;
  readonly client: number;
  readonly key: string;
  readonly target: Target;
  /** The service may refuse what it has no capacity for. */
  readonly mayRefuse: boolean;
  /** An utterance may fail if its client sees that: an error ends its context, or its answer is 5xx or cut. */
  readonly mayFail: boolean;
  /** For an answer of a WebSocket, in milliseconds. Speech has the time that it takes besides, and HTTP has twice as long. */
  readonly answerMsMax: number;
  /** Services are restarted, and may close WebSockets: quiet ones, and all after so many milliseconds; `null`: they are not. */
  readonly drainMs: number | null;
  readonly clock: LoopClock;
  readonly meter: Meter;
  /** When it first acts. */
  readonly beginMs: number;
}

export abstract class SoakClient<Parts extends ClientParts = ClientParts> {
  protected readonly parts: Parts;
  #state: 'resting' | 'acting' | 'gone' = 'resting';
  #nextMs: number;
  #isStopping = false;

  constructor(parts: Parts) {
    this.parts = parts;
    this.#nextMs = parts.beginMs;
  }

  /** The client, and what it does: with the seed, it identifies what was sent. */
  protected abstract get name(): string;

  protected fault(kind: FaultKind, what: string): void {
    this.parts.meter.fault(kind, this.name, what);
  }

  /**
   * Audio of a reply has come.
   *
   * @param completeMs when its text was complete; `null`: not yet
   * @param isTimed whether its first audio is judged
   */
  protected hear(
    arrival: Arrival | null,
    nowMs: number,
    completeMs: number | null,
    reply: Reply,
    isTimed = true,
  ): void {
    const { clock, meter } = this.parts;
    if (arrival?.kind === 'first') meter.heardFirst(this.name, isTimed ? arrival.waitedMs : null, reply);
    if (arrival?.kind !== 'dry') return;
    const { sinceMs } = arrival;
    const clientLateMs = clock.latenessMs(sinceMs, nowMs);
    const moment = { sinceMs, untilMs: nowMs, textCompleteMs: completeMs, clientLateMs };
    meter.dry(this.name, judgeDry(moment), reply);
  }

  /** It was stopped, and has left. */
  get isGone(): boolean {
    return this.#state === 'gone';
  }

  protected get isStopping(): boolean {
    return this.#isStopping;
  }

  /** It speaks to the end of what it has begun; then it leaves, and stays away until `resume`. */
  stop(): void {
    this.#isStopping = true;
  }

  /** @param beginMs when it acts again */
  resume(beginMs: number): void {
    this.#isStopping = false;
    if (this.#state !== 'gone') return;
    this.#state = 'resting';
    this.#nextMs = beginMs;
  }

  tick(nowMs: number): void {
    if (this.#state === 'acting') this.act(nowMs);
    else if (this.#state === 'resting' && this.#isStopping) {
      this.#state = 'gone';
      this.left();
    } else if (this.#state === 'resting' && nowMs >= this.#nextMs) {
      this.#state = 'acting';
      this.begin(nowMs);
    }
  }

  /** What it did is over. */
  protected rest(pauseMs: number): void {
    this.#state = 'resting';
    this.#nextMs = performance.now() + pauseMs;
  }

  protected abstract begin(nowMs: number): void;

  /** Called at each tick until it rests. */
  protected abstract act(nowMs: number): void;

  protected left(): void {
    // For clients that keep a connection.
  }
}
