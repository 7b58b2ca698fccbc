/** Someone who listens over a WebSocket, context after context, and looks at each frame of it. */
import { CheckedContext } from '../../rig-old/checked-context.js';
import { SocketConnection } from '../../rig-old/socket-connection.js';
import { encodeStart, socketPath } from '../../rig-old/context-start.js';
import type { ServerFrame } from '../../rig-old/server-frame.js';
import { Playback } from './playback.js';
import type { NeighbourParts } from './stream-neighbour.js';

const aheadMsMin = 200;
const turnsMax = 3;

export class SocketNeighbour {
  readonly playback = new Playback();
  readonly #parts: NeighbourParts;
  readonly #connection: SocketConnection;
  #context: CheckedContext | null = null;
  #contexts = 0;
  /** Of the context, before its turn. */
  #earlierMs = 0;
  #isEnding = false;
  #isGone = false;

  constructor(parts: NeighbourParts) {
    const { plan } = parts;
    this.#parts = parts;
    this.#connection = new SocketConnection(
      { port: plan.port, path: socketPath, key: plan.key, wantsAll: true },
      {
        onAudio: () => undefined,
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          this.#isGone = true;
          this.#fault(error.message);
        },
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  get isOver(): boolean {
    return this.#isGone || (this.#isEnding && this.#context === null);
  }

  tick(nowMs: number): void {
    this.playback.tick(nowMs);
    if (this.#isEnding || this.#isGone) return;
    if (this.#context === null) this.#start();
    else if (this.#context.isIdle && this.playback.aheadMs(nowMs) < aheadMsMin) {
      this.#earlierMs = this.#context.durationMs;
      this.playback.asked(nowMs);
      this.#context.speak();
    }
  }

  end(): void {
    this.#isEnding = true;
    this.#context?.close();
  }

  close(): void {
    this.#isEnding = true;
    if (this.#context !== null && !this.#isGone) this.#fault('a context never came to its end');
    this.#connection.close();
  }

  #start(): void {
    const { plan, name, nextText, random, onFault, onUtterance } = this.#parts;
    const id = `${name}.${String(this.#contexts++)}`;
    this.#context = new CheckedContext({
      id,
      turns: 1 + (this.#contexts % turnsMax),
      isCancelled: this.#contexts % 8 === 0,
      write: (frame) => this.#connection.write(frame),
      nextText,
      random,
      onOver: () => {
        this.#context = null;
        this.playback.ended();
        onUtterance();
      },
      onFault,
    });
    const format = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 64 } as const;
    this.#connection.write(encodeStart({ voice: plan.voice, format }, id, { timestamps: true }));
  }

  #onMessage(json: string): void {
    const frame = JSON.parse(json) as ServerFrame;
    const context = this.#context;
    const isLate =
      frame.context_id !== `${this.#parts.name}.${String(this.#contexts - 1)}` || context === null;
    // What was written to a context before it was known that it had failed.
    if (isLate && frame.error !== undefined && this.#parts.plan.toleratesFailures) return;
    if (context === null) {
      this.#fault(`a frame of no context that is open: ${json.slice(0, 200)}`);
      return;
    }
    if (frame.error !== undefined) {
      this.#parts.onFailure(`${this.#parts.name}: ${frame.error}`);
      this.#context = null;
      this.playback.ended();
      this.#parts.onUtterance();
      return;
    }
    context.onFrame(frame);
    this.playback.audio(performance.now(), context.durationMs - this.#earlierMs);
    if (frame.flush_completed !== undefined) this.playback.ended();
  }

  #fault(what: string): void {
    this.#parts.onFault(`${this.#parts.name}: ${what}`);
  }
}
