/** What lasts ends with the session that began it: speech, WebSockets, live views. And what they show and cost. */
import t from 'tap';
import type { LiveView } from '../../src/console/contract.js';
import { limits } from '../../src/limits.js';
import { ConsoleClient } from '../support/console-client.js';
import { openWs } from '../support/socket-client.js';
import { prose, readStream, recordsOf, SCRIPTED, startService, until } from '../support/service.js';

/** The views as they arrive. */
async function* viewsOf(response: Response): AsyncGenerator<LiveView> {
  let pending = '';
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const events = (pending + text).split('\n\n');
    pending = events.pop() ?? '';
    for (const event of events) yield JSON.parse(event.slice('data: '.length)) as LiveView;
  }
}

const endsWithin = async (work: Promise<unknown>, ms: number): Promise<boolean> => {
  let ended = false;
  work.then(
    () => (ended = true),
    () => (ended = true),
  );
  return until(() => ended, ms);
};

/** More than the check takes, on a busy machine. */
const SOON_MS = limits.consoleSessionRecheckMs + limits.keyRecheckMsMax + 20_000;

t.test('the playground of a service', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'own', credits: 1_000_000 });
  const speakPath = `/api/v1/tts/stream?accountId=${accountId}`;
  const speech = (text: string) => ({
    text,
    voice: 'wren',
    response_format: { encoding: 'pcm', sample_rate: 48_000 },
  });
  /** A long stream of which the first record was read. */
  const speaking = async (client: ConsoleClient, text = prose(400)) => {
    const aborter = new AbortController();
    const response = await client.post(speakPath, speech(text), { signal: aborter.signal });
    const records = recordsOf(response);
    await records.next();
    const rest = async (): Promise<void> => {
      while ((await records.next()).done !== true);
    };
    return { rest, abort: () => aborter.abort() };
  };

  await t.test('speaks, charges the account, and shows it as Playground', async (t) => {
    const before = await operator.call('account', { accountId });
    const answer = await operator.post(speakPath, speech('Good morning. '.repeat(4)));
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
    t.ok((await readStream(answer)).audio.length > 0);
    const charged = async () => before.balance - (await operator.call('account', { accountId })).balance;
    t.ok(await until(async () => (await charged()) === 56));
    const usage = await operator.call('usage', {
      accountId,
      fromMs: Date.now() - 86_400_000,
      toMs: Date.now() + 60_000,
      step: 'hour',
    });
    t.match(usage.rows, [{ key: 'Playground', voice: 'wren', requests: 1, characters: 56 }]);
    const csv = await (
      await operator.ask(`/api/usage.csv?accountId=${accountId}&fromMs=0&toMs=${Date.now() + 1}&step=day`)
    ).text();
    t.match(csv, /\r\n[^,]+T00:00:00\.000Z,own,Playground,[^,]*,wren,1,56,56,0,[\d.]+\r\n$/);
    t.strictSame(await operator.call('keys', { accountId }), [], 'the hidden key is in no list');
  });

  await t.test('answers errors as the public port does', async (t) => {
    const { key } = await operator.call('createKey', { accountId, properties: {} });
    for (const request of [{ text: 1 }, { text: 'x', voice: 'nobody' }, { text: '', voice: 'wren' }, {}]) {
      const there = await service.post('/v1/tts/stream', request, { key });
      const here = await operator.post(speakPath, request);
      t.equal(here.status, there.status, JSON.stringify(request));
      const [answer, expected] = [await here.text(), await there.text()];
      // Two answers to an empty text differ in length.
      if (here.status !== 200) t.equal(answer, expected);
    }
  });

  await t.test('has nine slots of its own', async (t) => {
    const streams = await Promise.all(Array.from({ length: 9 }, () => speaking(operator)));
    const tenth = await operator.post(speakPath, speech('One more.'));
    t.equal(tenth.status, 429);
    t.match(await tenth.json(), { error: 'Rate limit exceeded' });
    for (const { abort } of streams) abort();
    t.ok(await until(async () => (await operator.post(speakPath, speech('Yes.'))).status === 200));
  });

  await t.test('a WebSocket speaks as on the public port', async (t) => {
    const socket = await operator.openSocket(accountId);
    socket.start('one', { voice_id: 'wren' });
    socket.text('one', 'Said. ');
    socket.flush('one', 'done');
    await socket.frame(({ flush_id }) => flush_id === 'done');
    t.ok(socket.audio('one').length > 0);
    socket.close();
    await socket.closing();
    await t.rejects(operator.openSocket(4_000_000), /refused: .*account/i);
  });

  await t.test('a WebSocket is read when its key is found, then also a long message', async (t) => {
    const socket = await openWs(service.consolePort, '', {
      path: `/api/socket?accountId=${accountId}`,
      headers: { cookie: operator.cookie, origin: operator.url },
    });
    const start = JSON.stringify({
      start_context: { voice_id: 'wren', model_id: 'default' },
      context_id: 'one',
    });
    socket.send(start + ' '.repeat(2 * limits.socketShortMessageBytesMax));
    t.match(await socket.frame(() => true), { context_started: {}, context_id: 'one' });
    socket.close();
    await socket.closing();
  });

  await t.test('a sign-out ends what the session has open', async (t) => {
    const member = await operator.invited(accountId, 'max');
    const { rest } = await speaking(member);
    const socket = await member.openSocket(accountId);
    await member.call('signOut', { everywhere: false });
    t.ok(await endsWithin(rest(), SOON_MS), 'speech');
    t.match(await socket.closing(), { code: 1008 });
    t.match(
      (await service.requests()).find(({ outcome }) => outcome === 'revoked'),
      { route: '/api/v1/tts/stream', status: 200 },
    );
  });

  await t.test('a suspended account ends what speaks for it, and the other goes on', async (t) => {
    const member = await operator.invited(accountId, 'moritz');
    const { rest } = await speaking(member);
    const socket = await member.openSocket(accountId);
    const live = await operator.ask('/api/live');
    const views = viewsOf(live);
    await views.next();
    await operator.call('suspendAccount', { accountId, suspended: true });
    t.ok(await endsWithin(rest(), SOON_MS));
    t.match(await socket.closing(), { code: 1008 });
    const refused = await member.post(speakPath, speech('Yes.'));
    t.equal(refused.status, 401);
    t.match(await refused.json(), { error: 'INVALID_API_KEY' });
    t.notOk((await views.next()).done, 'the live view goes on');
    await live.body?.cancel().catch(() => undefined);
    await views.return(undefined);
    await operator.call('suspendAccount', { accountId, suspended: false });
  });

  await t.test('the live view shows what happens, without texts and keys', async (t) => {
    await service.post('/v1/tts', { text: 'A secret text.' });
    await service.post('/v1/tts', { text: 'Yes.', voice: 'wren' }, { key: 'svc_sk_unknown' });
    const { abort } = await speaking(operator);
    const response = await operator.ask('/api/live');
    t.equal(response.headers.get('content-type'), 'text/event-stream');
    const seen: LiveView[] = [];
    for await (const view of viewsOf(response)) if (seen.push(view) === 2) break;
    const [first, second] = seen;
    t.ok(second!.atMs - first!.atMs >= 800, 'one each second');
    t.match(second, {
      ready: true,
      streams: { '/api/v1/tts/stream': 1, '/v1/tts': 0 },
      firstAudioMs: { p50: Number, p95: Number, p99: Number },
      threads: { synthesis: 1 },
      voices: Number,
      generations: { current: 1, olderContexts: 0 },
      refusals: { keyUnknown: Number, requestInvalid: Number },
    });
    t.ok(second!.memoryBytes > 1e6 && second!.capacityRatio >= 0);
    t.notMatch(JSON.stringify(seen), /secret|svc_sk/);
    abort();
  });

  await t.test('samples: one for each voice, an mp3 that costs nothing', async (t) => {
    const { balance } = await operator.call('account', { accountId });
    const [pack] = (await operator.call('voices', {})).packs;
    t.match(pack, { name: String, loaded: true, message: null, bytes: Number });
    const [voice] = pack!.voices;
    const path = `/api/sample?voice=${voice!.id}`;
    const [one, two] = await Promise.all([operator.ask(path), operator.ask(path)]);
    t.equal(one.headers.get('content-type'), 'audio/mpeg');
    const bytes = Buffer.from(await one.arrayBuffer());
    t.ok(bytes.length > 1_000);
    t.match(bytes.subarray(0, 3).toString('latin1'), /^ID3|^\xff[\xe0-\xff]/);
    t.ok(bytes.equals(Buffer.from(await two.arrayBuffer())), 'made once');
    t.equal((await operator.ask('/api/sample?voice=nobody')).status, 404);
    t.equal((await operator.call('account', { accountId })).balance, balance);
  });

  await t.test('one session has only so much open', async (t) => {
    const one = await operator.invited(null, 'otto');
    const sockets = [];
    for (let i = 0; i < limits.consoleStreamsPerSessionMax; i++)
      sockets.push(await one.openSocket(accountId));
    t.equal((await one.ask('/api/live')).status, 429);
    for (const socket of sockets) socket.close();
    await Promise.all(sockets.map((socket) => socket.closing()));
    const live = await one.ask('/api/live');
    t.equal(live.status, 200);
    await live.body?.cancel();
  });

  await t.test('a stop ends live views, and lets speech finish', async (t) => {
    const { rest } = await speaking(operator, prose(20));
    const live = await operator.ask('/api/live');
    const [, , exit] = await Promise.all([
      rest(),
      (async () => {
        const views = viewsOf(live);
        while ((await views.next()).done !== true);
      })(),
      service.stop(),
    ]);
    t.match(exit, { code: 0 });
  });
});
