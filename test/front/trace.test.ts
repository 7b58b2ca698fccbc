/** W3C Trace Context: the trace of a request is logged and answered, and nothing else of the header gets anywhere. */
import fc from 'fast-check';
import t from 'tap';
import { parseTraceparent } from '../../src/front/trace.js';
import { SOCKET_PATH } from '../../src/front/ws/sockets.js';
import { anyText, check } from '../fuzz/check.js';
import { header, RawClient, type RequestOptions } from '../support/raw-client.js';
import {
  BROKE_KEY,
  eventually,
  GOOD_KEY,
  platformAsks,
  requestLines,
  speak,
  startFront,
  type Front,
} from '../support/front-server.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;
const answered = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$/;

const traced = (request: RequestOptions, ...values: readonly string[]): RequestOptions => ({
  ...request,
  headers: [...(request.headers ?? []), ...values.map((value) => `Traceparent: ${value}`)],
});

const upgrade = (key: string): RequestOptions => ({
  path: SOCKET_PATH,
  key,
  headers: [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ],
});

t.test('every answer to a traced request names the trace, and so does its log line', async (t) => {
  const front = await startFront(t);
  const [none, unavailable] = [front.speech.refuse, () => 'contextPoolExhausted' as const];
  const requests: readonly (readonly [number, RequestOptions])[] = [
    [200, speak('/v1/tts')],
    [200, speak('/v1/tts/stream')],
    [200, platformAsks()],
    [200, { path: '/v1/tts/speakers', key: GOOD_KEY }],
    [200, { method: 'HEAD', path: '/healthz' }],
    [400, { path: '/healthz', headers: ['Host: twice'] }],
    [401, { ...speak('/v1/tts'), key: null }],
    [401, upgrade('no key')],
    [402, { ...speak('/v1/tts'), key: BROKE_KEY }],
    [404, { path: '/nothing' }],
    [405, { path: '/v1/tts' }],
    [413, { ...speak('/v1/tts'), body: 'a'.repeat(1_048_577) }],
    [422, { ...speak('/v1/tts'), body: '{' }],
    [503, speak('/v1/tts/stream')],
  ];
  const spans = new Set<string>();
  for (const [status, request] of requests) {
    front.speech.refuse = status === 503 ? unavailable : none;
    const response = await RawClient.ask(front.port, traced(request, GIVEN));
    const name = `${request.method ?? 'GET'} ${request.path} ${status}`;
    t.equal(response.status, status, name);
    const [version, traceId, spanId = '', flags] = header(response, 'traceparent')?.split('-') ?? [];
    t.same([version, traceId, flags], ['00', TRACE, '01'], name);
    t.match(spanId, /^[0-9a-f]{16}$/);
    spans.add(spanId);
    const requestId = header(response, 'x-request-id');
    const line = () => requestLines(front).find(({ fields }) => fields['requestId'] === requestId);
    await eventually(() => line() !== undefined);
    t.match(line()?.fields, { traceId: TRACE, parentSpanId: PARENT, spanId }, name);
  }
  t.equal(spans.size, requests.length, 'each answer has a span of its own');
  t.notOk(spans.has(PARENT));
});

const socketLines = (front: Front) => front.lines.filter(({ message }) => message === 'socket');

t.test('the handshake answers the trace, and the line of the socket has it', async (t) => {
  const front = await startFront(t);
  for (const [index, key] of [GOOD_KEY, 'svc_sk_unknown'].entries()) {
    const client = await front.sent(traced(upgrade(key), GIVEN));
    await client.until(() => client.bytes().includes('\r\n\r\n'));
    const head = client.bytes().toString('latin1');
    t.match(head, /^HTTP\/1\.1 101 /);
    const spanId = new RegExp(`\r\ntraceparent: 00-${TRACE}-([0-9a-f]{16})-01\r\n`).exec(head)?.[1];
    t.ok(spanId, head);
    client.destroy();
    await eventually(() => socketLines(front).length > index);
    t.match(socketLines(front)[index]?.fields, { traceId: TRACE, parentSpanId: PARENT, spanId });
  }
});

t.test('without a valid traceparent there is no trace', async (t) => {
  const front = await startFront(t);
  const zeros = (digits: number) => '0'.repeat(digits);
  const invalid: readonly (readonly string[])[] = [
    [],
    [''],
    [GIVEN, GIVEN],
    [`00-${TRACE.toUpperCase()}-${PARENT}-01`],
    [`00-${TRACE}-${PARENT.toUpperCase()}-01`],
    [`00-${zeros(32)}-${PARENT}-01`],
    [`00-${TRACE}-${zeros(16)}-01`],
    [`00-${TRACE}-${PARENT}-0`],
    [`00-${TRACE}-${PARENT}-0g`],
    [`00-${TRACE}-${PARENT}`],
    [`00-${TRACE}0-${PARENT}-01`],
    [`00-${TRACE}-${PARENT}-01-`],
    [`00-${TRACE}-${PARENT}-01-more`],
    [`01-${TRACE}-${PARENT}-01.more`],
    [`01-${TRACE}-${PARENT}-011`],
    [`ff-${TRACE}-${PARENT}-01`],
    [`0-${TRACE}-${PARENT}-01`],
    [`${GIVEN},${GIVEN}`],
    [`"${GIVEN}"`],
  ];
  for (const values of invalid) {
    const response = await RawClient.ask(front.port, traced({ path: '/healthz' }, ...values));
    t.equal(response.status, 200, values.join());
    t.equal(header(response, 'traceparent'), undefined, values.join());
  }
  await eventually(() => requestLines(front).length === invalid.length);
  for (const { fields } of requestLines(front))
    t.notOk('traceId' in fields || 'spanId' in fields || 'parentSpanId' in fields);
});

t.test(
  'later versions may say more; unknown flags are cleared; the state of a trace is not answered',
  async (t) => {
    const front = await startFront(t);
    for (const [value, flags] of [
      [`00-${TRACE}-${PARENT}-00`, '00'],
      [`00-${TRACE}-${PARENT}-03`, '03'],
      [`00-${TRACE}-${PARENT}-ff`, '03'],
      [`01-${TRACE}-${PARENT}-01`, '01'],
      [`cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`, '01'],
    ] as const) {
      const request = traced({ path: '/healthz', headers: ['Tracestate: a=b'] }, value);
      const response = await RawClient.ask(front.port, request);
      const [version, traceId, , answeredFlags] = header(response, 'traceparent')?.split('-') ?? [];
      t.same([version, traceId, answeredFlags], ['00', TRACE, flags], value);
      t.equal(header(response, 'tracestate'), undefined);
    }
  },
);

t.test('whatever is sent as traceparent, our header has hexadecimal digits or is not there', async (t) => {
  const front = await startFront(t);
  const hex = (length: number) =>
    fc.string({
      unit: fc.constantFrom(...'0123456789abcdef'.match(/./g)!),
      minLength: length,
      maxLength: length,
    });
  const part = fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, anyText(40));
  const value = fc
    .tuple(fc.tuple(hex(2), part), fc.tuple(hex(32), part), fc.tuple(hex(16), part), fc.tuple(hex(2), part))
    .map((parts) => parts.map(([good, odd]) => odd ?? good).join('-'));
  let valid = 0;
  await check(
    t,
    fc.property(value, (given) => {
      const parsed = parseTraceparent(given);
      if (parsed === null) return true;
      valid++;
      const { flags, spanId, traceId } = parsed;
      return answered.test(`00-${traceId}-${spanId}-${flags}`) && given.includes(traceId);
    }),
    2_000,
  );
  t.ok(valid > 100, `${valid} were valid`);
  // The library ends a connection whose header has a line break or a NUL.
  for (const odd of [`${GIVEN}\xff-more`, `${GIVEN}\tset-cookie: a=b`, `${GIVEN}; a=b`]) {
    const response = await RawClient.ask(front.port, traced({ path: '/healthz' }, odd));
    t.equal(header(response, 'traceparent'), undefined, JSON.stringify(odd));
    t.equal(header(response, 'set-cookie'), undefined);
  }
});
