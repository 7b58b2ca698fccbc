/** Requests: valid, with a single known fault, or mutated; and bytes that are no HTTP. */
import type { Dice, Weighted } from '../../rig/random.js';
import { someBody } from './bodies.js';
import type { Made, Vocabulary } from './input.js';
import { mutate } from './mutate.js';

const webhook = '/v1/tts/integrations/voiceplatform';

const targets: readonly Weighted<readonly [method: string, target: string]>[] = [
  { weight: 20, value: ['POST', '/v1/tts/stream'] },
  { weight: 15, value: ['POST', '/v1/tts'] },
  { weight: 10, value: ['POST', `${webhook}?voice=`] },
  { weight: 8, value: ['GET', '/v1/tts/speakers'] },
  { weight: 3, value: ['GET', '/openapi.json'] },
  { weight: 5, value: ['GET', '/healthz'] },
  { weight: 3, value: ['HEAD', '/readyz'] },
  { weight: 3, value: ['OPTIONS', '/v1/tts'] },
];

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
  'Sec-WebSocket-Key: x',
  'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'Traceparent: cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-\xff\xfe',
];

const header = (name: string, value: string): string => `${name}: ${value}`;

const manyHeaders = (dice: Dice): string[] =>
  dice.pick([
    () => Array.from({ length: dice.pick([99, 100, 101, 300]) }, (_, i) => header(`X-${String(i)}`, 'b')),
    () => [header('X-Long', 'x'.repeat(dice.pick([3_900, 4_096, 8_192, 16_384, 65_536, 200_000])))],
    () => [header('x'.repeat(5_000), 'y')],
    () => Array.from({ length: 50 }, () => header('X-A', 'y'.repeat(90))),
  ])();

const someKey = (dice: Dice, vocabulary: Vocabulary): string =>
  dice.weighted([
    { weight: 55, value: () => dice.pick(vocabulary.brokeKeys) },
    { weight: 12, value: () => dice.pick(vocabulary.goodKeys) },
    { weight: 12, value: () => dice.pick(vocabulary.unknownKeys) },
    {
      weight: 4,
      value: () => dice.pick(['', 'svc_sk_', 'sk', 'Bearer x', `svc_sk_${'x'.repeat(2_000)}`, 'svc_sk_\xff']),
    },
  ])();

const chunkSizes = '-1|zz||0x5|fffffffffffffffff|7fffffffffffffff|ffffffff|5;a=b| 5|5 |00000005|5\n'.split(
  '|',
);
const chunkedEnds = '|0\r\n|0\r\nX-A: b\r\n\r\n|\r\n0\r\n\r\n|000\r\n\r\n|0;x\r\n\r\n|0\n\n'.split('|');

const chunked = (body: Buffer, dice: Dice): Buffer => {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const size = dice.between(1, Math.max(1, Math.min(body.length - at, dice.pick([1, 10, 100, 100_000]))));
    const isOdd = dice.chance(0.02);
    const written = isOdd ? dice.pick(chunkSizes) : size.toString(16);
    pieces.push(Buffer.from(`${written}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'));
    at += size;
    // More tiny chunks of a large body would test nothing else.
    if (pieces.length > 300) break;
  }
  const end = dice.chance(0.92) ? '0\r\n\r\n' : dice.pick(chunkedEnds);
  return Buffer.concat([...pieces, Buffer.from(end)]);
};

const lengthHeaders = (length: number, dice: Dice): string[] => {
  if (dice.chance(0.93)) return [header('Content-Length', String(length))];
  return dice.pick([
    () => [],
    () => [header('Content-Length', String(length + dice.between(1, 50)))],
    () => [header('Content-Length', String(Math.max(0, length - dice.between(1, 50))))],
    () => [
      header('Content-Length', dice.pick(['-1', '+5', '0x10', '1e3', '5, 5', '5 5', '', ' ', '\xb2', '007'])),
    ],
    () => [
      header(
        'Content-Length',
        dice.pick(['1048577', '16777217', '4294967295', '18446744073709551616', '9'.repeat(30)]),
      ),
    ],
    () => [header('Content-Length', String(length)), header('Content-Length', String(length))],
    () => [header('Content-Length', String(length)), header('content-length', '0')],
    () => [header('Content-Length', String(length)), header('Transfer-Encoding', 'chunked')],
    () => [
      header(
        'Transfer-Encoding',
        dice.pick(['gzip', 'gzip, chunked', 'identity', 'Chunked', 'chunked, chunked', '"chunked"']),
      ),
    ],
  ])();
};

/** A whole request. */
const someRequest = (dice: Dice, vocabulary: Vocabulary): Buffer => {
  const [usualMethod, usualTarget] = dice.weighted(targets);
  const isWebhook = usualTarget.startsWith(webhook);
  let method: string = dice.chance(0.93) ? usualMethod : dice.pick(methods);
  let target: string = isWebhook
    ? usualTarget + dice.pick([...vocabulary.voices, 'nobody', ''])
    : usualTarget;
  let version = 'HTTP/1.1';
  const odd = dice.unit();
  if (odd < 0.01) method = dice.pick(oddMethods);
  else if (odd < 0.05) target = dice.pick(oddTargets);
  else if (odd < 0.07) version = dice.pick(versions);
  const lines = [`${method} ${target} ${version}`];
  if (!dice.chance(0.01)) lines.push(header('Host', 'fuzz'));
  if (!dice.chance(0.03))
    lines.push(header(dice.pick(['x-api-key', 'X-Api-Key', 'X-API-KEY']), someKey(dice, vocabulary)));
  if (dice.chance(0.25))
    for (let left = dice.between(1, 4); left > 0; left--) lines.push(dice.pick(oddHeaders));
  if (dice.chance(0.004)) lines.push(...manyHeaders(dice));
  let body = Buffer.alloc(0);
  if (usualMethod === 'POST') {
    if (!dice.chance(0.05)) lines.push(header('Content-Type', 'application/json'));
    body = Buffer.from(someBody(dice, vocabulary, isWebhook));
    // Always refused.
    if (dice.chance(0.05)) {
      lines.push(header('Transfer-Encoding', 'chunked'));
      body = Buffer.from(chunked(body, dice));
    } else lines.push(...lengthHeaders(body.length, dice));
  }
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
};

export const httpInput = (dice: Dice, vocabulary: Vocabulary): Made => {
  const what = dice.unit();
  if (what < 0.08) {
    const requests = Array.from({ length: dice.between(2, 8) }, () => someRequest(dice, vocabulary));
    return { kind: 'pipelined', bytes: Buffer.concat(requests), afterUpgrade: null };
  }
  const bytes = someRequest(dice, vocabulary);
  if (what < 0.55) return { kind: 'request', bytes, afterUpgrade: null };
  if (what < 0.95)
    return { kind: 'request, mutated', bytes: mutate(bytes, dice, dice.between(1, 4)), afterUpgrade: null };
  const other = someRequest(dice, vocabulary);
  const spliced = [bytes.subarray(0, dice.below(bytes.length)), other.subarray(dice.below(other.length))];
  return { kind: 'requests, spliced', bytes: Buffer.concat(spliced), afterUpgrade: null };
};

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** The beginning of a TLS 1.2 ClientHello. */
const tlsHello = Buffer.concat([
  latin1('\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03'),
  Buffer.alloc(32, 0xa5),
  latin1('\x20'),
  Buffer.alloc(32, 0x5a),
  latin1('\x00\x06\x13\x01\x13\x02\x13\x03\x01\x00\x00\x71'),
  Buffer.alloc(113, 0x00),
]);

const openings: readonly Buffer[] = [
  tlsHello,
  latin1('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00'),
  latin1('SSH-2.0-OpenSSH_9.6\r\n'),
  latin1('PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'),
  latin1('\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x12\x67\0\x50'),
  latin1('\x05\x01\x00'),
  latin1('\x04\x01\x00\x50\xc0\x00\x02\x01\x00'),
  latin1('\x00\x00\x00\x2f\xffSMB'),
  latin1('\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00'),
  latin1('*1\r\n$4\r\nPING\r\n'),
  latin1('EHLO localhost\r\n'),
  latin1('GET /\r\n'),
  latin1('GET /v1/tts/speakers\n'),
  latin1('OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TCP a\r\n\r\n'),
  latin1('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n'),
  latin1('\r\n\r\n\r\n\r\n'),
  Buffer.alloc(1),
  Buffer.alloc(5_000, 0),
  Buffer.alloc(20_000, 'A'),
];

/** Input of other protocols, sent by mistake or on purpose. */
export const otherInput = (dice: Dice): Made => {
  const bytes = dice.chance(0.3) ? dice.bytes(dice.between(1, 600)) : dice.pick(openings);
  return {
    kind: 'no HTTP',
    bytes: dice.chance(0.5) ? bytes : mutate(bytes, dice, dice.between(1, 3)),
    afterUpgrade: null,
  };
};
