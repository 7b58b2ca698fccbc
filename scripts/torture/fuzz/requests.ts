/** Requests and handshakes: valid, or with faults in the first line, in a header, or in the length of the body. */
import type { Dice } from '../../rig/random.js';
import { replaceOne } from './mutate.js';

const targets = [
  ...['*', '/', '//', '/v1/tts/../../etc/passwd', '/v1/tts/', '/V1/TTS', '/%76%31/tts', '/\0', '/\xc3\x28'],
  ...['http://other.example/v1/tts', 'https://u:p@other.example:99999/v1/tts?x', '/v1/tts?voice=%ff&voice=%'],
  ...[`/${'a'.repeat(5_000)}`, `/?${'&a=b'.repeat(900)}`, '/v1/tts#x', ' /v1/tts', ''],
];

const headers = [
  ...['Connection: close', 'Connection: keep-alive, upgrade, close', 'Expect: 100-continue', 'Expect: b'],
  ...['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__', 'Origin: https://evil.example', 'Origin: null'],
  ...['Range: bytes=0-0', 'Cookie: a=b; c="d', 'Host: b', 'Host:', 'X-A : b', ' X-A: b', 'X-A: b\r\n folded'],
  ...[
    'X-A: b\rX-B: c',
    'X-A: b\nX-B: c',
    'X-A:\0',
    ': empty',
    'no colon',
    'X-\xff: \xff\xfe',
    'TE: trailers',
  ],
  ...['Content-Type: text/plain', 'Content-Type: application/json; charset=utf-16', 'Trailer: X-A'],
  ...[
    'Authorization: Bearer x',
    'Content-Encoding: gzip',
    'X-Forwarded-For: 127.0.0.1',
    'Content-Length: 10',
  ],
  'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'Traceparent: cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-\xff\xfe',
  ...['Sec-WebSocket-Version: 8', 'Sec-WebSocket-Key: short', `Sec-WebSocket-Key: ${'A'.repeat(3_000)}`],
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=0',
  ...['Sec-WebSocket-Protocol: chat, superchat', 'content-length: 0', 'Transfer-Encoding: chunked'],
].map((header) => `\r\n${header}`);

const repeated = (count: number, header: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => header(i)).join('\r\n');
const longHeaders = [
  ...[99, 100, 101, 300].map((count) => repeated(count, (i) => `X-${i}: b`)),
  ...[3_900, 4_096, 8_192, 16_384, 65_536, 200_000].map((bytes) => `X-Long: ${'x'.repeat(bytes)}`),
  `${'x'.repeat(5_000)}: y`,
  repeated(50, () => `X-A: ${'y'.repeat(90)}`),
].map((header) => `\r\n${header}`);

const lengths =
  '0|7|50|3000|-1|+5|0x10|1e3|5, 5|5 5|| |\xb2|007|1048577|16777217|4294967296|18446744073709551616';
const versions = 'HTTP/1.0|HTTP/0.9|HTTP/2.0|HTTP/1.2|HTTP/11|http/1.1|HTTP/1.|ICY||HTTP/1.1 x';
const codings = ['gzip', 'gzip, chunked', 'identity', 'Chunked', 'chunked, chunked', '"chunked"'];

/** What takes the place of a part of a head, and in what share of the requests. */
const faults: readonly (readonly [share: number, part: RegExp, values: readonly string[]])[] = [
  [0.05, /^\S+/g, 'GET POST HEAD PUT DELETE OPTIONS PATCH TRACE CONNECT get BREW'.split(' ')],
  [0.01, /^\S+/g, ['', 'P\0ST', 'POST POST', 'x'.repeat(300), '\xff\xfe', 'POST\t', '"GET"']],
  [0.03, /(?<=^\S+ )\S+/g, targets],
  [0.02, /(?<=^\S+ \S+ )\S+/g, versions.split('|')],
  // One header is missing.
  [0.05, /\r\n.+/g, ['']],
  [0.05, /\r\nContent-Type.+/g, ['']],
  [0.06, /(?<=Content-Length: )\d+/g, lengths.split('|')],
  [0.01, /Content-Length: \d+/g, codings.map((coding) => `Transfer-Encoding: ${coding}`)],
  [0.15, /$/g, headers],
  [0.05, /$/g, headers],
  [0.004, /$/g, longHeaders],
];

const chunkSizes = '-1|zz||0x5|fffffffffffffffff|7fffffffffffffff|5;a=b| 5|5 |00000005|5\n'.split('|');
const chunkedEnds = '|0\r\n|0\r\nX-A: b\r\n\r\n|\r\n0\r\n\r\n|000\r\n\r\n|0;x\r\n\r\n|0\n\n'.split('|');

/** In one chunk, or almost. */
const chunked = (body: Buffer, dice: Dice): Buffer => {
  const size = dice.chance(0.9) ? body.length.toString(16) : dice.pick(chunkSizes);
  const end = dice.chance(0.9) ? '\r\n0\r\n\r\n' : dice.pick(chunkedEnds);
  return Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from(end)]);
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

/** @param faultShare of the usual number of faults: a handshake is mostly valid, because the frames after it are the point */
export const writeRequest = (
  dice: Dice,
  line: string,
  headers: readonly string[],
  body: Buffer | null,
  faultShare = 1,
): Buffer => {
  const lines = [`${line} HTTP/1.1`, 'Host: fuzz', ...headers];
  let content = body !== null && dice.chance(0.006) ? dice.pick(rareBodies)() : body;
  if (content !== null) {
    // Chunks are always refused.
    const isChunked = dice.chance(0.05);
    if (isChunked) content = chunked(content, dice);
    const length = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`;
    lines.push('Content-Type: application/json', length);
  }
  let head = lines.join('\r\n');
  for (const [share, part, values] of faults)
    if (dice.chance(share * faultShare)) head = replaceOne(head, part, values, dice);
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), content ?? Buffer.alloc(0)]);
};
