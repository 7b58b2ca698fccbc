/**
 * WebSockets on which hardly anything happens: pings are answered, and now and then a context is opened and closed,
 * in which nothing is spoken.
 */
import { createAudioCheck } from '../rig-old/audio-check.js';
import { ContextCheck } from '../rig-old/context-check.js';
import { socketPath } from '../rig-old/context-start.js';
import type { ServerFrame } from '../rig-old/server-frame.js';
import { SocketConnection, encodeMessage } from '../rig-old/socket-connection.js';
import { drawIdlePauseMs } from './population.js';
import type { Target } from './protocol.js';
import type { Tally } from './tally.js';

/** Handshakes at a time: more than these the backlog of a listening socket may refuse. */
const handshakesMax = 100;
/** So many ticks until each was looked at. */
const ticksARound = 50;
const answerMsMax = 15_000;

interface IdleParts {
  readonly seed: number;
  readonly key: string;
  readonly target: Target;
  readonly tally: Tally;
}

class IdleSocket {
  readonly #parts: IdleParts;
  readonly #index: number;
  readonly #connection: SocketConnection;
  #check: ContextCheck | null = null;
  #times = 0;
  #nextMs: number;
  #isOpen = true;

  constructor(parts: IdleParts, index: number, nowMs: number) {
    this.#parts = parts;
    this.#index = index;
    const { key, seed, tally, target } = parts;
    // The first time comes soon for some, so that a short soak has it too.
    this.#nextMs = nowMs + drawIdlePauseMs(seed, index, 0) - 30_000;
    tally.sockets++;
    this.#connection = new SocketConnection(
      { host: target.host, port: target.port, path: socketPath, key, wantsAll: true },
      {
        onAudio: () => undefined,
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          tally.fault('sockets', this.#name, error.message);
          tally.sockets--;
          this.#isOpen = false;
        },
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  tick(nowMs: number): void {
    if (!this.#isOpen || nowMs < this.#nextMs) return;
    const { seed, tally, target } = this.#parts;
    if (this.#check !== null) {
      tally.fault('answers', this.#name, 'a context is not closed');
      this.#check = null;
    }
    const id = `idle-${String(this.#index)}-${String(++this.#times)}`;
    this.#nextMs = nowMs + Math.max(answerMsMax, drawIdlePauseMs(seed, this.#index, this.#times));
    this.#check = new ContextCheck({
      id,
      audio: createAudioCheck({ encoding: 'pcm', sampleRateHz: 32_000 }),
      timestamps: false,
      trailMs: null,
      wordMarginMs: null,
      msPerCharacter: null,
      onFault: (kind, what) => tally.fault(kind, this.#name, what),
    });
    this.#check.closing();
    tally.contexts++;
    const start = { voice_id: target.voices[this.#index % target.voices.length], model_id: 'default' };
    this.#connection.write(
      Buffer.concat([
        encodeMessage({ start_context: start, context_id: id }),
        encodeMessage({ close_context: true, context_id: id }),
      ]),
    );
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#parts.tally.sockets--;
    this.#connection.close();
  }

  get #name(): string {
    return `idle ${String(this.#index)}`;
  }

  #onMessage(json: string): void {
    this.#parts.tally.frames++;
    if (this.#check === null) this.#parts.tally.fault('frames', this.#name, `told ${json.slice(0, 200)}`);
    else if (this.#check.onFrame(JSON.parse(json) as ServerFrame) === 'closed') this.#check = null;
  }
}

export class IdleSockets {
  readonly #sockets: IdleSocket[] = [];
  #round = 0;

  /** @throws when the first handshakes fail */
  async open(parts: IdleParts, count: number): Promise<void> {
    for (let begin = 0; begin < count; begin += handshakesMax) {
      const batch = Array.from(
        { length: Math.min(handshakesMax, count - begin) },
        (_, i) => new IdleSocket(parts, begin + i, performance.now()),
      );
      this.#sockets.push(...batch);
      await Promise.all(batch.map((socket) => socket.opened()));
    }
  }

  tick(nowMs: number): void {
    this.#round = (this.#round + 1) % ticksARound;
    for (let i = this.#round; i < this.#sockets.length; i += ticksARound) this.#sockets[i]!.tick(nowMs);
  }

  close(): void {
    for (const socket of this.#sockets) socket.close();
  }
}
