import t from 'tap';
import { ConfigError, readConfig } from '../../src/config.js';
import { header, RawClient, type RawResponse, type RequestOptions } from '../support/raw-client.js';
import { GOOD_KEY, platformAsks, speak, startFront } from '../support/front-server.js';

const PAGE = 'https://shop.example';
const OTHER = 'http://localhost:5173';

const corsHeaders = (response: RawResponse) =>
  response.headers.filter(([name]) => name.startsWith('access-control-') || name === 'vary');

const allowed = (origin: string) => [
  ['access-control-allow-origin', origin],
  ['access-control-expose-headers', 'x-request-id, retry-after, traceparent'],
  ['vary', 'origin'],
];

const from = (origin: string, request: RequestOptions): RequestOptions => ({
  ...request,
  headers: [`Origin: ${origin}`, ...(request.headers ?? [])],
});

const preflight = (path: string, method = 'POST'): RequestOptions => ({
  method: 'OPTIONS',
  path,
  headers: [
    `Access-Control-Request-Method: ${method}`,
    'Access-Control-Request-Headers: content-type,x-api-key',
  ],
});

/** A request for each kind of answer, with its status. */
const requests: readonly (readonly [number, RequestOptions])[] = [
  [200, { path: '/v1/tts/speakers', key: GOOD_KEY }],
  [200, { method: 'HEAD', path: '/v1/tts/speakers', key: GOOD_KEY }],
  [200, { path: '/healthz' }],
  [200, speak('/v1/tts')],
  [200, speak('/v1/tts/stream')],
  [200, platformAsks()],
  [200, platformAsks({ type: 'hang' })],
  [401, { ...speak('/v1/tts'), key: null }],
  [422, speak('/v1/tts', { voice: 'x'.repeat(50_000) })],
  [422, { ...speak('/v1/tts'), body: '{' }],
  [404, { path: '/nothing' }],
  [405, { path: '/v1/tts' }],
  [400, { path: '/healthz', headers: ['Host: twice'] }],
  [413, { ...speak('/v1/tts'), body: 'a'.repeat(1_048_577) }],
];

const ask = async (port: number, request: RequestOptions) => RawClient.ask(port, request);

t.test('pages of the configured origins may read every answer, errors included', async (t) => {
  const front = await startFront(t, { corsOrigins: [PAGE, OTHER] });
  for (const origin of [PAGE, OTHER])
    for (const [status, request] of requests) {
      const response = await ask(front.port, from(origin, request));
      t.equal(response.status, status);
      t.ok(response.complete);
      t.same(corsHeaders(response), allowed(origin), `${request.method ?? 'GET'} ${request.path} ${status}`);
      t.ok(header(response, 'x-request-id'));
    }
  front.speech.script = (context) => context.fail('thread died');
  const failed = await ask(front.port, from(PAGE, speak('/v1/tts/stream')));
  t.equal(failed.status, 500);
  t.same(corsHeaders(failed), allowed(PAGE));
});

t.test('pages of other origins may not, and caches learn that answers differ', async (t) => {
  const front = await startFront(t, { corsOrigins: [PAGE] });
  const strangers = [
    OTHER,
    'null',
    'https://shop.example.evil.example',
    'http://shop.example',
    'https://shop.example:8443',
    'HTTPS://SHOP.EXAMPLE',
    '*',
    `${PAGE}, ${OTHER}`,
  ];
  for (const origin of strangers) {
    for (const [status, request] of requests) {
      const response = await ask(front.port, from(origin, request));
      t.equal(response.status, status);
      t.same(corsHeaders(response), [['vary', 'origin']], origin);
    }
    const asked = await ask(front.port, from(origin, preflight('/v1/tts')));
    t.equal(asked.status, 405);
    t.same(corsHeaders(asked), [['vary', 'origin']], origin);
  }
  t.same(corsHeaders(await ask(front.port, { path: '/healthz' })), [['vary', 'origin']], 'no origin');
});

t.test('a preflight is answered without a key on every path', async (t) => {
  const front = await startFront(t, { corsOrigins: [PAGE] });
  for (const [path, methods] of [
    ['/v1/tts', 'POST'],
    ['/v1/tts/stream', 'POST'],
    ['/v1/tts/integrations/voiceplatform?voice=ada', 'POST'],
    ['/v1/tts/speakers', 'GET, HEAD'],
    ['/healthz', 'GET, HEAD'],
  ] as const) {
    const response = await ask(front.port, from(PAGE, preflight(path, methods.slice(0, 4).replace(',', ''))));
    t.equal(response.status, 200, path);
    t.equal(response.body.length, 0);
    t.equal(header(response, 'content-length'), '0');
    t.ok(header(response, 'x-request-id'));
    t.same(corsHeaders(response), [
      ['access-control-allow-methods', methods],
      ['access-control-allow-headers', 'x-api-key, content-type, traceparent'],
      ['access-control-max-age', '7200'],
      ...allowed(PAGE),
    ]);
  }
  t.equal(front.admission.authenticated, 0);
  t.equal((await ask(front.port, from(PAGE, preflight('/nothing')))).status, 404);
  const options = await ask(front.port, from(PAGE, { method: 'OPTIONS', path: '/v1/tts' }));
  t.equal(options.status, 405, 'OPTIONS that is no preflight');
  t.equal(header(options, 'allow'), 'POST');
});

t.test('a star stands for every page', async (t) => {
  const front = await startFront(t, { corsOrigins: ['*'] });
  for (const origin of [PAGE, OTHER, 'null', 'x'.repeat(2_000)]) {
    const response = await ask(front.port, from(origin, speak('/v1/tts/stream')));
    t.equal(response.status, 200);
    t.same(corsHeaders(response), allowed('*'));
    t.equal((await ask(front.port, from(origin, preflight('/v1/tts')))).status, 200);
  }
  t.same(corsHeaders(await ask(front.port, { path: '/healthz' })), [['vary', 'origin']]);
});

t.test('without configuration there are no CORS headers, and OPTIONS is a method like others', async (t) => {
  const front = await startFront(t);
  for (const [status, request] of requests) {
    const response = await ask(front.port, from(PAGE, request));
    t.equal(response.status, status);
    t.same(corsHeaders(response), []);
  }
  const asked = await ask(front.port, from(PAGE, preflight('/v1/tts')));
  t.equal(asked.status, 405);
  t.equal(asked.body.toString(), '{"detail":"Method Not Allowed"}');
  t.equal(header(asked, 'allow'), 'POST');
});

t.test('nothing that a client sends becomes a header', async (t) => {
  const evil = ['a%0d%0aset-cookie: a=b', 'a\tb', `${PAGE}\u00ff`, '"><script>'];
  for (const corsOrigins of [[], [PAGE], ['*']]) {
    const front = await startFront(t, { corsOrigins });
    for (const text of evil)
      for (const request of [speak('/v1/tts/stream'), preflight('/v1/tts', text), { path: '/nothing' }]) {
        const headers = [...(request.headers ?? []), `Access-Control-Request-Headers: ${text}`];
        const response = await ask(front.port, from(text, { ...request, headers }));
        const values = response.headers.map(([, value]) => value).join('\n');
        t.notOk(values.includes(text));
        t.notMatch(values, /cookie|script/);
      }
  }
});

const originsOf = (value: string | undefined): readonly string[] =>
  readConfig(value === undefined ? {} : { CORS_ORIGINS: value }).corsOrigins;

t.test('CORS_ORIGINS takes origins as browsers write them, or a star', (t) => {
  for (const [value, origins] of [
    [undefined, []],
    ['', []],
    ['  ', []],
    ['*', ['*']],
    [PAGE, [PAGE]],
    [` ${PAGE} , ${OTHER}`, [PAGE, OTHER]],
    ['HTTPS://Shop.Example:443', [PAGE]],
    ['http://[::1]:3000', ['http://[::1]:3000']],
    ['capacitor://localhost', ['capacitor://localhost']],
  ] as const)
    t.same(originsOf(value), origins, String(value));
  for (const value of [
    'shop.example',
    `${PAGE}/`,
    `${PAGE}/path`,
    `*, ${PAGE}`,
    `${PAGE},`,
    `${PAGE} ${OTHER}`,
    'https://a:b@shop.example',
    'https://shop.example:99999',
    'null',
    'https://x\r\nset-cookie: a',
    `https://${'a'.repeat(300)}`,
  ])
    t.throws(() => originsOf(value), ConfigError, value);
  t.end();
});
