/** Idle WebSockets: they answer pings, and now and then open and close a context without any text. */
import { createAudioCheck } from '../rig/audio-check.js';
import { ContextCheck } from '../rig/context-check.js';
import {
  encodeMessage,
  encodeStart,
  isGoingAway,
  openMany,
  SocketConnection,
  type ServerFrame,
  unavailable,
} from '../rig/socket.js';
import type { ClientParts } from './client.js';
import { drawIdlePauseMs } from './population.js';

type IdleParts = Pick<ClientParts, 'seed' | 'key' | 'target' | 'meter' | 'answerMsMax' | 'drainMs'>;

class IdleSocket {
  readonly #parts: IdleParts;
  readonly #index: number;
  #connection: SocketConnection;
  #check: ContextCheck | null = null;
  #times = 0;
  #timer: NodeJS.Timeout;

  constructor(parts: IdleParts, index: number) {
    this.#parts = parts;
    this.#index = index;
    parts.meter.sockets++;
    this.#connection = this.#connect();
    // For some sockets the first time comes soon, so that a short soak has it too.
    const firstMs = drawIdlePauseMs(parts.seed, index, 0) - 30_000;
    this.#timer = setTimeout(() => this.#openContext(), firstMs);
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  close(): void {
    if (!this.#connection.isOver) this.#end();
    this.#connection.close();
  }

  #end(): void {
    this.#parts.meter.sockets--;
    clearTimeout(this.#timer);
  }

  #openContext(): void {
    const { answerMsMax, drainMs, meter, seed, target } = this.#parts;
    if (this.#check !== null) meter.fault('answers', this.#name, 'a context is not closed');
    const id = `idle-${this.#index}-${++this.#times}`;
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
    this.#openAfter(Math.max(answerMsMax, drawIdlePauseMs(seed, this.#index, this.#times)));
  }

  #openAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#openContext(), ms);
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
          } else {
            meter.fault('sockets', this.#name, error.message);
            this.#end();
          }
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
    if (kind === 'start-refused') this.#openAfter(this.#parts.answerMsMax);
  }
}

/** @returns their end @throws when a handshake fails */
export const openIdleSockets = async (parts: IdleParts, count: number): Promise<() => void> => {
  const sockets = await openMany(count, (index) => new IdleSocket(parts, index));
  return () => {
    for (const socket of sockets) socket.close();
  };
};
