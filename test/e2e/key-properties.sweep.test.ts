/** Properties of keys and accounts, set by the command line, outside the service's process, while the service runs. */
import t, { type Test } from 'tap';
import { keys as keysProgram } from '../../scripts/keys.js';
import { usageReport } from '../../scripts/usage.js';
import { balances } from '../store/support.js';
import { runner } from '../support/run-command.js';
import { pause, runScript, SCRIPTED, startService, until } from '../support/service.js';
import { openNative, openWs } from '../support/socket-client.js';
import { listen, proseOf, type SpeechPath } from '../support/speech-oracle.js';

const service = await startService(t, { SYNTHESIS_THREADS: '2', ACTOR_THREADS: '1' }, SCRIPTED);
const { dataDir, port } = service;

/** @returns what the command prints */
const keys = async (...args: string[]): Promise<string> => {
  const { status, stdout, stderr } = await runner(keysProgram, dataDir)(...args);
  if (status !== 0) throw new Error(stderr);
  return stdout;
};
const create = async (...args: string[]) => (await keys('create', ...args)).trim();

/** Prose of exactly this length, without a blank at its end, which would be free. */
const textOf = (characters: number): string =>
  proseOf(characters)
    .slice(0, characters - 1)
    .trimEnd()
    .padEnd(characters, '.');

const ask = (key: string, text = 'Yes.', path: SpeechPath = '/v1/tts') => listen(port, { path, key, text });
const speakers = async (key: string): Promise<unknown> =>
  (await service.get('/v1/tts/speakers', { 'x-api-key': key })).json();

const pcm24 = { voice_id: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
const refused = { code: 1008, reason: 'INVALID_API_KEY' };

/** WebSockets of a key: one is idle, one speaks. */
const openTwo = async (t: Test, key: string) => {
  const [idle, speaking] = [await openNative(port, key), await openWs(port, key)];
  t.teardown(() => [idle, speaking].forEach((client) => client.close()));
  speaking.start('a', pcm24);
  speaking.text('a', textOf(3_000));
  await speaking.frame(({ audio_chunk }) => audio_chunk !== undefined);
  return [idle, speaking];
};

/** A stream in the middle. */
const beginStream = async (key: string) => {
  let hasBegun = false;
  const heard = listen(port, {
    ...{ path: '/v1/tts/stream', key, text: textOf(9_000) },
    onLetters: () => (hasBegun = true),
  });
  await until(() => hasBegun);
  return async (t: Test) => t.match(await heard, { complete: false }, 'it ends with its key');
};

t.test('a key that expires is refused from then on, and its WebSockets close', async (t) => {
  // Time for a busy machine to make the key and to open what it ends.
  const expiresAtMs = Math.ceil(Date.now() / 1_000) * 1_000 + 10_000;
  const expires = new Date(expiresAtMs).toISOString().slice(0, 19);
  const key = await create('--expires', expires);
  const clients = await openTwo(t, key);
  const seen: { status: number; atMs: number; answeredMs: number }[] = [];
  const closedAt = Promise.all(clients.map((client) => client.closing().then(() => Date.now())));
  while (Date.now() < expiresAtMs + 200) {
    const atMs = Date.now();
    seen.push({ status: (await ask(key)).status, atMs, answeredMs: Date.now() });
    await pause(20);
  }
  t.ok(seen.some(({ status }) => status === 200));
  for (const { status, atMs, answeredMs } of seen) {
    if (atMs >= expiresAtMs && status !== 401) t.fail(`${status} after the expiry`);
    if (answeredMs < expiresAtMs && status !== 200) t.fail(`${status} before the expiry`);
  }
  for (const atMs of await closedAt)
    t.ok(
      atMs >= expiresAtMs && atMs <= expiresAtMs + 10_000,
      `closed ${atMs - expiresAtMs} ms after the expiry`,
    );
  for (const client of clients) {
    t.strictSame(client.closed, refused);
    t.strictSame(client.frames.at(-1), { error: 'INVALID_API_KEY' });
  }
  t.match(await keys('list'), new RegExp(`${key.slice(0, 13)}.* expired\\n`));
  await keys('set', key, '--expires', '1h');
  t.match(await ask(key), { status: 200 }, 'a later expiry counts at once');
  await keys('set', key, '--expires', 'never');
  t.match(await ask(key), { status: 200 });
});

t.test('a key spends its limit to the last credit and no further, on HTTP and WebSocket', async (t) => {
  const account = ['--account', 'shop'];
  const key = await create(...account, '--limit', '100');
  const other = await create(...account);
  t.match(await ask(key, textOf(101)), { status: 402 });
  t.match(await ask(key, textOf(60)), { status: 200 });
  t.match(await ask(key, textOf(41), '/v1/tts/stream'), { status: 402 });
  const client = await openWs(port, key);
  t.teardown(() => client.close());
  client.start('a', pcm24);
  client.text('a', textOf(41));
  client.flush('a', 'f1');
  t.match(await client.frame(({ flush_id }) => flush_id === 'f1'), { error: 'INSUFFICIENT_CREDITS' });
  client.text('a', textOf(20));
  client.flush('a', 'f2');
  t.match(await client.frame(({ flush_id }) => flush_id === 'f2'), { flush_completed: true });
  t.ok(await until(async () => (await ask(key, textOf(20))).status === 200), 'to the last credit');
  t.match(await ask(key, '!'), { status: 402 });
  t.match(await ask(other, textOf(500)), { status: 200 }, 'another key of the account has its credit');
  await keys('set', key, '--limit', '104');
  t.match(await ask(key), { status: 200 }, 'at once');
  t.match(await ask(key, '!'), { status: 402 });

  // Eight at a time, and one fits.
  const text = textOf(300);
  await keys('set', key, '--limit', String(104 + 2 * text.length - 1));
  const statuses = await Promise.all(Array.from({ length: 8 }, () => ask(key, text)));
  t.same(statuses.map(({ status }) => status).sort(), [200, ...Array<number>(7).fill(402)]);

  // What a listener does not hear gives room back.
  const long = textOf(3_000);
  await keys('set', key, '--limit', String(104 + text.length + long.length));
  await listen(port, { path: '/v1/tts/stream', key, text: long, hangUpAfterLetters: 100 });
  t.ok(await until(async () => (await ask(key, textOf(1_500))).status === 200));
  await keys('set', key, '--limit', 'none');
  t.match(await ask(key, long), { status: 200 });
});

t.test('a key knows its voices only', async (t) => {
  const key = await create('--voices', 'lark,rook');
  t.strictSame(await speakers(key), { speaker_ids: ['lark', 'rook'] });
  const response = await service.post('/v1/tts', { text: 'Hello.', voice: 'wren' }, { key });
  t.equal(response.status, 422);
  t.match(await response.json(), { error: 'unknown_voice', valid_voices: ['lark', 'rook'] });
  const client = await openWs(port, key);
  t.teardown(() => client.close());
  client.start('a', pcm24);
  t.match(await client.frame(({ error }) => error !== undefined), {
    error: "Unknown voice 'wren'. Valid voices: lark, rook",
  });
  await keys('set', key, '--voices', 'all');
  t.match(await ask(key), { status: 200 }, 'at once');
  client.start('b', { ...pcm24, voice_id: 'lark' });
  await client.frame(({ context_id }) => context_id === 'b');
  await keys('set', key, '--voices', 'rook');
  t.match(await client.frame(({ context_id, error }) => context_id === 'b' && error !== undefined), {
    error: "Unknown voice 'lark'. Valid voices: rook",
  });
  t.equal(client.closed, null, 'the WebSocket stays');
});

t.test('the keys of a suspended account are refused until it is resumed', async (t) => {
  const [one, two] = [await create('--account', 'late payer'), await create('--account', 'late payer')];
  const neighbour = await openWs(port, await create());
  t.teardown(() => neighbour.close());
  const clients = [...(await openTwo(t, one)), ...(await openTwo(t, two))];
  const stream = await beginStream(one);
  await keys('suspend', 'late payer');
  for (const key of [one, two]) t.match(await ask(key), { status: 401 });
  for (const client of clients) {
    t.strictSame(await client.closing(), refused);
    t.strictSame(client.frames.at(-1), { error: 'INVALID_API_KEY' });
  }
  await stream(t);
  t.equal(neighbour.closed, null);
  t.match(await (await openWs(port, one)).closing(), refused);
  await keys('resume', 'late payer');
  for (const key of [one, two]) t.match(await ask(key), { status: 200 });
});

t.test('a list shows what the service recorded, and a usage report agrees', async (t) => {
  const key = await create('--account', 'ada', '--name', 'till', '--limit', '1000');
  await ask(key, textOf(90));
  const prefix = key.slice(0, 13);
  await keys('rename', prefix, 'kiosk');
  const row = new RegExp(`${prefix}\\.\\.\\. +kiosk +ada +not metered .* 90 +90 of 1000 .*active\n`);
  t.ok(await until(async () => row.test(await keys('list'))), await keys('list'));
  const { stdout } = await runner(usageReport, dataDir)('--account', 'ada', '--json');
  t.match((JSON.parse(stdout) as { accounts: unknown[] }).accounts, [
    { account: 'ada', characters: 90, credits: 90, keys: [{ key: prefix, characters: 90 }] },
  ]);
});

t.test('after all this, the store is sound', async (t) => {
  for (const { balance, sum } of balances(dataDir)) t.equal(balance, sum);
  const { code, stderr } = await runScript('scripts/store.js', ['verify'], { DATA_DIR: dataDir });
  t.equal(code, 0, stderr);
  t.equal(service.stderr, '');
});
