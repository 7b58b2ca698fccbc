/** The console's numbers are those of `npm run usage`. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { UsageRow } from '../../src/console/contract.js';
import { limits } from '../../src/limits.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { createKeys } from '../../scripts/operator.js';
import { usageReport } from '../../scripts/usage.js';
import { ConsoleClient } from '../support/console-client.js';
import { HOUR_MS } from '../store/random-entries.js';
import { runner } from '../support/run-command.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { listen, proseOf } from '../support/speech-oracle.js';

interface Reported {
  readonly accounts: readonly {
    readonly account: string;
    readonly balance: number;
    readonly keys: readonly {
      readonly key: string;
      readonly requests: number;
      readonly characters: number;
      readonly credits: number;
      readonly refunded_credits: number;
      readonly audio_seconds: number;
    }[];
  }[];
}

t.test('usage in the console equals `npm run usage`, to the character', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const { dataDir, port } = service;
  const [one = '', two = ''] = await createKeys(dataDir, [
    ['ada', 50_000],
    ['bell', null],
  ]);
  const operator = await ConsoleClient.claim(service);
  const accounts = await operator.call('accounts', {});
  const ada = accounts.find(({ name }) => name === 'ada');
  const accountId = ada?.accountId ?? 0;
  for (const key of [one, two])
    for (const length of [40, 1_300])
      await listen(port, { path: '/v1/tts/stream', key, text: proseOf(length) });
  await listen(port, { path: '/v1/tts', key: one, text: `${proseOf(1_500)} Then !throw it breaks.` });
  const text = proseOf(70);
  const speak = async () => {
    const spoken = await operator.post(`/api/v1/tts/stream?accountId=${accountId}`, {
      ...{ text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } },
    });
    t.equal(spoken.status, 200);
    await spoken.arrayBuffer();
  };
  await speak();

  const usage = runner(usageReport, dataDir);
  const report = async () => JSON.parse((await usage('--json')).stdout) as Reported;
  const charged = 2 * (40 + 1_300) + text.length;
  const totalOf = (reported: Reported) =>
    reported.accounts.flatMap(({ keys }) => keys).reduce((sum, key) => sum + key.characters, 0);
  // The file that failed counts in the sum, too: what was spoken last must be there.
  const isAll = (reported: Reported) =>
    totalOf(reported) >= charged &&
    reported.accounts
      .flatMap(({ keys }) => keys)
      .some(({ key, characters }) => key === 'Playground' && characters > 0);
  t.ok(await until(async () => isAll(await report())), 'all of it is in the store');
  const reported = await report();

  for (const step of ['hour', 'day'] as const) {
    const { rows } = await operator.call('usage', { accountId: null, fromMs: 0, toMs: Date.now() + 1, step });
    const sums = new Map<string, ReturnType<typeof sumOf>>();
    const sumOf = (sum: Omit<Reported['accounts'][number]['keys'][number], 'key'>, row: UsageRow) => ({
      requests: sum.requests + row.requests,
      characters: sum.characters + row.characters,
      credits: sum.credits + row.credits,
      refunded_credits: sum.refunded_credits + row.refunded,
      audio_seconds: (1_000 * sum.audio_seconds + row.audioMs) / 1_000,
    });
    const none = { requests: 0, characters: 0, credits: 0, refunded_credits: 0, audio_seconds: 0 };
    for (const row of rows) sums.set(row.key, sumOf(sums.get(row.key) ?? none, row));
    for (const { key, ...numbers } of reported.accounts.flatMap(({ keys }) => keys)) {
      const { requests, characters, credits, refunded_credits, audio_seconds } = numbers;
      const expected = { requests, characters, credits, refunded_credits, audio_seconds };
      t.strictSame(sums.get(key) ?? none, expected, `${step}: ${key}`);
    }
    t.strictSame([...new Set(rows.map(({ voice }) => voice))], ['wren']);
    t.ok(sums.has('Playground'));
  }

  const file = async () => {
    const csv = await (
      await operator.ask(`/api/usage.csv?fromMs=0&toMs=${Date.now() + HOUR_MS}&step=day`)
    ).text();
    const lines = csv.trimEnd().split('\r\n').slice(1);
    return lines.map((line) => line.split(','));
  };
  const records = await file();
  for (const { account, keys } of reported.accounts)
    for (const { key, ...numbers } of keys) {
      const own = records.filter(([, ofAccount, ofKey]) => ofAccount === account && ofKey === key);
      const sum = (column: number) => own.reduce((total, cells) => total + Number(cells[column]), 0);
      t.strictSame(
        [sum(5), sum(6), sum(7), sum(8), sum(9).toFixed(3)],
        [
          ...[numbers.requests, numbers.characters, numbers.credits, numbers.refunded_credits],
          numbers.audio_seconds.toFixed(3),
        ],
        `the file: ${account}, ${key}`,
      );
    }
  const [account] = reported.accounts.filter((found) => found.account === 'ada');
  const balances = await operator.call('balance', { accountId });
  t.equal(balances[0]?.balance, account?.balance);
  t.match(balances.at(-1), { kind: 'grant', amount: 50_000, balance: 50_000 });

  await t.test('the file waits for what was just spoken', async (t) => {
    const total = async () => (await file()).reduce((sum, cells) => sum + Number(cells[6]), 0);
    const before = await total();
    const database = openExisting(dataDir, limits);
    database.exec('BEGIN IMMEDIATE'); // the ledger's commit waits
    await speak();
    const after = total();
    await sleep(200);
    database.exec('COMMIT');
    database.close();
    t.equal(await after, before + text.length);
  });

  await t.test('more rows than one answer has: all of them are in the file', async (t) => {
    const database = openExisting(dataDir, limits);
    // Hours of long ago, without the ledger, whose triggers would take long.
    database.exec(`
      INSERT INTO usage_hours
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 11000)
      SELECT api_keys.id, n, 'wren', 1, 2, 3, 0, 4000, n * 3600000, n * 3600000
      FROM numbers, api_keys WHERE prefix = '${one.slice(0, 13)}'
    `);
    database.close();
    const question = { accountId, fromMs: 0, toMs: 12_000 * HOUR_MS, step: 'hour' } as const;
    const { rows, next } = await operator.call('usage', question);
    t.ok(rows.length <= 1_000);
    t.ok(next!.atMs >= rows.at(-1)!.atMs);
    const query = `accountId=${accountId}&fromMs=0&toMs=${question.toMs}&step=hour`;
    const csv = await operator.ask(`/api/usage.csv?${query}`);
    const lines = (await csv.text()).trimEnd().split('\r\n').slice(1);
    t.equal(new Set(lines).size, 11_000);
    t.match(lines.at(-1), '1971-04-04T08:00:00.000Z');
    const head = await operator.ask(`/api/usage.csv?${query}`, { method: 'HEAD' });
    t.equal(head.headers.get('content-type'), 'text/csv; charset=utf-8');
  });

  await t.test('files that are read slowly have a bound, and come whole', async (t) => {
    const database = openExisting(dataDir, limits);
    // More bytes than the kernel takes.
    database.exec(`
      INSERT INTO usage_hours
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 80000)
      SELECT api_keys.id, n + 11000, '${'v'.repeat(64)}', 1, 2, 3, 0, 4000, n * 3600000, n * 3600000
      FROM numbers, api_keys WHERE prefix = '${one.slice(0, 13)}'
    `);
    database.close();
    const member = await operator.invited(accountId, 'mia');
    const query = `accountId=${accountId}&fromMs=0&toMs=${200_000 * HOUR_MS}&step=hour`;
    const ask = async (client: ConsoleClient): Promise<Response> => client.ask(`/api/usage.csv?${query}`);
    const open: Response[] = [];
    let answer = await ask(member);
    for (; answer.status === 200 && open.length < 20; answer = await ask(member)) open.push(answer);
    t.equal(answer.status, 503);
    t.match(await answer.json(), { code: 'unavailable' });
    const wrong = await member.ask('/api/usage.csv?step=day');
    t.equal(wrong.status, 400, 'what is wrong with a question does not wait for room');
    t.equal((await member.ask(`/api/usage.csv?${query}`, { method: 'HEAD' })).status, 200, 'nor a head');
    t.equal(open.length, limits.answerBytesInFlightMax / 2 / limits.fileAnswerBytes, 'half of all');
    const linesOf = async (response: Response): Promise<number> =>
      (await response.text()).split('\r\n').length;
    const lines = await linesOf(await ask(operator));
    t.ok(lines > 91_000, 'an operator gets the file');
    t.equal(await linesOf(open.shift()!), lines, 'and so does who began to read later');
    const again = await ask(member);
    t.equal(again.status, 200, 'then there is room for another');
    for (const response of [again, ...open]) await response.body?.cancel();
  });
});
