/** What requests cost, seen from outside the process: balances, the ledger, and changes by another process. */
import t, { type Test } from 'tap';
import { readUsage } from '../../src/accounts/usage.js';
import { limits } from '../../src/limits.js';
import { sqliteStore } from '../../src/store/sqlite/driver.js';
import { createKeys, operate } from '../../scripts/operator.js';
import { balances, chargesOf } from '../store/support.js';
import { RawClient, requestBytes } from '../support/raw-client.js';
import { SCRIPTED, runScript, startService, until } from '../support/service.js';
import { chargeMax, chargeThrough, listen, proseOf, type SpeechPath } from '../support/speech-oracle.js';

const service = await startService(t, { SYNTHESIS_THREADS: '2', ACTOR_THREADS: '1' }, SCRIPTED);
const { dataDir, port } = service;

const routes: readonly SpeechPath[] = ['/v1/tts', '/v1/tts/stream'];
let accounts = 0;

/** Creates an account for a test, with a key. */
const open = async (credits: number | null) => {
  const name = `account ${(accounts += 1)}`;
  const [key = ''] = await createKeys(dataDir, [[name, credits]]);
  const balance = () => {
    const found = balances(dataDir).find((account) => account.name === name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    if (found.balance !== found.sum) throw new Error(`balance ${found.balance}, ledger ${found.sum}`);
    return found.balance;
  };
  return { name, key, balance };
};

const balanceBecomes = async (
  t: Test,
  account: Awaited<ReturnType<typeof open>>,
  expected: number,
  why: string,
) => {
  await until(() => account.balance() === expected);
  t.equal(account.balance(), expected, why);
};

const chargeOf = (requestId: string | null) => chargesOf(dataDir).get(requestId ?? '')?.credits ?? 0;

t.test('a complete request costs its characters, in one entry up to a thousand', async (t) => {
  const account = await open(10_000);
  let left = 10_000;
  for (const path of routes)
    for (const text of [proseOf(30), proseOf(900)]) {
      const heard = await listen(port, { path, key: account.key, text });
      t.match(heard, { status: 200, complete: true, letters: text.length });
      left -= text.length;
      await balanceBecomes(t, account, left, `${path}, ${text.length} characters`);
      t.equal(chargesOf(dataDir).get(heard.requestId ?? '')?.entries, 1);
    }
  const blank = { path: '/v1/tts/stream', key: account.key, text: ' \n'.repeat(300) } as const;
  t.match(await listen(port, blank), { status: 200, complete: true });
  await balanceBecomes(t, account, left, 'a text of white space is free');
  const long = proseOf(2_100);
  const { requestId } = await listen(port, { path: '/v1/tts/stream', key: account.key, text: long });
  await balanceBecomes(t, account, left - long.length, 'in steps');
  t.equal(chargesOf(dataDir).get(requestId ?? '')?.entries, 3);
});

t.test('usage has the voice, and the seconds of audio that were heard', async (t) => {
  const account = await open(null);
  const driver = sqliteStore(dataDir, limits);
  const useOf = async () => (await readUsage(driver, { account: account.name, sinceMs: null }))[0];
  let letters = 0;
  for (const path of routes)
    for (const length of [30, 1_100]) {
      letters += (await listen(port, { path, key: account.key, text: proseOf(length) })).letters;
      // Each letter is 50 ms.
      await until(async () => (await useOf())?.audioMs === 50 * letters);
      t.match(await useOf(), { characters: letters, audioMs: 50 * letters }, `${path}, ${length} characters`);
    }
  const store = await driver.administer(false);
  const question = { accountId: null, fromMs: 0, toMs: Date.now() + 1, step: 'day' } as const;
  const rows = await store.read(async (view) => view.readUsageRows(question, 1_000));
  await store.close();
  t.match(rows.at(-1), { key: account.key.slice(0, 13), voice: 'wren' });
});

t.test('white space at the end and an empty text are free', async (t) => {
  const account = await open(1_000);
  await listen(port, { path: '/v1/tts', key: account.key, text: 'Yes.  \n' });
  await balanceBecomes(t, account, 995, 'a sentence, with the space that ended it');
  t.match(await listen(port, { path: '/v1/tts', key: account.key, text: '' }), { status: 200 });
  await listen(port, { path: '/v1/tts', key: account.key, text: 'No.' });
  await balanceBecomes(t, account, 992, 'an empty text was free');
});

t.test('a failed request is free as a whole result; as a stream it costs what was sent', async (t) => {
  const account = await open(10_000);
  const spoken = proseOf(400);
  for (const marker of ['!throw', '!exit', '!reject-late']) {
    const text = `${spoken} Then ${marker} it breaks.`;
    const whole = await listen(port, { path: '/v1/tts', key: account.key, text });
    t.match(whole, { status: 500 }, marker);
    const before = account.balance();
    const stream = await listen(port, { path: '/v1/tts/stream', key: account.key, text });
    t.match(stream, { status: 200, complete: false });
    t.ok(stream.letters > 0, `${marker}: heard ${stream.letters} letters`);
    await until(() => chargeOf(stream.requestId) > 0);
    const charge = chargeOf(stream.requestId);
    t.ok(charge >= chargeThrough(text, stream.letters) && charge <= chargeMax(text, stream), `${charge}`);
    t.equal(account.balance(), before - charge, 'nothing else is charged');
    t.notOk(chargesOf(dataDir).has(whole.requestId ?? ''), 'not even an entry and its refund');
  }
  t.ok(await until(async () => (await service.get('/readyz', {})).status === 200), 'all threads are back');
});

t.test(
  'a client that hangs up pays for what was sent; before the first audio that is next to nothing',
  async (t) => {
    const account = await open(100_000);
    const text = proseOf(3_000);
    const early = await listen(port, {
      path: '/v1/tts/stream',
      key: account.key,
      text,
      hangUpAfterLetters: 0,
    });
    t.ok(chargeOf(early.requestId) <= chargeMax(text, early));
    const wholes = [0, 0, 0].map(() =>
      listen(port, { path: '/v1/tts', key: account.key, text, hangUpAfterLetters: 0 }),
    );
    for (const whole of await Promise.all(wholes)) t.equal(whole.complete, false);
    for (const letters of [1, 120, 1_500]) {
      const before = account.balance();
      const late = await listen(port, {
        path: '/v1/tts/stream',
        key: account.key,
        text,
        hangUpAfterLetters: letters,
      });
      t.equal(late.complete, false);
      await until(() => account.balance() < before);
      // The slot is free when the lease is closed. The entry of this request follows the last one of the lease.
      await listen(port, { path: '/v1/tts', key: account.key, text: 'Yes.' });
      await until(() => account.balance() === before - chargeOf(late.requestId) - 4);
      const charge = chargeOf(late.requestId);
      t.ok(
        charge >= chargeThrough(text, late.letters) && charge <= chargeMax(text, late),
        `${letters}: ${charge}`,
      );
      t.equal(account.balance(), before - charge - 4, 'the rest is refunded');
    }
  },
);

t.test('402 exactly while the credit does not cover the text', async (t) => {
  const text = proseOf(400);
  const account = await open(text.length);
  const ask = (text: string, path: SpeechPath = '/v1/tts') => listen(port, { path, key: account.key, text });
  t.match(await ask(`${text}!`), { status: 402 }, 'one character too many');
  const long = await RawClient.open(port);
  const body = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 48_000 } };
  // The client does not read, so the reservation stays.
  long.socket.pause();
  long.send(
    requestBytes({ method: 'POST', path: '/v1/tts/stream', key: account.key, body: JSON.stringify(body) }),
  );
  t.ok(
    await until(async () => (await ask('Yes.')).status === 402),
    'reserved credit is not available to another request',
  );
  long.destroy();
  t.ok(
    await until(async () => (await ask('Yes.', '/v1/tts/stream')).status === 200),
    'the unsent rest is available again',
  );
  while ((await ask(proseOf(40))).status === 200);
  while ((await ask('!')).status === 200);
  await balanceBecomes(t, account, 0, 'to the last credit');
  for (const path of routes) t.match(await ask('Yes.', path), { status: 402 });
  const credited = await runScript('scripts/keys.js', ['credit', account.name, '4'], { DATA_DIR: dataDir });
  t.match(credited, { code: 0, stdout: /has 4 credits/ });
  t.match(await ask('Yes.'), { status: 200 }, 'at once');
  t.match(await ask('!'), { status: 402 });
});

/** Sends all requests in one tick, in one write each, and reads the statuses. */
const race = async (key: string, count: number, text: string): Promise<number[]> => {
  const clients = await Promise.all(Array.from({ length: count }, () => RawClient.open(port)));
  const body = JSON.stringify({ text, voice: 'wren', response_format: 'pcm' });
  for (const client of clients)
    client.send(requestBytes({ method: 'POST', path: '/v1/tts/stream', key, body }));
  const statusOf = async (client: RawClient) => {
    await client.until(() => client.receivedBytes > 12);
    return Number(client.bytes().toString('latin1', 9, 12));
  };
  const statuses = await Promise.all(clients.map(statusOf));
  for (const client of clients) client.destroy();
  return statuses.sort((a, b) => a - b);
};

t.test('of two requests for the ninth slot, or for the last credits, one wins', async (t) => {
  const text = proseOf(2_000);
  for (let round = 0; round < 3; round += 1) {
    const { key } = await open(null);
    const expected = [...Array<number>(9).fill(200), 429];
    t.same(await race(key, 10, text), expected, 'nine of ten');
    const poor = await open(2 * text.length - 1);
    t.same(await race(poor.key, 2, text), [200, 402], 'one of two');
  }
});

t.test(
  'a request ends when its key is revoked, and costs what was heard; the next one gets 401',
  async (t) => {
    const account = await open(1_000_000);
    const text = proseOf(200_000);
    let revoked = false;
    const heard = await listen(port, {
      path: '/v1/tts/stream',
      key: account.key,
      text,
      onLetters: () => {
        if (!revoked) void operate(dataDir, (administration) => administration.revoke(account.key));
        revoked = true;
      },
    });
    t.equal(heard.complete, false);
    t.match(await listen(port, { path: '/v1/tts', key: account.key, text }), { status: 401 });
    await until(() => chargeOf(heard.requestId) >= heard.letters);
    t.ok(
      chargeOf(heard.requestId) < text.length,
      `${chargeOf(heard.requestId)} of ${text.length} characters`,
    );
  },
);

t.test('a usage report of another process agrees while the service runs', async (t) => {
  const account = await open(5_000);
  const text = proseOf(600);
  await listen(port, { path: '/v1/tts', key: account.key, text });
  await balanceBecomes(t, account, 5_000 - text.length, 'charged');
  const args = ['--account', account.name, '--since', '5m', '--json'];
  const { code, stdout } = await runScript('scripts/usage.js', args, { DATA_DIR: dataDir });
  t.equal(code, 0);
  t.match((JSON.parse(stdout) as { accounts: unknown[] }).accounts, [
    {
      account: account.name,
      requests: 1,
      characters: text.length,
      credits: text.length,
      refunded_credits: 0,
      balance: 5_000 - text.length,
      keys: [{ key: account.key.slice(0, 13), requests: 1 }],
    },
  ]);
});

t.test('after all this, every balance is the sum of its ledger entries', (t) => {
  for (const { balance, sum } of balances(dataDir)) t.equal(balance, sum);
  t.equal(service.stderr, '');
  t.end();
});
