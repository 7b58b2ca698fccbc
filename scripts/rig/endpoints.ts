/** The endpoints that speak, and a client of each: requests and answers as bytes on a connection. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AudioFormat } from '../../src/api/formats.js';
import { Changes } from './changes.js';
import { encodeRequest, speechRequest } from './http.js';
import { encodeHandshake, encodeMessage, encodeStart } from './socket.js';
import { encodeWyoming } from './wyoming.js';

/** One way to ask for speech: of the public port, or of a dialect. Patterns are for bytes as latin1. */
export interface Endpoint {
  readonly name: string;
  readonly port: number;
  /** What comes before the request, and a part of its answer. */
  readonly handshake: { readonly request: Buffer; readonly answer: string } | null;
  readonly request: Buffer;
  /** The beginning of what has the first audio. */
  readonly audio: string;
  /** The end of whole speech. */
  readonly whole: string;
  /** What a client sees when its speech is refused or fails. */
  readonly failed: RegExp;
}

export interface EndpointParts {
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

const overHttp = (name: string, port: number, request: Buffer): Endpoint => ({
  ...{ name, port, request, handshake: null },
  ...{ audio: HEAD_END, whole: '\r\n0\r\n\r\n', failed: /HTTP\/1\.1 [45]/ },
});

/** @returns those over HTTP and Wyoming's, and those over WebSockets; the public one first */
export const endpointsOf = ({
  dialectPorts,
  format,
  key,
  port,
  text,
  voice,
}: EndpointParts): Record<'requests' | 'sockets', readonly [Endpoint, ...Endpoint[]]> => {
  const { elevenlabs = 0, openai = 0, wyoming = 0 } = dialectPorts;
  const timed = { timestamps: true };
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
  const handshakeOf = (request: Buffer) => ({ request, answer: UPGRADED });
  const clientPath = `${speech}/multi-stream-input?${query}&auto_mode=true&sync_alignment=true`;
  const ofContext = { context_id: 'c' };
  return {
    requests: [
      overHttp('HTTP', port, encodeRequest(speechRequest({ key, voice, text, format, ...timed }))),
      overHttp('ElevenLabs, HTTP', elevenlabs, elevenLabsHttp('/stream')),
      overHttp(
        'ElevenLabs, HTTP with the times of characters',
        elevenlabs,
        elevenLabsHttp('/stream/with-timestamps'),
      ),
      overHttp('OpenAI', openai, openAi('audio')),
      overHttp('OpenAI, events', openai, openAi('sse')),
      {
        ...{ name: 'Wyoming', port: wyoming, handshake: null },
        request: encodeWyoming('synthesize', { text, voice: { name: voice } }),
        ...{ audio: '"audio-chunk"', whole: '"audio-stop"', failed: /"type":"error"/ },
      },
    ],
    sockets: [
      {
        ...{ name: 'a WebSocket', port, handshake: handshakeOf(encodeHandshake(key)) },
        request: Buffer.concat([
          encodeStart({ voice, format }, undefined, timed),
          encodeMessage({ send_text: text }),
          encodeMessage({ close_context: true }),
        ]),
        ...{ audio: '{"audio_chunk":"', whole: '"context_closed"', failed: /"error":"/ },
      },
      {
        ...{ name: 'ElevenLabs, WebSocket', port: elevenlabs },
        handshake: handshakeOf(encodeHandshake(key, clientPath)),
        request: Buffer.concat([
          encodeMessage({ text: ' ', ...ofContext }),
          encodeMessage({ text: `${text} `, ...ofContext, flush: true }),
          encodeMessage({ close_context: true, ...ofContext }),
        ]),
        ...{ audio: '{"audio":"', whole: '"isFinal":true', failed: /"error":"/ },
      },
    ],
  };
};

/** Those of the dialects. */
export const dialectEndpoints = (parts: EndpointParts): readonly Endpoint[] => {
  const { requests, sockets } = endpointsOf(parts);
  return [...requests.slice(1), ...sockets.slice(1)];
};

/** More than a pattern, and than what a library sends in one piece after it. */
const tailMax = 256;
/** More than the head of an answer. */
const headMax = 2_048;

export type AnswerEnd = 'whole' | 'failed' | 'cut';

export interface ClientOptions {
  /** By default this machine. */
  readonly host?: string;
  /** Of the client: Wyoming grants nine slots to each address. */
  readonly localAddress?: string;
}

/** A client on a connection of its own: asks an endpoint once, and waits for its answer. */
export class EndpointClient {
  readonly socket: Socket;
  /** When it asked, when its first audio came, and when its answer ended; 0 before. */
  askedMs = 0;
  heardMs = 0;
  endedMs = 0;
  /** The first bytes of the answer. */
  head = '';
  readonly #endpoint: Endpoint;
  #tail = '';
  #end: AnswerEnd | null = null;
  readonly #changes = new Changes();

  constructor(endpoint: Endpoint, { host = '127.0.0.1', localAddress }: ClientOptions = {}) {
    this.#endpoint = endpoint;
    this.socket = connect({ host, port: endpoint.port, noDelay: true, localAddress });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.#settle('cut'));
    this.socket.on('data', (bytes) => this.#onData(bytes));
    if (endpoint.handshake === null) this.socket.once('connect', () => this.#ask());
    else this.socket.write(endpoint.handshake.request);
  }

  /** `null` while it listens. */
  get end(): AnswerEnd | null {
    return this.#end;
  }

  /** Resolves when it has asked, or cannot. */
  asked(): Promise<void> {
    return this.#changes.until(() => this.askedMs > 0 || this.#end !== null);
  }

  /** Resolves with its first audio, or when there will be none. */
  heard(): Promise<void> {
    return this.#changes.until(() => this.heardMs > 0 || this.#end !== null);
  }

  async ended(): Promise<AnswerEnd> {
    await this.#changes.until(() => this.#end !== null);
    return this.#end!;
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
    this.socket.write(this.#endpoint.request);
    this.#changes.notify();
  }

  #onData(bytes: Buffer): void {
    const { audio, failed, handshake, whole } = this.#endpoint;
    const nowMs = performance.now();
    const seen = this.#tail + bytes.toString('latin1');
    this.#tail = seen.slice(-tailMax);
    if (this.askedMs === 0) {
      if (handshake !== null && seen.includes(handshake.answer)) {
        this.#tail = '';
        this.#ask();
      } else if (seen.includes(HEAD_END)) this.#settle('failed');
      return;
    }
    if (this.head.length < headMax) this.head += bytes.toString('latin1', 0, headMax);
    const isFailed = failed.test(seen);
    if (this.heardMs === 0 && !isFailed && seen.includes(audio)) this.heardMs = nowMs;
    if (isFailed) this.#settle('failed');
    else if (seen.includes(whole)) this.#settle('whole');
    this.#changes.notify();
  }

  #settle(end: AnswerEnd): void {
    if (this.#end === null) this.endedMs = performance.now();
    this.#end ??= end;
    this.#changes.notify();
  }
}

/** @returns milliseconds from the request on an open connection to its first audio @throws without audio */
export const firstAudioMs = async (endpoint: Endpoint, msMax = 60_000): Promise<number> => {
  const client = new EndpointClient(endpoint);
  try {
    await Promise.race([client.heard(), sleep(msMax, undefined, { ref: false })]);
    if (client.heardMs === 0) throw new Error(`${endpoint.name}: no audio: ${JSON.stringify(client.tail)}`);
    return client.heardMs - client.askedMs;
  } finally {
    client.leave();
  }
};
