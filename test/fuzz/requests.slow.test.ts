/** Whole requests over real sockets: methods, paths, queries, headers, framing and bodies, against a second opinion. */
import fc from 'fast-check';
import t from 'tap';
import { openApiDocument } from '../../src/api/openapi.js';
import { errors } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { Description } from '../support/description.js';
import { header, RawClient, type RawResponse } from '../support/raw-client.js';
import { BROKE_KEY, eventually, GOOD_KEY, startFront } from '../support/front-server.js';
import { asText, brokenText, platformBodies, speechBodies } from './bodies.js';
import { check } from './check.js';
import { answered, type Item } from '../support/items.js';
import { platformItems, speechItems } from './oracle.js';

const VOICES = ['ada', 'bela', 'ada_conv'];
const WEBHOOK = '/v1/tts/integrations/voiceplatform';
const POSTS = ['/v1/tts', '/v1/tts/stream', WEBHOOK];
const GETS = ['/v1/tts/speakers', '/openapi.json', '/healthz', '/readyz'];

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly key: string | null;
  readonly type: string | null;
  readonly further: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** Sizes of chunks, which are refused; `null` for a declared length. */
  readonly chunks: readonly number[] | null;
}

const visible = (max: number) =>
  fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: max,
  });

const mostly = <T>(usual: readonly T[], others: fc.Arbitrary<T>, weight = 12): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: others });

const path = mostly(
  [...POSTS, ...POSTS, ...POSTS, ...GETS],
  visible(30).map((text) => `/${text.replaceAll(/[?#]/g, '')}`),
);

const query = fc.oneof(
  fc.constantFrom(
    '?voice=ada',
    '?voice=bela&x=1',
    '?voice=ada%5Fconv',
    '',
    '?',
    '?voice',
    '?voice=nobody',
    '?a=%zz&voice=%ff',
  ),
  visible(40).map((text) => `?${text.replaceAll('#', '')}`),
);

const key = mostly<string | null>(
  [GOOD_KEY, GOOD_KEY, GOOD_KEY, GOOD_KEY, BROKE_KEY],
  fc.oneof(fc.constantFrom(null, '', 'svc_sk_', 'svc_sk_none', 'sk', `Bearer ${GOOD_KEY}`), visible(40)),
  4,
);

const type = mostly<string | null>(
  ['application/json', 'application/json; charset=utf-8', 'Application/vnd.x+JSON', null, ''],
  fc.oneof(fc.constantFrom('text/plain', 'application/jsonx', 'multipart/form-data'), visible(30)),
);

/** Names that mean something to a server are tried on purpose elsewhere. */
const meant = /^(?:host|content-length|transfer-encoding|connection|expect|upgrade|x-api-key|content-type)$/i;
const headerName = fc
  .oneof(
    fc.constantFrom(
      'Accept',
      'Origin',
      'Cookie',
      'Range',
      'If-None-Match',
      'X-Forwarded-For',
      'Authorization',
    ),
    fc.string({
      unit: fc.constantFrom(...Array.from('abcXYZ-_09!#$%&*+.^`|~')),
      minLength: 1,
      maxLength: 20,
    }),
  )
  .filter((name) => !meant.test(name));

const bodyFor = (target: string) =>
  fc.oneof(
    { weight: 12, arbitrary: asText(target === WEBHOOK ? platformBodies : speechBodies(...VOICES)) },
    { weight: 2, arbitrary: brokenText },
  );

const request: fc.Arbitrary<Sent> = path.chain((target) =>
  fc.record({
    method: mostly(
      GETS.includes(target) ? ['GET', 'GET', 'HEAD'] : ['POST'],
      fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'BREW'),
    ),
    path: fc.constant(target),
    query: target === WEBHOOK ? query : fc.oneof(fc.constant(''), query),
    key,
    type,
    further: fc.array(fc.tuple(headerName, visible(60)), { maxLength: 4 }),
    body: fc.oneof(
      { weight: 12, arbitrary: bodyFor(target).map((text) => Buffer.from(text)) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
    ),
    chunks: mostly<readonly number[] | null>(
      [null],
      fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 4 }),
    ),
  }),
);

const chunked = (body: Buffer, sizes: readonly number[]): Buffer => {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, body.length]) {
    const piece = body.subarray(at, at + size);
    at += piece.length;
    if (piece.length > 0)
      pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
};

const bytesOf = (sent: Sent): Buffer => {
  const lines = [
    `${sent.method} ${sent.path}${sent.query} HTTP/1.1`,
    'Host: syrinx.test',
    ...(sent.key === null ? [] : [`X-Api-Key: ${sent.key}`]),
    ...(sent.type === null ? [] : [`Content-Type: ${sent.type}`]),
    ...sent.further.map(([name, value]) => `${name}: ${value}`),
    sent.chunks === null ? `Content-Length: ${sent.body.length}` : 'Transfer-Encoding: chunked',
  ];
  const body = sent.chunks === null ? sent.body : chunked(sent.body, sent.chunks);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
};

type Expected = readonly [status: number, body?: string | RegExp];

const row = (code: keyof typeof errors): Expected => [errors[code].status, errors[code].body];

const isUtf8 = (bytes: Buffer): boolean => {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
};

/** What the contract answers to a body, once a key was found good. */
const ofBody = (sent: Sent, voice: string | null): Expected => {
  const isWebhook = sent.path === WEBHOOK;
  const before = isWebhook ? platformItems(voice, { message: { type: '' } }) : [];
  const detail = (items: readonly Item[]): Expected => [
    422,
    JSON.stringify({ detail: answered([...before, ...items]) }),
  ];
  const isJson = /^(?:application\/(?:json|[^\s;/]+\+json)\s*(?:;.*)?)?$/i.test(sent.type ?? '');
  if (sent.body.length > 0 && !isJson) return [422, /"model_attributes_type"/];
  if (!isUtf8(sent.body)) return row('bodyUnreadable');
  let body: unknown = null;
  try {
    const text = new TextDecoder().decode(sent.body);
    if (sent.body.length > 0)
      body = JSON.parse(text, (_, value: unknown) => {
        if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('out of range');
        return value;
      });
  } catch {
    return [422, /"json_invalid"/];
  }
  const items = isWebhook ? platformItems(null, body).slice(1) : speechItems(body);
  if (items.length + before.length > 0) return detail(items);
  const { message, voice: named } = body as { message?: { type?: string }; voice?: string };
  if (isWebhook && message?.type !== 'voice-request') return [200, ''];
  const wanted = isWebhook ? voice : named;
  if (!VOICES.includes(wanted ?? '')) return [422, /^\{"error":"unknown_voice"/];
  return sent.key === BROKE_KEY ? row('creditExhausted') : [200];
};

const expected = (sent: Sent): Expected => {
  if (sent.chunks !== null) return row('lengthRequired');
  const isGet = GETS.includes(sent.path);
  if (!isGet && !POSTS.includes(sent.path)) return [404, /^<!doctype html>/];
  if (!(isGet ? ['GET', 'HEAD'] : ['POST']).includes(sent.method)) return row('methodNotAllowed');
  if (/^\/(?:health|ready)z$/.test(sent.path)) return [200];
  if (!(sent.key ?? '').startsWith('svc_sk_')) return row('keyMissing');
  if (sent.key !== GOOD_KEY && sent.key !== BROKE_KEY) return row('keyUnknown');
  if (isGet) return [200];
  return ofBody(sent, new URLSearchParams(sent.query).get('voice'));
};

const faultOf = (sent: Sent, response: RawResponse, description: Description): string | null => {
  const [status, body] = expected(sent);
  const text = response.body.toString();
  if (response.status !== status) return `status ${response.status} and not ${status}: ${text}`;
  if (!response.complete) return 'it is cut short';
  if (!/^[0-9a-f-]{36}$/.test(header(response, 'x-request-id') ?? '')) return 'it has no x-request-id';
  const known = ['content-type', 'content-length', 'date', 'x-request-id', 'allow', 'transfer-encoding'];
  const names = [...known, 'cache-control', 'x-accel-buffering', 'connection', 'keep-alive'];
  const unknown = response.headers.find(([name]) => !names.includes(name));
  if (unknown !== undefined) return `a header ${unknown[0]}`;
  if (sent.method === 'HEAD') return response.body.length === 0 ? null : 'HEAD with a body';
  if (body instanceof RegExp ? !body.test(text) : body !== undefined && body !== text)
    return `the body\n${text}\nand not\n${String(body)}`;
  return description.responseFault(sent.method, `${sent.path}${sent.query}`, response);
};

t.test('whatever is sent, the answer is the contract’s', async (t) => {
  const front = await startFront(t, { bounds: { chunkedBodyMs: 10 } });
  const description = new Description(JSON.parse(JSON.stringify(openApiDocument(VOICES, limits))));
  front.speech.script = (context) => {
    context.audio(300);
    context.close();
  };
  const statuses = new Map<number, number>();
  const property = fc.asyncProperty(request, async (sent) => {
    const client = await RawClient.open(front.port);
    try {
      client.send(bytesOf(sent));
      const response = await client.response(sent.method === 'HEAD');
      const fault = faultOf(sent, response, description);
      if (fault !== null) throw new Error(fault);
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    } finally {
      client.destroy();
    }
  });
  await check(t, property, 1_000);
  t.comment(JSON.stringify(Object.fromEntries(statuses)));
  for (const status of [200, 400, 401, 402, 404, 405, 411, 422])
    t.ok(statuses.has(status), `${status} was reached`);
  t.equal(statuses.get(500), undefined);
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.admission.slotsTaken, 0);
  t.ok(front.speech.contexts.every((context) => context.released));
  t.equal(front.lines.filter(({ level }) => level === 'error').length, 0);
});
