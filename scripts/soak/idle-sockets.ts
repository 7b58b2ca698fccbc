/** Idle WebSockets: they answer pings, and now and then open and close a context without any text. */
import { createAudioCheck } from '../rig/audio-check.js';
import { ContextCheck } from '../rig/context-check.js';
import {
  encodeMessage,
  encodeStart,
  isGoingAway,
  SocketConnection,
  type ServerFrame,
  unavailable,
} from '../rig/socket.js';
import type { ClientParts } from './client.js';
import { drawIdlePauseMs } from './population.js';

/** Handshakes at a time: the backlog of a listening socket may refuse more. */
const handshakesMax = 100;
/** Ticks until each socket has had one. */
const ticksARound = 50;

type IdleParts = Pick<ClientParts, 'seed' | 'key' | 'target' | 'meter' | 'answerMsMax' | 'drainMs'>;

class IdleSocket {
  readonly #parts: IdleParts;
  readonly #index: number;
  #connection: SocketConnection;
  #check: ContextCheck | null = null;
  #times = 0;
  #nextMs: number;
  #isOpen = true;

  constructor(parts: IdleParts, index: number, nowMs: number) {
    this.#parts = parts;
    this.#index = index;
    // For some sockets the first time comes soon, so that a short soak has it too.
    this.#nextMs = nowMs + drawIdlePauseMs(parts.seed, index, 0) - 30_000;
    parts.meter.sockets++;
    this.#connection = this.#connect();
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  tick(nowMs: number): void {
    if (!this.#isOpen || nowMs < this.#nextMs) return;
    const { answerMsMax, drainMs, seed, meter, target } = this.#parts;
    if (this.#check !== null) {
      meter.fault('answers', this.#name, 'a context is not closed');
      this.#check = null;
    }
    const id = `idle-${this.#index}-${++this.#times}`;
    this.#nextMs = nowMs + Math.max(answerMsMax, drawIdlePauseMs(seed, this.#index, this.#times));
    this.#check = new ContextCheck({
      id,
      audio: createAudioCheck({ encoding: 'pcm', sampleRateHz: 32_000 }),
      timestamps: false,
      trailMs: null,
      wordMarginMs: null,
      msPerCharacter: null,
      ...(drainMs !== null && { startRefusal: unavailable }),
      onFault: (kind, what) => meter.fault(kind, this.#name, what),
    });
    meter.contexts++;
    const voice = target.voices[this.#index % target.voices.length]!;
    this.#connection.write(encodeStart({ voice }, id));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#parts.meter.sockets--;
    this.#connection.close();
  }

  #connect(): SocketConnection {
    const { drainMs, key, meter, target } = this.#parts;
    return new SocketConnection(
      { ...target, key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          if (drainMs !== null && isGoingAway(error)) {
            meter.moved++;
            this.#check = null;
            this.#connection = this.#connect();
            return;
          }
          meter.fault('sockets', this.#name, error.message);
          meter.sockets--;
          this.#isOpen = false;
        },
      },
    );
  }

  get #name(): string {
    return `idle ${this.#index}`;
  }

  #onMessage(json: string): void {
    this.#parts.meter.frames++;
    if (this.#check === null) {
      this.#parts.meter.fault('frames', this.#name, `unasked: ${json.slice(0, 200)}`);
      return;
    }
    const frame = JSON.parse(json) as ServerFrame;
    const kind = this.#check.onFrame(frame);
    if (kind === 'started') {
      this.#check.closing();
      this.#connection.write(encodeMessage({ close_context: true, context_id: frame.context_id }));
    }
    if (kind === 'closed') this.#check = null;
    // The service stops and must close the socket. Until then the check stays, and the next context reports it.
    if (kind === 'start-refused') this.#nextMs = performance.now() + this.#parts.answerMsMax;
  }
}

export class IdleSockets {
  readonly #sockets: IdleSocket[] = [];
  #round = 0;

  /** @throws when a handshake fails */
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
