/** What a member, or somebody without a session, can do at most: others and the service do not notice. */
import t from 'tap';
import { freePort, SCRIPTED, startService, until } from '../support/service.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';

const KEYS_MAX = 5;
const consolePort = await freePort();
const service = await startService(
  t,
  {
    CONSOLE_PORT: String(consolePort),
    // As behind a proxy, which says where clients are.
    CONSOLE_ORIGIN: `http://127.0.0.1:${consolePort}`,
    KEYS_PER_ACCOUNT: String(KEYS_MAX),
  },
  SCRIPTED,
);
const operator = await ConsoleClient.claim(service);
let accounts = 0;
const withMember = async () => {
  const name = `account ${(accounts += 1)}`;
  const { accountId } = await operator.call('createAccount', { name, credits: 1_000_000 });
  return { accountId, member: await operator.invited(accountId, `member ${accounts}`) };
};

t.test('a member creates keys up to a bound, also by revoking them; other accounts go on', async (t) => {
  const { accountId, member } = await withMember();
  const other = await withMember();
  const question = { accountId, properties: {} };
  const made = [];
  for (let i = 0; i < KEYS_MAX; i++) made.push(await member.call('createKey', question));
  await t.rejects(member.call('createKey', question), /409 conflict: The account has 5 keys, the most/);
  for (const { view } of made.slice(1)) await member.call('revokeKey', { keyId: view.keyId });
  await t.rejects(member.call('createKey', question), /409 conflict: The account got 5 keys in 24 hours/);
  await t.rejects(operator.call('createKey', question), /in 24 hours/, 'whoever asks');
  const { key } = await other.member.call('createKey', { ...question, accountId: other.accountId });
  for (const speaking of [key, made[0]?.key]) {
    const answer = await service.post('/v1/tts', { text: 'Hi.', voice: 'wren' }, { key: speaking ?? '' });
    t.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
});

t.test('a member changes its own limits, and no limit that an operator set', async (t) => {
  const { accountId, member } = await withMember();
  const expiresAtMs = Date.now() + 86_400_000;
  const properties = { creditLimit: 10, voices: ['wren'], expiresAtMs };
  const own = await member.call('createKey', { accountId, properties });
  const given = await operator.call('createKey', { accountId, properties });
  const lifted = { creditLimit: null, voices: null, expiresAtMs: null };
  t.match(await member.call('changeKey', { keyId: own.view.keyId, changes: lifted }), lifted);
  for (const changes of [
    { creditLimit: null },
    { creditLimit: 1_000 },
    { voices: null },
    { expiresAtMs: null },
    { expiresAtMs: expiresAtMs + 1 },
  ])
    await t.rejects(member.call('changeKey', { keyId: given.view.keyId, changes }), /403 forbidden/);
  const changes = { name: 'till', speed: 1.2 };
  t.match(await member.call('changeKey', { keyId: given.view.keyId, changes }), {
    ...properties,
    ...changes,
  });
  await operator.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 7 } });
  await t.rejects(
    member.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 8 } }),
    /An operator set this/,
  );
  await operator.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: null } });
  t.match(await member.call('changeKey', { keyId: own.view.keyId, changes: { creditLimit: 8 } }), {
    creditLimit: 8,
  });
});

const long = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  600,
);

for (const end of ['revoked', 'suspended', 'deleted'] as const)
  t.test(`texts on HTTP of an account that is ${end} end at once`, async (t) => {
    const { accountId } = await withMember();
    const { key, view } = await operator.call('createKey', { accountId, properties: {} });
    const body = { text: long, voice: 'wren' };
    const stream = await service.post('/v1/tts/stream', body, { key });
    const reader = stream.body!.getReader();
    await reader.read();
    const whole = service.post('/v1/tts', body, { key });
    await until(async () => (await service.openContexts()) === 2);
    const startMs = performance.now();
    if (end === 'revoked') await operator.call('revokeKey', { keyId: view.keyId });
    else if (end === 'suspended') await operator.call('suspendAccount', { accountId, suspended: true });
    else await operator.call('deleteAccount', { accountId });
    const cut = (async () => {
      while (!(await reader.read()).done);
    })();
    await t.rejects(cut, 'the stream is cut short');
    const answer = await whole;
    t.equal(answer.status, 401);
    t.strictSame(await answer.json(), { error: 'INVALID_API_KEY' });
    const tookMs = performance.now() - startMs;
    t.comment(`${Math.round(tookMs)} ms`);
    t.ok(tookMs < 10_000, 'long before the texts are spoken');
    await until(async () => (await service.openContexts()) === 0);
  });

t.test('guesses from 120 addresses do not keep the owner with the right password out', async (t) => {
  const { member } = await withMember();
  const name = `member ${accounts}`;
  const signIn = async (address: string, password: string): Promise<number> => {
    const headers = { 'x-forwarded-for': address };
    const browser = new ConsoleClient(consolePort);
    return (await browser.post('/api/signIn', { name, password }, { headers })).status;
  };
  const guess = (i: number) => signIn(`198.51.100.${i}`, 'not the password');
  const guesses = await Promise.all(Array.from({ length: 120 }, (_, i) => guess(i)));
  t.notOk(guesses.includes(200));
  t.equal(await signIn('203.0.113.9', PASSWORD), 200);
  t.ok(member);
});

t.test(
  'guesses that fill the queue of passwords do not keep out a browser that the user has used',
  async (t) => {
    const { member } = await withMember();
    const owner = { name: `member ${accounts}`, password: PASSWORD };
    let guesses = 0;
    const guess = async (): Promise<number> => {
      const n = (guesses += 1);
      const headers = { 'x-forwarded-for': `198.51.${n >> 8}.${n & 255}` };
      const credentials = { name: `user ${n}`, password: 'not the password' };
      return (await new ConsoleClient(consolePort).post('/api/signIn', credentials, { headers })).status;
    };
    for (let i = 0; i < 5; i++) {
      // On a busy machine passwords may be hashed as fast as this process sends them.
      let flood: Promise<number>[] = [];
      let isFull = false;
      while (!isFull) {
        flood = Array.from({ length: 120 }, guess);
        isFull = await Promise.any(
          flood.map(async (status) => (await status) === 503 || Promise.reject(new Error('not yet'))),
        ).catch(() => false);
      }
      const headers = { 'x-forwarded-for': `203.0.113.${i}` };
      t.equal((await member.post('/api/signIn', owner, { headers })).status, 200);
      t.notOk((await Promise.all(flood)).includes(200));
    }
  },
);

t.test('the calls of a member, however long, delay those of others by one of them', async (t) => {
  const { accountId, member } = await withMember();
  const text = 'On 3/4/2024 I paid $1,234.56 for 12 kg. '.repeat(60);
  const gone = new AbortController();
  let answered = 0;
  const said = Array.from({ length: 30 }, async () => {
    const question = { accountId, voice: 'wren', text, normalize: true };
    const answer = await member.post('/api/said', question, { signal: gone.signal });
    if (answer.status === 200) answered++;
  });
  await Promise.race(said);
  const before = answered;
  await operator.call('accounts', {});
  t.ok(answered - before <= 2, `${answered - before} calls of the member before the operator's`);
  gone.abort();
  await Promise.allSettled(said);
});
