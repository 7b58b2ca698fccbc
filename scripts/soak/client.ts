/** What all clients of a soak have in common: a client acts, pauses, and acts again. A stopped one ends what it does, and is gone. */
import type { Changes } from '../rig/changes.js';
import { CheckedAnswer, type CheckedAnswerParts } from '../rig/checked-answer.js';
import type { Playback } from '../rig/playback.js';
import type { FaultKind, Target } from './measures.js';
import type { Meter, Reply } from './meter.js';
import { plausible } from './plausible.js';

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
  readonly meter: Meter;
  /** Notified every 20 ms: the resolution of sending words, and of reading at the speed of playback. */
  readonly ticks: Changes;
}

export abstract class SoakClient<Parts extends ClientParts = ClientParts> {
  protected readonly parts: Parts;
  #isRunning = false;
  #isStopping = false;

  constructor(parts: Parts) {
    this.parts = parts;
  }

  /** The client, and what it does: with the seed, it identifies what was sent. */
  protected abstract get name(): string;

  /** @returns milliseconds until it acts again */
  protected abstract act(): Promise<number>;

  /** From so many milliseconds on, until it is stopped. A client that still ends what it did goes on. */
  async run(delayMs: number): Promise<void> {
    this.#isStopping = false;
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let pauseMs = delayMs; !(await this.until(() => this.#isStopping, pauseMs));)
      pauseMs = await this.act();
    this.disconnect();
    this.#isRunning = false;
  }

  /** The client ends what it does, and then does nothing until `run` is called again. */
  stop(): void {
    this.#isStopping = true;
  }

  get isGone(): boolean {
    return !this.#isRunning;
  }

  protected get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Looks at each tick. @returns false if the condition does not hold in time */
  protected async until(condition: () => boolean, msMax: number): Promise<boolean> {
    const endMs = performance.now() + msMax;
    while (!condition()) {
      if (performance.now() >= endMs) return false;
      await this.parts.ticks.next();
    }
    return true;
  }

  protected disconnect(): void {
    // For clients that keep a connection.
  }

  protected fault(kind: FaultKind, what: string): void {
    this.parts.meter.fault(kind, this.name, what);
  }

  /** Checks the answer to one text. A listener plays a stream while it arrives, and does not play a file. */
  protected answerTo(
    reply: Reply,
    playback: Playback,
    asked: Pick<CheckedAnswerParts, 'kind' | 'format' | 'text' | 'timestamps'>,
  ): CheckedAnswer {
    const { meter, target } = this.parts;
    const { endTrailMs, wordMarginMs, httpMsPerCharacter } = plausible(target);
    const isStream = asked.kind === 'records';
    let heardMs = 0;
    return new CheckedAnswer({
      ...asked,
      id: reply.where,
      trailMs: endTrailMs,
      wordMarginMs: isStream ? wordMarginMs(asked.format) : null,
      msPerCharacter: httpMsPerCharacter,
      onFault: (kind, what) => meter.fault(kind, reply.where, what),
      onAudio: (durationMs) => {
        const nowMs = performance.now();
        meter.audioMs += durationMs - heardMs;
        heardMs = durationMs;
        if (asked.kind !== 'whole') meter.hear(reply, playback.audio(durationMs, nowMs), nowMs);
      },
    });
  }
}
