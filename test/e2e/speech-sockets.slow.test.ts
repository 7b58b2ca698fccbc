/** The WebSocket route of the real service, and keys and slots, which it shares with HTTP. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createKeys, operate } from '../../scripts/operator.js';
import { balances } from '../store/support.js';
import { startService, until, openStream, runScript } from '../support/service.js';
import { openNative, openWs, type SocketClient } from '../support/socket-client.js';
import {
  checkSeams,
  converse,
  pcm24,
  RATE_HZ,
  samplesOf,
  tokens,
  utterances,
} from '../support/conversation.js';
import { decodersOf } from '../support/decoders.js';
import { missingTool } from '../support/tools.js';

// Nothing is refused for want of capacity, however busy the machine is.
const service = await startService(t);
const { dataDir } = service;
const short = { text: 'Yes.', voice: 'wren', response_format: 'wav' };
let accounts = 0;
/** Of an account of its own. */
const makeKey = async (credits: number | null = null): Promise<string> =>
  (await createKeys(dataDir, [[`account ${(accounts += 1)}`, credits]]))[0] ?? '';

const long = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  200,
);

t.test(
  'four utterances in pieces of a letter have continuous times, the words as sent, and no click between',
  async (t) => {
    const client = await openWs(service.port, service.key);
    await converse(client, 'a', pcm24, 1);
    const words = client.words('a');
    t.strictSame(
      words.map(({ word }) => word),
      tokens,
    );
    const samples = samplesOf(client.audio('a'));
    const seconds = samples.length / RATE_HZ;
    words.forEach(({ start, end }, i) => {
      t.ok(start <= end && start >= (words[i - 1]?.end ?? 0), 'in order, without overlap');
    });
    t.ok((words.at(-1)?.end ?? Infinity) <= seconds && seconds < (words.at(-1)?.end ?? 0) + 2);
    checkSeams(t, samples, RATE_HZ, words);
    const ids = client.frames.flatMap(({ flush_id }) => flush_id ?? []);
    t.strictSame(ids, ['flush 0', 'flush 1', 'flush 2', 'flush 3', 'a:close']);
    let timed = 0;
    let sent = 0;
    for (const { audio_chunk, timestamps } of client.frames) {
      sent += Buffer.byteLength(audio_chunk ?? '', 'base64') / 2 / RATE_HZ;
      for (const end of timestamps?.end_seconds ?? []) {
        timed++;
        if (end > sent + 0.001) t.fail(`the time of a word came ${end - sent} s before its sound`);
      }
    }
    t.equal(timed, tokens.length);
    client.close();
  },
);

t.test('words sent one by one are heard before their sentence ends, once in each utterance', async (t) => {
  const client = await openWs(service.port, service.key);
  const sentence = 'It looks like the flight to Denver is delayed by about an hour and a half.';
  client.start('a', pcm24);
  const heard = () => client.audio('a').length;
  for (const utterance of [1, 2]) {
    const before = heard();
    for (const word of sentence.split(' ').slice(0, 8)) client.text('a', `${word} `);
    await client.until(() => heard() > before);
    t.ok(client.words('a').length < utterance * sentence.split(' ').length);
    for (const word of sentence.split(' ').slice(8)) client.text('a', ` ${word}`);
    client.flush('a', `f${utterance}`);
    await client.frame(({ flush_id }) => flush_id === `f${utterance}`);
  }
  t.strictSame(
    client.words('a').map(({ word }) => word),
    `${sentence} ${sentence}`.split(' '),
  );
  client.close();
});

t.test('an idle socket holds no slot, a speaking one holds one, shared with HTTP', async (t) => {
  const key = await makeKey();
  const clients = await Promise.all(Array.from({ length: 10 }, () => openNative(service.port, key)));
  for (const client of clients) client.start('a', { ...pcm24, timestamps: false });
  const nine = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short, { key })));
  t.ok(
    nine.every(({ status }) => status === 200),
    'ten idle sockets hold none',
  );
  const [tenth, ...others] = clients as [SocketClient, ...SocketClient[]];
  for (const client of others) {
    client.text('a', long);
    client.text('a', long);
  }
  for (const client of others) await client.frame(({ audio_chunk }) => audio_chunk !== undefined);
  t.equal((await service.post('/v1/tts', short, { key })).status, 429);
  tenth.text('a', 'No room.');
  t.strictSame(await tenth.frame(({ error }) => error !== undefined), {
    error: 'Rate limit exceeded',
    context_id: 'a',
  });
  tenth.flush('a', 'f');
  t.strictSame(await tenth.frame(({ flush_id }) => flush_id === 'f'), {
    error: 'Rate limit exceeded',
    context_id: 'a',
    flush_id: 'f',
  });
  others[0]?.close();
  const closedAt = performance.now();
  t.ok(await until(async () => (await service.post('/v1/tts', short, { key })).status === 200));
  t.comment(`free ${(performance.now() - closedAt).toFixed(0)} ms after the close, a request included`);
  for (const client of others) client.cancel('a');
  for (const client of others.slice(1)) await client.frame(({ context_closed }) => context_closed === true);
  tenth.text('a', 'Room now.');
  tenth.flush('a', 'g');
  t.match(await tenth.frame(({ flush_id }) => flush_id === 'g'), { flush_completed: true });
  const again = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short, { key })));
  t.ok(
    again.every(({ status }) => status === 200),
    'nine are free',
  );
  for (const client of clients) client.close();
});

t.test(
  'credit is charged by the character, refunded by a cancel, and refused when it is exhausted',
  async (t) => {
    const key = await makeKey(1_000);
    const account = `account ${accounts}`;
    const balance = () => balances(dataDir).find(({ name }) => name === account);
    const client = await openWs(service.port, key);
    client.start('a', { ...pcm24, timestamps: false });
    client.text('a', 'Twenty characters!!');
    client.text('a', '😀');
    client.flush('a', 'f1');
    await client.frame(({ flush_id }) => flush_id === 'f1');
    t.ok(await until(() => balance()?.balance === 980), 'charged at the end of the utterance');
    t.strictSame(balance(), { name: account, balance: 980, sum: 980 });
    client.text('a', 'x'.repeat(981));
    t.match(await client.frame(({ error }) => error !== undefined), { error: 'INSUFFICIENT_CREDITS' });
    client.flush('a', 'f2');
    t.match(await client.frame(({ flush_id }) => flush_id === 'f2'), { error: 'INSUFFICIENT_CREDITS' });
    client.start('b', { ...pcm24, timestamps: false });
    client.text('b', long.slice(0, 900));
    await client.frame(({ context_id, audio_chunk }) => context_id === 'b' && audio_chunk !== undefined);
    client.cancel('b');
    await client.frame(({ context_id, context_closed }) => context_id === 'b' && context_closed === true);
    t.ok(await until(() => (balance()?.balance ?? 980) < 980));
    const left = balance();
    t.equal(left?.balance, left?.sum);
    t.ok((left?.balance ?? 0) > 80, `${left?.balance}: the unspoken rest is not charged`);
    await operate(dataDir, (administration) => administration.credit(key, 1_200));
    client.text('a', long.slice(0, 1_200));
    client.flush('a', 'f3');
    await client.frame(({ flush_id }) => flush_id === 'f3');
    client.close();
    await client.closing();
    // White space at the end of a text has no sound and is free.
    const expected = (left?.balance ?? 0) + 1_200 - long.slice(0, 1_200).trimEnd().length;
    t.ok(
      await until(() => Math.abs((balance()?.balance ?? 0) - expected) <= 1),
      `${balance()?.balance} of ${expected}`,
    );
    t.equal(balance()?.balance, balance()?.sum);
    await until(() => service.entries.some(({ msg, contexts }) => msg === 'socket' && contexts === 2));
    t.notMatch(service.stdout, /Twenty|train was late/);
    t.notOk(service.stdout.includes(key));
  },
);

t.test('revoking a key closes its open sockets, and no others', async (t) => {
  const [key, other] = [await makeKey(), await makeKey()];
  const clients = [await openWs(service.port, key), await openNative(service.port, key)];
  const neighbour = await openNative(service.port, other);
  for (const client of [clients[0], neighbour]) {
    client?.start('a', { ...pcm24, timestamps: false });
    client?.text('a', long);
    await client?.frame(({ audio_chunk }) => audio_chunk !== undefined);
  }
  await operate(dataDir, (administration) => administration.revoke(key));
  const revokedAt = performance.now();
  for (const client of clients) {
    t.strictSame(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
    t.strictSame(client.frames.at(-1), { error: 'INVALID_API_KEY' });
  }
  t.comment(`closed within ${(performance.now() - revokedAt).toFixed(0)} ms of the act`);
  const seen = neighbour.frames.length;
  await neighbour.until(() => neighbour.frames.length > seen);
  neighbour.close();
  const refused = await openWs(service.port, key);
  t.match(await refused.closing(), { code: 1008 });
});

t.test('whole texts give the same words as their pieces', async (t) => {
  const client = await openWs(service.port, service.key);
  await converse(client, 'a', pcm24, 10_000);
  t.strictSame(
    client.words('a').map(({ word }) => word),
    tokens,
  );
  client.close();
});

t.test('every encoding has its headers and decodes', async (t) => {
  const client = await openWs(service.port, service.key);
  const encodings = ['mp3', 'wav', 'linear16', 'opus', 'mulaw'];
  await Promise.all(
    encodings.map((encoding) => converse(client, encoding, { response_format: { encoding } }, 50)),
  );
  const chunks = (encoding: string) =>
    client
      .of(encoding)
      .flatMap(({ audio_chunk }) => (audio_chunk === undefined ? [] : [Buffer.from(audio_chunk, 'base64')]));
  const count = (encoding: string, magic: string) =>
    chunks(encoding).filter((chunk) => chunk.toString('latin1', 0, magic.length) === magic).length;
  t.equal(count('wav', 'RIFF'), 1);
  t.equal(count('linear16', 'RIFF'), chunks('linear16').length);
  t.equal(client.audio('opus').toString('latin1').split('OpusHead').length, 2, 'one header over all flushes');
  t.equal(count('opus', 'OggS'), chunks('opus').length);
  t.equal(count('mp3', 'ID3'), 0);
  const first = chunks('mp3')[0];
  t.equal((first?.readUInt16BE(0) ?? 0) & 0xffe0, 0xffe0, 'raw MPEG frames');
  for (const encoding of encodings) {
    t.strictSame(
      client.words(encoding).map(({ word }) => word),
      tokens,
      encoding,
    );
    const sizes = client.of(encoding).flatMap(({ audio_chunk }) => audio_chunk?.length ?? []);
    t.ok(Math.max(...sizes) < 100_000, 'small frames');
  }
  for (const [encoding, rateHz] of [
    ['mp3', 32_000],
    ['opus', 48_000],
  ] as const)
    for (const decoder of decodersOf(encoding, rateHz))
      t.test(`${encoding} by ${decoder.program}`, { skip: missingTool(decoder.program) }, (t) => {
        const path = join(t.testdir(), `stream.${encoding}`);
        writeFileSync(path, client.audio(encoding));
        checkSeams(t, decoder.decode(path), rateHz, client.words(encoding));
        t.end();
      });
  client.close();
});

const keys = (...args: string[]) => runScript('scripts/keys.js', args, { DATA_DIR: service.dataDir });
const keyIn = (output: string) => /svc_sk_\w+/.exec(output)?.[0] ?? '';

t.test('a key that another process makes works at once, and stops at once when it is revoked', async (t) => {
  const made = await keys('create', '--account', 'shop');
  t.equal(made.code, 0, made.stderr);
  const key = keyIn(made.stdout);
  t.equal((await service.post('/v1/tts', short, { key })).status, 200);
  const listed = await keys('list');
  t.notOk(listed.stdout.includes(key), 'a list never shows a key');
  t.match(listed.stdout, 'shop');
  t.equal((await keys('revoke', key)).code, 0);
  const refused = await service.post('/v1/tts', short, { key });
  t.equal(refused.status, 401);
  t.same(await refused.json(), { error: 'INVALID_API_KEY' });
  t.notOk(service.stdout.includes(key), 'nor does the log');
});

t.test('a key has nine requests; the tenth is refused at once; an aborted one frees its slot', async (t) => {
  const streams = await Promise.all(Array.from({ length: 9 }, () => openStream(service)));
  t.ok(streams.every(({ response }) => response.status === 200));
  for (const path of ['/v1/tts', '/v1/tts/stream']) {
    const tenth = await service.post(path, short);
    t.equal(tenth.status, 429);
    t.same(await tenth.json(), { error: 'Rate limit exceeded', reason: 'concurrency' });
    t.equal(tenth.headers.get('retry-after'), null);
  }
  const other = await makeKey();
  t.equal((await service.post('/v1/tts', short, { key: other })).status, 200, 'another key has its own nine');
  const isFree = async () => (await service.post('/v1/tts', short)).status === 200;
  const abortedMs = performance.now();
  streams[0]?.abort();
  t.ok(await until(isFree), 'long before its text could end');
  t.comment(`free ${(performance.now() - abortedMs).toFixed(0)} ms after the abort, one request included`);
  for (const { abort } of streams) abort();
  const areAllFree = async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short)));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    return answers.every((answer) => answer.status === 200);
  };
  t.ok(await until(areAllFree), 'all nine are free again');
});

t.test('a drain lets speaking contexts finish, then closes with 1001', async (t) => {
  const [idle, busy] = [await openNative(service.port, service.key), await openWs(service.port, service.key)];
  busy.start('a', pcm24);
  busy.text('a', utterances.join(' '));
  busy.closeContext('a');
  await busy.frame(({ audio_chunk }) => audio_chunk !== undefined);
  const stopped = service.stop();
  t.match(await idle.closing(), { code: 1001 });
  t.match(await busy.closing(), { code: 1001 });
  t.strictSame(
    busy.words('a').map(({ word }) => word),
    tokens,
  );
  t.match(busy.frames.at(-1), { context_closed: true });
  t.strictSame(await stopped, { code: 0, signal: null });
});
