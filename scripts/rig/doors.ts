/** The ways to ask for speech, as bytes on a connection: through the public port, and through the dialects. */
import { connect, type Socket } from 'node:net';
import type { AudioFormat } from '../../src/api/formats.js';
import { encodeRequest, speechRequest } from './http.js';
import { encodeHandshake, encodeMessage, encodeStart } from './socket.js';
import { encodeWyoming } from './wyoming.js';

/** A client asks on a connection of its own. Patterns are for bytes as latin1. */
export interface Door {
  readonly name: string;
  readonly port: number;
  /** What comes before the request, and what answers it. */
  readonly greeting: { readonly says: Buffer; readonly hears: string } | null;
  readonly asks: Buffer;
  /** The beginning of what has the first audio. */
  readonly audio: string;
  /** The end of whole speech. */
  readonly whole: string;
  /** What a client sees when its speech is refused or fails. */
  readonly failed: RegExp;
}

/** The public one first. */
export interface Doors {
  /** Over HTTP, and Wyoming's. */
  readonly requests: readonly [Door, ...Door[]];
  /** Over WebSockets. */
  readonly sockets: readonly [Door, ...Door[]];
}

export interface DoorParts {
  readonly port: number;
  /** By name; all three. */
  readonly dialectPorts: Readonly<Record<string, number>>;
  readonly key: string;
  readonly voice: string;
  readonly text: string;
  readonly format: AudioFormat & { readonly encoding: 'pcm' };
}

const UPGRADED = '101 Switching Protocols\r\n';
const HEAD_END = '\r\n\r\n';

const overHttp = (name: string, port: number, asks: Buffer): Door => ({
  ...{ name, port, asks, greeting: null },
  ...{ audio: HEAD_END, whole: '\r\n0\r\n\r\n', failed: /HTTP\/1\.1 [45]/ },
});

export const doorsOf = ({ dialectPorts, format, key, port, text, voice }: DoorParts): Doors => {
  const { elevenlabs = 0, openai = 0, wyoming = 0 } = dialectPorts;
  const timed = { timestamps: true };
  const request = speechRequest({ key, voice, text, format, ...timed });
  const speech = `/v1/text-to-speech/${voice}`;
  const query = `output_format=pcm_${format.sampleRateHz}`;
  const elevenLabsHttp = (path: string) =>
    encodeRequest({ path: `${speech}${path}?${query}`, key, body: { text } });
  const openAi = (stream: 'audio' | 'sse') =>
    encodeRequest({
      path: '/v1/audio/speech',
      key,
      body: { input: text, voice, response_format: 'pcm', stream_format: stream },
    });
  const greetingOf = (says: Buffer) => ({ says, hears: UPGRADED });
  const clientPath = `${speech}/multi-stream-input?${query}&auto_mode=true&sync_alignment=true`;
  const ofContext = { context_id: 'c' };
  return {
    requests: [
      overHttp('HTTP', port, encodeRequest(request)),
      overHttp('ElevenLabs, HTTP', elevenlabs, elevenLabsHttp('/stream')),
      overHttp(
        'ElevenLabs, HTTP with the times of characters',
        elevenlabs,
        elevenLabsHttp('/stream/with-timestamps'),
      ),
      overHttp('OpenAI', openai, openAi('audio')),
      overHttp('OpenAI, events', openai, openAi('sse')),
      {
        ...{ name: 'Wyoming', port: wyoming, greeting: null },
        asks: encodeWyoming('synthesize', { text, voice: { name: voice } }),
        ...{ audio: '"audio-chunk"', whole: '"audio-stop"', failed: /"type":"error"/ },
      },
    ],
    sockets: [
      {
        ...{ name: 'a WebSocket', port, greeting: greetingOf(encodeHandshake(key)) },
        asks: Buffer.concat([
          encodeStart({ voice, format }, undefined, timed),
          encodeMessage({ send_text: text }),
          encodeMessage({ close_context: true }),
        ]),
        ...{ audio: '{"audio_chunk":"', whole: '"context_closed"', failed: /"error":"/ },
      },
      {
        ...{ name: 'ElevenLabs, WebSocket', port: elevenlabs },
        greeting: greetingOf(encodeHandshake(key, clientPath)),
        asks: Buffer.concat([
          encodeMessage({ text: ' ', ...ofContext }),
          encodeMessage({ text: `${text} `, ...ofContext, flush: true }),
          encodeMessage({ close_context: true, ...ofContext }),
        ]),
        ...{ audio: '{"audio":"', whole: '"isFinal":true', failed: /"error":"/ },
      },
    ],
  };
};

/** More than a pattern, and than what a library sends in one piece after it. */
const tailMax = 256;

export type VisitEnd = 'whole' | 'failed' | 'cut';

/** The ways through the dialects, without the public port. */
export const dialectDoors = (parts: DoorParts): readonly Door[] => {
  const { requests, sockets } = doorsOf(parts);
  return [...requests.slice(1), ...sockets.slice(1)];
};

export interface VisitOptions {
  /** By default this machine. */
  readonly host?: string;
  /** Of the client: Wyoming grants nine slots to each. */
  readonly localAddress?: string;
}

/** One client at a door: greets, asks, and listens. */
export class DoorVisit {
  readonly socket: Socket;
  /** When it asked, and when its first audio came; 0 before. */
  askedMs = 0;
  heardMs = 0;
  /** Bytes that came. */
  bytes = 0;
  readonly #door: Door;
  #tail = '';
  #end: VisitEnd | null = null;
  #wake: (() => void)[] = [];

  constructor(door: Door, { host = '127.0.0.1', localAddress }: VisitOptions = {}) {
    this.#door = door;
    this.socket = connect({ host, port: door.port, noDelay: true, localAddress });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.#settle('cut'));
    this.socket.on('data', (bytes) => this.#onData(bytes));
    if (door.greeting === null) this.socket.once('connect', () => this.#ask());
    else this.socket.write(door.greeting.says);
  }

  /** `null` while it listens. */
  get end(): VisitEnd | null {
    return this.#end;
  }

  /** Resolves when it has asked, or cannot. */
  async asked(): Promise<void> {
    while (this.askedMs === 0 && this.#end === null) await this.#next();
  }

  /** Resolves with its first audio, or when there will be none. */
  async heard(): Promise<void> {
    while (this.heardMs === 0 && this.#end === null) await this.#next();
  }

  async ended(): Promise<VisitEnd> {
    while (this.#end === null) await this.#next();
    return this.#end;
  }

  /** The last bytes that came. */
  get tail(): string {
    return this.#tail;
  }

  /** Idempotent. */
  leave(): void {
    this.socket.destroy();
  }

  /** Leaves with a RST. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  #ask(): void {
    this.askedMs = performance.now();
    this.socket.write(this.#door.asks);
    this.#wakeAll();
  }

  #onData(bytes: Buffer): void {
    const { audio, failed, greeting, whole } = this.#door;
    const nowMs = performance.now();
    this.bytes += bytes.length;
    const seen = this.#tail + bytes.toString('latin1');
    this.#tail = seen.slice(-tailMax);
    if (this.askedMs === 0) {
      if (greeting !== null && seen.includes(greeting.hears)) {
        this.#tail = '';
        this.#ask();
      } else if (seen.includes(HEAD_END)) this.#settle('failed');
      return;
    }
    const isFailed = failed.test(seen);
    if (this.heardMs === 0 && !isFailed && seen.includes(audio)) this.heardMs = nowMs;
    if (isFailed) this.#settle('failed');
    else if (seen.includes(whole)) this.#settle('whole');
    this.#wakeAll();
  }

  #settle(end: VisitEnd): void {
    this.#end ??= end;
    this.#wakeAll();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
