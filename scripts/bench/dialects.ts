/** First audio through each dialect, against the public port: what the words of another protocol cost. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeHandshake, encodeMessage, encodeStart, socketPath } from '../rig/socket.js';
import { encodeRequest, speechRequest } from '../rig/http.js';
import type { Service } from '../rig/service.js';
import { percentile } from '../rig/statistics.js';
import { sentence } from '../rig/texts.js';
import { type Row, barredRow, row } from './report.js';
import type { Target } from './streams.js';

/** How a client asks for a sentence, on a connection of its own. */
interface Door {
  readonly name: string;
  readonly port: number;
  /** What comes before the request, and what answers it. */
  readonly greeting?: { readonly says: Buffer; readonly hears: string };
  readonly asks: Buffer;
  /** The beginning of what has the first audio. */
  readonly audio: string;
}

/** Milliseconds that a dialect may add to the first audio of the public port. */
const ADDED_MS_MAX = 2;
const ROUNDS = 60;
/** The first ones make the service compile code. */
const WARM_UP_ROUNDS = 8;
/** Between two requests: the service finishes the last one. */
const PAUSE_MS = 60;
const CHUNKED_BODY = '\r\n\r\n';
const UPGRADED = '101 Switching Protocols\r\n';

const socketDoor = (
  name: string,
  port: number,
  handshake: Buffer,
  messages: readonly Buffer[],
  audio: string,
): Door => ({
  ...{ name, port, audio },
  greeting: { says: handshake, hears: UPGRADED },
  asks: Buffer.concat(messages),
});

/** Of HTTP and of WebSockets each: the public port first, then the dialects that are compared with it. */
const doorsOf = ({ format, keys, port, voice }: Target, service: Service): readonly (readonly Door[])[] => {
  const key = keys[0]!;
  const timed = { timestamps: true };
  const elevenLabs = service.dialectPorts['elevenlabs']!;
  const openAi = service.dialectPorts['openai']!;
  const wyoming = service.dialectPorts['wyoming']!;
  const wyomingAsks = Buffer.from(
    `${JSON.stringify({ type: 'synthesize', data: { text: sentence, voice: { name: voice } } })}\n`,
  );
  const speech = `/v1/text-to-speech/${voice}`;
  const query = `output_format=pcm_${format.sampleRateHz}`;
  const clientPath = `${speech}/multi-stream-input?${query}&auto_mode=true&sync_alignment=true`;
  const request = speechRequest({ key, voice, text: sentence, format, ...timed });
  return [
    [
      { name: 'HTTP', port, asks: encodeRequest(request), audio: CHUNKED_BODY },
      {
        name: 'ElevenLabs, HTTP',
        port: elevenLabs,
        asks: encodeRequest({ path: `${speech}/stream?${query}`, key, body: { text: sentence } }),
        audio: CHUNKED_BODY,
      },
      {
        name: 'ElevenLabs, HTTP with the times of characters',
        port: elevenLabs,
        asks: encodeRequest({
          path: `${speech}/stream/with-timestamps?${query}`,
          key,
          body: { text: sentence },
        }),
        audio: CHUNKED_BODY,
      },
      ...(['audio', 'sse'] as const).map((stream) => ({
        name: stream === 'audio' ? 'OpenAI' : 'OpenAI, events',
        port: openAi,
        asks: encodeRequest({
          path: '/v1/audio/speech',
          key,
          body: { input: sentence, voice, response_format: 'pcm', stream_format: stream },
        }),
        audio: CHUNKED_BODY,
      })),
      { name: 'Wyoming', port: wyoming, asks: wyomingAsks, audio: '"audio-chunk"' },
    ],
    [
      socketDoor(
        'a WebSocket',
        port,
        encodeHandshake(key, socketPath),
        [
          encodeStart({ voice, format }, undefined, timed),
          encodeMessage({ send_text: sentence }),
          encodeMessage({ flush: true }),
        ],
        '{"audio_chunk":"',
      ),
      socketDoor(
        'ElevenLabs, WebSocket',
        elevenLabs,
        encodeHandshake(key, clientPath),
        [
          encodeMessage({ text: ' ', context_id: 'c' }),
          encodeMessage({ text: `${sentence} `, context_id: 'c', flush: true }),
        ],
        '{"audio":"',
      ),
    ],
  ];
};

/** @returns milliseconds from the request on an open connection to its first audio */
const firstAudioMs = async ({ asks, audio, greeting, name, port }: Door): Promise<number> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  let receivedMs = 0;
  socket.setEncoding('latin1').on('data', (text: string) => {
    receivedMs = performance.now();
    received += text;
  });
  const hears = async (pattern: string): Promise<void> => {
    while (!received.includes(pattern)) {
      const [kind] = (await Promise.race([
        once(socket, 'data').then(() => ['data']),
        once(socket, 'close').then(() => ['close']),
      ])) as [string];
      if (kind === 'close')
        throw new Error(`${name}: closed after ${JSON.stringify(received.slice(0, 300))}`);
    }
  };
  try {
    await once(socket, 'connect');
    if (greeting !== undefined) {
      socket.write(greeting.says);
      await hears(greeting.hears);
      received = '';
    }
    const startMs = performance.now();
    socket.write(asks);
    await hears(audio);
    if (audio === CHUNKED_BODY && !received.startsWith('HTTP/1.1 200 '))
      throw new Error(`${name}: ${JSON.stringify(received.slice(0, 300))}`);
    return receivedMs - startMs;
  } finally {
    socket.destroy();
  }
};

const ms = (value: number): string => `${value.toFixed(1)} ms`;

/** All doors in turn, so that what the machine does meanwhile meets all of them. */
export const measureDialects = async (target: Target, service: Service): Promise<Row[]> => {
  const kinds = doorsOf(target, service);
  const figures = new Map<Door, number[]>(kinds.flat().map((door) => [door, []]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++)
    for (const [door, times] of figures) {
      const took = await firstAudioMs(door);
      if (round >= WARM_UP_ROUNDS) times.push(took);
      await sleep(PAUSE_MS);
    }
  const spread = (times: readonly number[]) =>
    `p50 ${ms(percentile(times, 0.5))}, p95 ${ms(percentile(times, 0.95))}`;
  return kinds.flatMap(([publicDoor, ...dialects]) => {
    const publicTimes = figures.get(publicDoor!)!;
    return [
      row(`First audio, ${publicDoor!.name}`, spread(publicTimes)),
      ...dialects.map((door) => {
        const times = figures.get(door)!;
        const addedMs = percentile(times, 0.5) - percentile(publicTimes, 0.5);
        return barredRow(
          `First audio, ${door.name}`,
          `${spread(times)} (${addedMs < 0 ? '' : '+'}${ms(addedMs)})`,
          `p50 within ${ADDED_MS_MAX} ms of the public port`,
          addedMs <= ADDED_MS_MAX,
        );
      }),
    ];
  });
};
