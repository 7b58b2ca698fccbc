/** The service behind nginx, with the configuration files of the operator's page and a scripted engine. */
import { join } from 'node:path';
import t from 'tap';
import { ask, CONNECTIONS_OF_ADDRESS, startProxy, textOf, type Answer } from '../support/proxy.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';

const skip = missingTool('nginx', 'openssl');
const origin = 'https://app.example.com';

t.test('behind nginx', { skip }, async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CORS_ORIGINS: origin }, SCRIPTED);
  // Nothing listens on the second port, as always outside of an upgrade.
  const proxy = await startProxy(t, join(service.dataDir, 'nginx'), [service.port, 1]);
  const { key } = service;
  const speech = (text: string) => ({
    text,
    voice: 'wren',
    response_format: { encoding: 'mulaw', sample_rate: 8_000 },
  });
  const post = (path: string, body: unknown, more = {}) =>
    ask(proxy, { method: 'POST', path, key, body, ...more });
  const requestLine = (id: string) =>
    service.entries.find((line) => line.msg === 'request' && line['requestId'] === id);

  const firstRecord = async (answer: Answer): Promise<string> => {
    let text = '';
    for await (const piece of answer.body.iterator({ destroyOnReturn: false })) {
      text += String(piece);
      if (text.includes('\n\n')) break;
    }
    return text;
  };

  // Some 40 MB of base64: more than all socket buffers on the way hold.
  const long = {
    ...speech('The train was late again, and we walked. '.repeat(160)),
    response_format: { encoding: 'pcm', sample_rate: 48_000 },
  };

  await t.test('a stream arrives while it is made, and waits for its reader', async (t) => {
    const held = await post('/v1/tts/stream', long);
    t.match(await firstRecord(held), /^data: \{"type":"audio","audio_chunk":"/);
    // A later stream that is read completes. If the proxy buffered, the first would be complete as well.
    const read = await post('/v1/tts/stream', long);
    let bytes = 0;
    for await (const piece of read.body) bytes += (piece as Buffer).length;
    t.ok(read.body.complete && bytes > 40_000_000, `${bytes} bytes`);
    t.ok(await until(() => requestLine(read.requestId) !== undefined));
    t.equal(requestLine(held.requestId), undefined, 'the first is not complete');
    held.body.destroy();
    t.ok(
      await until(() => requestLine(held.requestId) !== undefined),
      'the service notices that the client left',
    );
    t.match(requestLine(held.requestId), { status: 200, outcome: 'aborted' });
  });

  await t.test('clients that leave free their slots', async (t) => {
    const streams = await Promise.all(Array.from({ length: 9 }, () => post('/v1/tts/stream', long)));
    for (const stream of streams) t.match(await firstRecord(stream), /^data: /);
    const tenth = await post('/v1/tts/stream', speech('One more.'));
    t.equal(tenth.status, 429);
    t.same(JSON.parse(await textOf(tenth)), { error: 'Rate limit exceeded', reason: 'concurrency' });
    for (const stream of streams) stream.body.destroy();
    t.ok(await until(() => streams.every(({ requestId }) => requestLine(requestId) !== undefined)));
    for (const { requestId } of streams) t.match(requestLine(requestId), { outcome: 'aborted' });
    const next = await Promise.all(
      Array.from({ length: 9 }, () => post('/v1/tts/stream', speech('One more.'))),
    );
    for (const answer of next) {
      t.equal(answer.status, 200);
      await textOf(answer);
    }
  });

  await t.test('streams and whole files are complete', async (t) => {
    const sentence = 'The train was late again, so we walked along the river. ';
    // The whole file has some megabytes: more than the buffers of the proxy.
    const body = {
      ...speech(sentence.repeat(20)),
      response_format: { encoding: 'pcm', sample_rate: 48_000 },
    };
    const seconds = (base64: readonly string[]) =>
      base64.reduce((sum, chunk) => sum + Buffer.from(chunk, 'base64').length, 0) / 96_000;
    const stream = await textOf(await post('/v1/tts/stream', body));
    const records = stream.split('\n\n');
    t.equal(records.pop(), '', 'the last record is complete');
    const streamed = seconds(
      records.map((record) => (JSON.parse(record.slice(6)) as { audio_chunk: string }).audio_chunk),
    );
    const file = await post('/v1/tts', body);
    t.equal(file.status, 200);
    const whole = seconds([(JSON.parse(await textOf(file)) as { audio: string }).audio]);
    t.equal(whole, 56, '50 ms for each letter');
    t.equal(streamed, whole);
    const samples = await post('/v1/tts/integrations/voiceplatform?voice=wren', {
      message: { type: 'voice-request', text: 'How can I help?', sampleRate: 16_000 },
    });
    t.equal(samples.headers['content-type'], 'application/octet-stream');
    t.ok((await textOf(samples)).length > 0, 'the service gets the query');
  });

  await t.test('every answer has the request id of the log', async (t) => {
    for (const [status, answer] of [
      [200, await post('/v1/tts', speech('Yes.'))],
      [401, await post('/v1/tts', speech('Yes.'), { key: 'svc_sk_no' })],
      [422, await post('/v1/tts', { text: 'Yes.' })],
      [404, await ask(proxy, { path: '/v1/nothing', key })],
      [405, await ask(proxy, { path: '/v1/tts', key })],
      [200, await ask(proxy, { path: '/openapi.json', key })],
    ] as const) {
      t.equal(answer.status, status);
      await textOf(answer);
      t.ok(await until(() => requestLine(answer.requestId) !== undefined), answer.requestId);
      t.equal(requestLine(answer.requestId)?.['status'], status);
      const isInLog = () => proxy.log().some((line) => line.endsWith(` ${answer.requestId}`));
      t.ok(await until(isInLog), 'the proxy logs it too');
    }
  });

  await t.test(
    'a slightly too large body is refused by the service, a far too large one by the proxy, alike',
    async (t) => {
      const tooLarge = { detail: 'Request body is larger than 1048576 bytes' };
      const little = await post('/v1/tts', speech('a'.repeat(1_048_576)));
      t.equal(little.status, 413);
      t.same(JSON.parse(await textOf(little)), tooLarge);
      t.ok(await until(() => requestLine(little.requestId) !== undefined), 'the service was asked');
      const far = await post('/v1/tts', speech('a'.repeat(3_000_000)));
      t.equal(far.status, 413);
      t.same(JSON.parse(await textOf(far)), tooLarge);
      t.match(far.requestId, /^\w{32}$/);
    },
  );

  await t.test('the cookies of a browser do not matter, and CORS works', async (t) => {
    const cookie = Array.from({ length: 20 }, (_, i) => `c${i}=${'x'.repeat(300)}`).join('; ');
    const answer = await post('/v1/tts', speech('Yes.'), { headers: { cookie, origin } });
    t.equal(answer.status, 200, 'the service alone would refuse so large a head');
    t.equal(answer.headers['access-control-allow-origin'], origin);
    await textOf(answer);
    const preflight = await ask(proxy, {
      method: 'OPTIONS',
      path: '/v1/tts/stream',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
    t.equal(preflight.status, 200);
    t.match(preflight.headers['access-control-allow-headers'], 'x-api-key');
  });

  await t.test('a WebSocket works, and the service notices a client that vanishes', async (t) => {
    const client = await openWs(proxy.port, key, { ca: proxy.certificate });
    client.start('one', { voice_id: 'wren' });
    client.text('one', 'Said. ');
    client.flush('one', 'done');
    await client.frame((frame) => frame.flush_id === 'done');
    t.ok(client.audio('one').length > 0);
    client.start('two', { voice_id: 'wren' });
    client.text('two', 'wait !slow '.repeat(40));
    await client.frame((frame) => frame.context_id === 'two' && frame.audio_chunk !== undefined);
    client.ws.terminate();
    const socketLine = () => service.entries.find((line) => line.msg === 'socket');
    t.ok(await until(() => socketLine() !== undefined), 'the service notices');
    t.equal(socketLine()?.['outcome'], 'client');

    const refused = await openWs(proxy.port, 'svc_sk_no', { ca: proxy.certificate });
    t.same(await refused.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
    const again = await openWs(proxy.port, key, { ca: proxy.certificate });
    again.close();
    t.match(await again.closing(), { code: 1005 });
  });

  await t.test('an address with too many connections gets its own error', async (t) => {
    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS_OF_ADDRESS }, () =>
        openWs(proxy.port, key, { ca: proxy.certificate }),
      ),
    );
    const refused = await post('/v1/tts', speech('Yes.'));
    t.equal(refused.status, 429);
    t.same(JSON.parse(await textOf(refused)), { error: 'Too many connections from this address' });
    t.match(refused.requestId, /^\w{32}$/);
    for (const client of clients) client.close();
    await Promise.all(clients.map((client) => client.closing()));
    t.ok(await until(async () => (await ask(proxy, { path: '/healthz' })).status === 200));
  });

  await t.test('only public routes are served, and the log has no key', async (t) => {
    t.equal((await ask(proxy, { path: '/healthz' })).status, 200);
    for (const path of ['/readyz', '/metrics', '/', '/v2'])
      t.equal((await ask(proxy, { path, key })).status, 404, path);
    t.equal((await ask(proxy, { path: '/v1/tts/speakers' })).status, 401);
    t.ok(proxy.log().length > 20);
    t.notOk(`${proxy.log().join('\n')}${proxy.errors()}`.includes('svc_sk_'));
    t.equal(proxy.errors().match(/\[(?:emerg|alert|crit)\]/), null);
  });

  await t.test('without a service the proxy answers with the error of the service', async (t) => {
    t.match(await service.stop(), { code: 0 });
    const answer = await post('/v1/tts', speech('Yes.'));
    t.equal(answer.status, 503);
    t.equal(answer.headers['retry-after'], '1');
    t.same(JSON.parse(await textOf(answer)), { error: 'Service unavailable' });
    t.match(answer.requestId, /^\w{32}$/);
  });
});
