/** Requests and handshakes, to the public port and the dialects: valid, with a single known fault, or mutated. */
import type { Dice, Weighted } from '../../rig/random.js';
import {
  elevenLabsBody,
  openAiBody,
  someJson,
  someKey,
  someVoice,
  speechBody,
  webhookBody,
  type Shape,
  type Vocabulary,
} from './objects.js';

export interface RequestForm {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST';
  readonly target: string;
  /** Of the JSON that a POST has. */
  readonly body?: Shape;
  /** Of a handshake, which is mostly valid: the frames after it are the point. */
  readonly upgrade?: readonly string[];
  /** By default that of the public port. */
  readonly keyNames?: readonly string[];
}

const methods = 'GET POST HEAD PUT DELETE OPTIONS PATCH TRACE CONNECT get BREW'.split(' ');
const oddMethods = ['', 'P\0ST', 'POST POST', 'x'.repeat(300), '\xff\xfe', 'POST\t', '"GET"'];
const oddTargets = [
  '*',
  '/',
  '//',
  '/v1/tts/../../etc/passwd',
  '/v1/tts/',
  '/V1/TTS',
  '/%76%31/tts',
  'http://other.example/v1/tts',
  'https://u:p@other.example:99999/v1/tts?x',
  '/v1/tts?voice=%ff&voice=%',
  `/${'a'.repeat(5_000)}`,
  `/?${'&a=b'.repeat(900)}`,
  '/\0',
  '/\xc3\x28',
  '/v1/tts#x',
  '',
  ' /v1/tts',
];
const versions = 'HTTP/1.0|HTTP/0.9|HTTP/2.0|HTTP/1.2|HTTP/11|http/1.1|HTTP/1.|ICY||HTTP/1.1 x'.split('|');

const oddHeaders = [
  'Connection: close',
  'Connection: keep-alive, upgrade, close',
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Upgrade: h2c',
  'HTTP2-Settings: AAMAAABkAAQAAP__',
  'Origin: https://evil.example',
  'Origin: null',
  'Range: bytes=0-0',
  'Cookie: a=b; c="d',
  'Host: b',
  'Host:',
  'X-A : b',
  ' X-A: b',
  'X-A: b\r\n folded',
  'X-A: b\rX-B: c',
  'X-A: b\nX-B: c',
  'X-A:\0',
  ': empty',
  'no colon',
  'X-\xff: \xff\xfe',
  'Content-Type: text/plain',
  'Content-Type: application/json; charset=utf-16',
  'Authorization: Bearer x',
  'Trailer: X-A',
  'TE: trailers',
  'Content-Encoding: gzip',
  'X-Forwarded-For: 127.0.0.1',
  'Access-Control-Request-Method: POST',
  'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'Traceparent: cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-\xff\xfe',
  'Sec-WebSocket-Version: 8',
  'Sec-WebSocket-Key: short',
  `Sec-WebSocket-Key: ${'A'.repeat(3_000)}`,
  'Sec-WebSocket-Protocol: chat, superchat',
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=0',
  'Content-Length: 10',
  'Transfer-Encoding: chunked',
];

const manyHeaders = (dice: Dice): string[] =>
  dice.pick([
    () => Array.from({ length: dice.pick([99, 100, 101, 300]) }, (_, i) => `X-${i}: b`),
    () => [`X-Long: ${'x'.repeat(dice.pick([3_900, 4_096, 8_192, 16_384, 65_536, 200_000]))}`],
    () => [`${'x'.repeat(5_000)}: y`],
    () => Array.from({ length: 50 }, () => `X-A: ${'y'.repeat(90)}`),
  ])();

const oddKeys = ['', 'svc_sk_', 'sk', 'Bearer x', `svc_sk_${'x'.repeat(2_000)}`, 'svc_sk_\xff'];

const publicKeyNames = ['x-api-key:', 'X-Api-Key:', 'X-API-KEY:'];
const dialectKeyNames = ['xi-api-key:', 'Authorization: Bearer', 'authorization:'];

const chunkSizes = '-1|zz||0x5|fffffffffffffffff|7fffffffffffffff|ffffffff|5;a=b| 5|5 |00000005|5\n'.split(
  '|',
);
const chunkedEnds = '|0\r\n|0\r\nX-A: b\r\n\r\n|\r\n0\r\n\r\n|000\r\n\r\n|0;x\r\n\r\n|0\n\n'.split('|');

/** In one chunk, or almost. */
const chunked = (body: Buffer, dice: Dice): Buffer => {
  const size = dice.chance(0.9) ? body.length.toString(16) : dice.pick(chunkSizes);
  const end = dice.chance(0.9) ? '\r\n0\r\n\r\n' : dice.pick(chunkedEnds);
  return Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from(end)]);
};

const oddLengths =
  '-1|+5|0x10|1e3|5, 5|5 5|| |\xb2|007|1048577|16777217|4294967295|18446744073709551616'.split('|');
const oddCodings = ['gzip', 'gzip, chunked', 'identity', 'Chunked', 'chunked, chunked', '"chunked"'];

const lengthHeaders = (length: number, dice: Dice): string[] => {
  const right = `Content-Length: ${length}`;
  if (dice.chance(0.93)) return [right];
  return dice.pick([
    () => [],
    () => [`Content-Length: ${length + dice.between(1, 50)}`],
    () => [`Content-Length: ${Math.max(0, length - dice.between(1, 50))}`],
    () => [`Content-Length: ${dice.pick([...oddLengths, '9'.repeat(30)])}`],
    () => [right, right],
    () => [right, 'content-length: 0'],
    () => [right, 'Transfer-Encoding: chunked'],
    () => [`Transfer-Encoding: ${dice.pick(oddCodings)}`],
  ])();
};

const rareBodies: readonly (() => Buffer)[] = [
  () => Buffer.from('['.repeat(100_000)),
  () => Buffer.from(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`),
  () => Buffer.from(`{"text":"${'x'.repeat(200_000)}"`),
  () => Buffer.from(`{"text":${'9'.repeat(50_000)},"voice":1e99999}`),
  () => Buffer.alloc(70_000, 0xff),
  () => Buffer.from('\ufeff{"text":"a"}'),
  () => Buffer.from('{"text":"a","voice":"x"}', 'utf16le'),
  () => Buffer.alloc(0),
];

/** A whole request of this form. A part of them has a fault in the first line, in a header, or in the length of the body. */
export const writeRequest = (dice: Dice, vocabulary: Vocabulary, form: RequestForm): Buffer => {
  const oddShare = form.upgrade === undefined ? 1 : 0.3;
  const isOdd = (share: number): boolean => dice.chance(share * oddShare);
  let method: string = isOdd(0.05) ? dice.pick(methods) : form.method;
  let { target } = form;
  let version = 'HTTP/1.1';
  const odd = dice.unit() / oddShare;
  if (odd < 0.01) method = dice.pick(oddMethods);
  else if (odd < 0.04) target = dice.pick(oddTargets);
  else if (odd < 0.06) version = dice.pick(versions);
  const key = isOdd(0.05) ? dice.pick(oddKeys) : someKey(dice, vocabulary);
  const keyHeader = `${dice.pick(form.keyNames ?? publicKeyNames)} ${key}`;
  const lines = ['Host: fuzz', keyHeader, ...(form.upgrade ?? [])];
  if (isOdd(0.05)) lines.splice(dice.below(lines.length), 1);
  if (isOdd(0.15)) for (let left = dice.between(1, 4); left > 0; left--) lines.push(dice.pick(oddHeaders));
  if (dice.chance(0.004)) lines.push(...manyHeaders(dice));
  let body = Buffer.alloc(0);
  if (form.body !== undefined) {
    if (!dice.chance(0.05)) lines.push('Content-Type: application/json');
    body = Buffer.from(
      dice.chance(0.006) ? dice.pick(rareBodies)() : someJson(dice, vocabulary, form.body, 0.25),
    );
    // Always refused.
    if (dice.chance(0.05)) {
      lines.push('Transfer-Encoding: chunked');
      body = Buffer.from(chunked(body, dice));
    } else lines.push(...lengthHeaders(body.length, dice));
  }
  const head = [`${method} ${target} ${version}`, ...lines].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body]);
};

const publicForms: readonly Weighted<RequestForm>[] = [
  { weight: 20, value: { method: 'POST', target: '/v1/tts/stream', body: speechBody } },
  { weight: 15, value: { method: 'POST', target: '/v1/tts', body: speechBody } },
  { weight: 8, value: { method: 'GET', target: '/v1/tts/speakers' } },
  { weight: 3, value: { method: 'GET', target: '/openapi.json' } },
  { weight: 5, value: { method: 'GET', target: '/healthz' } },
  { weight: 3, value: { method: 'HEAD', target: '/readyz' } },
  { weight: 3, value: { method: 'OPTIONS', target: '/v1/tts' } },
];

export const publicRequest = (dice: Dice, vocabulary: Vocabulary): RequestForm => {
  if (dice.chance(0.85)) return dice.weighted(publicForms);
  const target = `/v1/tts/integrations/voiceplatform?voice=${someVoice(dice, vocabulary)}`;
  return { method: 'POST', target, body: webhookBody };
};

const formats = ['pcm_24000', 'pcm_8000', 'mp3_44100_128', 'opus_48000_64', 'ulaw_8000', 'wav_16000'];
const oddFormats = ['', 'mp3', 'mp3_1_1', 'aac_44100', 'pcm_999999', '%00', 'pcm_24000_1', 'x'.repeat(300)];
const speakPaths = ['', '/stream', '/with-timestamps', '/stream/with-timestamps'];
const getPaths = ['/v1/voices', '/v2/voices?page_size=x&search=%ff', '/v1/models', '/v1/user/subscription'];

const elevenLabsTarget = (dice: Dice, vocabulary: Vocabulary, path: string): string => {
  const options = [
    'enable_logging=true',
    'auto_mode=true',
    'sync_alignment=true',
    'inactivity_timeout=180',
    `authorization=${dice.chance(0.5) ? 'Bearer%20' : ''}${someKey(dice, vocabulary)}`,
  ].filter(() => dice.chance(0.3));
  const query = [`output_format=${dice.pick(dice.chance(0.9) ? formats : oddFormats)}`, ...options].join('&');
  return `/v1/text-to-speech/${someVoice(dice, vocabulary)}${path}?${dice.chance(0.2) ? '&' : ''}${query}`;
};

export const elevenLabsRequest = (dice: Dice, vocabulary: Vocabulary): RequestForm => {
  const keyNames = dialectKeyNames;
  if (dice.chance(0.2)) return { method: 'GET', target: dice.pick(getPaths), keyNames };
  const target = elevenLabsTarget(dice, vocabulary, dice.pick(speakPaths));
  return { method: 'POST', target, body: elevenLabsBody, keyNames };
};

const openAiPaths = [
  '/v1/models',
  '/v1/models/tts-1',
  '/v1/models/%ff',
  '/v1/audio/voices',
  '/v1/audio/models',
  '/v1/audio/speech',
  '/v1',
];

export const openAiRequest = (dice: Dice): RequestForm =>
  dice.chance(0.15)
    ? { method: 'GET', target: dice.pick(openAiPaths), keyNames: dialectKeyNames }
    : { method: 'POST', target: '/v1/audio/speech', body: openAiBody, keyNames: dialectKeyNames };

const handshake = (dice: Dice, target: string): RequestForm => ({
  ...{ method: 'GET', target },
  upgrade: [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${dice.bytes(16).toString('base64')}`,
  ],
});

export const publicHandshake = (dice: Dice): RequestForm =>
  handshake(dice, `/v1/tts/ws${dice.chance(0.02) ? '?x=y' : ''}`);

export const elevenLabsHandshake = (dice: Dice, vocabulary: Vocabulary): RequestForm => {
  const path = dice.pick(['/multi-stream-input', '/stream-input']);
  return { ...handshake(dice, elevenLabsTarget(dice, vocabulary, path)), keyNames: dialectKeyNames };
};
