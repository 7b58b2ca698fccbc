/** Services on one PostgreSQL: credit, revocation, kills and cuts. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { keys as keysProgram } from '../../scripts/keys.js';
import { store as storeProgram } from '../../scripts/store.js';
import { isNight } from '../fuzz/check.js';
import { memoryFolder } from '../store/support.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import { runner } from '../support/run-command.js';
import {
  type Environment,
  freePort,
  openStream,
  pause,
  prose,
  SCRIPTED,
  spawnService,
  type TestService,
  until,
} from '../support/service.js';
import { openNative } from '../support/socket-client.js';
import { listen, proseOf } from '../support/speech-oracle.js';
import { WyomingClient } from '../support/wyoming-client.js';
import { audioMsOf } from '../../scripts/rig/wyoming.js';

const PATH = '/v1/tts';

if (hasPostgres()) {
  const server = await startPostgres();
  t.teardown(() => server.stop());

  const { name, url } = await server.database();
  const env = { STORE_URL: url, CONSOLE_PORT: 'off' };
  const folder = memoryFolder(t);
  const keys = runner(keysProgram, folder, env);
  const store = runner(storeProgram, folder, env);

  const hosts: TestService[] = [];
  const spawnHost = (more: Environment = {}): TestService => {
    const host = spawnService(t, { ...env, ...more }, SCRIPTED);
    hosts.push(host);
    return host;
  };
  const startHost = async (more: Environment = {}): Promise<TestService> => {
    const host = spawnHost(more);
    await host.listening();
    return host;
  };
  const alive = () => hosts.filter(({ exit }) => exit === null);
  /** Of the hosts that earlier tests left alive, and more if these are not enough. */
  const living = async (count: number): Promise<TestService[]> => {
    while (alive().length < count) await startHost();
    return alive().slice(0, count);
  };

  const knows = (service: TestService, key: string): Promise<boolean> =>
    until(async () => (await service.get('/v1/tts/speakers', { 'x-api-key': key })).status === 200);
  /** A key that all hosts know, of a new account; `null`: it is not metered. */
  const keyOf = async (account: string, credits: number | null): Promise<string> => {
    const metered = credits === null ? [] : ['--credits', String(credits)];
    const key = (await keys('create', '--account', account, ...metered)).stdout.trim();
    for (const host of alive()) t.ok(await knows(host, key));
    return key;
  };
  const balance = async (account: string): Promise<number> => {
    const [row] = await server.execute(
      name,
      `SELECT balance::int FROM syrinx.accounts WHERE name = '${account}'`,
    );
    return Number(row?.['balance']);
  };
  /** Credits of an account that hosts have reserved. */
  const reserved = async (account: string): Promise<number> => {
    const text = `SELECT sum(reserved)::int AS reserved FROM syrinx.reservations
      JOIN syrinx.accounts ON id = account_id WHERE name = '${account}'`;
    const [row] = await server.execute(name, text);
    return Number(row?.['reserved']);
  };

  /** The number of a service among the writers. */
  const writerOf = async (service: TestService): Promise<string> => {
    const { stdout } = await store('writers');
    const line = stdout.split('\n').find((each) => each.includes(`:${service.pid} `)) ?? '';
    return /\d+/.exec(line)?.[0] ?? '';
  };

  /** The entries in the files of a journal, without a line that is being written. */
  const entriesIn = (folder: string): { readonly entry: number; readonly amount: number }[] =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.log'))
      .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1))
      .map((line) => JSON.parse(line.slice(9)) as { entry: number; amount: number });

  const chargeOf = (entries: ReturnType<typeof entriesIn>): number =>
    entries.reduce((sum, { amount }) => sum - amount, 0);

  /** What the journals of a service have: an entry is there a little later than it is queued. */
  const journalled = ({ dataDir }: TestService) => {
    const folder = join(dataDir, 'journal');
    return readdirSync(folder).flatMap((writer) => entriesIn(join(folder, writer)));
  };

  const ask = (service: TestService, key: string, text: string) =>
    listen(service.port, { path: PATH, key, text });

  t.test('hosts that live', async (t) => {
    await living(2);
    await keyOf('kitchen', 300);
    const kitchen = await startHost({ WYOMING_PORT: '0', WYOMING_ACCOUNT: 'kitchen' });
    const services = alive();

    await t.test(
      'the credit of an account is spent on any host, to the last one and not beyond',
      async (t) => {
        const key = await keyOf('ada', 300);
        const text = 'a'.repeat(20);
        const counts = new Map<number, number>();
        // A busy machine may answer 503 after the wait: the client then tries again.
        for (let round = 0; round < 100 && (counts.get(402) ?? 0) < 3; round += 1) {
          const answers = await Promise.all(
            services.flatMap((service) => [ask(service, key, text), ask(service, key, text)]),
          );
          for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
        }
        t.comment([...counts].map(([status, count]) => `${status}: ${count}`).join(', '));
        t.equal(counts.get(200), 15, 'each credit is spent once, wherever it was');
        t.ok((counts.get(402) ?? 0) >= 3);
        t.ok(await until(async () => (await balance('ada')) === 0));
      },
    );

    await t.test('speech of an account that is not metered reserves no credit', async (t) => {
      const key = await keyOf('free', null);
      t.match(await ask(kitchen, key, 'a'.repeat(100)), { status: 200 });
      t.ok(await until(async () => (await balance('free')) === -100));
      const ofFree =
        "SELECT 1 FROM syrinx.reservations JOIN syrinx.accounts a ON a.id = account_id WHERE a.name = 'free'";
      t.same(await server.execute(name, ofFree), []);
    });

    for (const isAnnounced of [true, false])
      await t.test(
        `a revocation that is ${isAnnounced ? '' : 'not '}announced reaches each host, and its open WebSockets`,
        async (t) => {
          const announce = (how: string) =>
            server.execute(name, `ALTER TABLE syrinx.api_keys ${how} TRIGGER key_is_announced`);
          if (!isAnnounced) await announce('DISABLE');
          t.teardown(() => announce('ENABLE'));
          const key = await keyOf(isAnnounced ? 'bell' : 'cleo', 300);
          const sockets = await Promise.all(services.map(({ port }) => openNative(port, key)));
          const closedAtMs = Promise.all(
            sockets.map(async (socket) => {
              t.match(await socket.closing(), { code: 1008 });
              return performance.now();
            }),
          );
          t.match(await keys('revoke', key), { status: 0 });
          const revokedAtMs = performance.now();
          const closedMs = Math.max(...(await closedAtMs)) - revokedAtMs;
          t.comment(`the last one is closed after ${Math.round(closedMs)} ms`);
          t.ok(closedMs < 20_000);
          for (const service of services)
            t.equal((await service.get('/v1/tts/speakers', { 'x-api-key': key })).status, 401);
        },
      );

    await t.test('text that comes word by word over Wyoming is reserved, spoken and charged', async (t) => {
      const client = await WyomingClient.open(kitchen.dialectPorts['wyoming'] ?? 0);
      t.teardown(() => client.close());
      const words = prose(3).match(/\S+ /g) ?? [];
      const speakWords = (): void => {
        client.send('synthesize-start');
        // All at once: most arrive while an earlier word waits for its credit.
        for (const text of words) client.send('synthesize-chunk', { text });
        client.send('synthesize-stop');
      };
      speakWords();
      const spoken = await client.until('synthesize-stopped');
      t.ok(audioMsOf(spoken) > 6_000, `${audioMsOf(spoken)} ms`);
      t.ok(await until(async () => (await balance('kitchen')) === 300 - prose(3).length));
      t.ok(await until(async () => !((await reserved('kitchen')) > 0)));
      speakWords();
      t.match((await client.untilClosed()).at(-1), { type: 'error' });
      t.ok((await balance('kitchen')) >= 0);
    });
  });

  t.test(
    'the credit of a killed host is not spent by others until it returns, or is declared dead',
    async (t) => {
      const [first, second] = (await living(2)) as [TestService, TestService];
      const open = proseOf(20_000);
      /** An open request reserves what it has not charged. */
      const kill = async (service: TestService, account: string, key: string): Promise<void> => {
        t.equal(await reserved(account), 0);
        await openStream(service, open, key);
        await service.kill();
        t.ok((await reserved(account)) > 10_000);
      };
      const key = await keyOf('dora', 21_000);
      t.match(await ask(first, key, 'a'.repeat(100)), { status: 200 });
      t.ok(await until(async () => (await balance('dora')) === 20_900));
      await kill(first, 'dora', key);
      const text = 'b'.repeat(2_000);
      t.equal((await ask(second, key, text)).status, 402, 'an open request has the credit');
      const returned = await startHost({ DATA_DIR: first.dataDir });
      await returned.untilLogged('the journal of an earlier process was sent');
      t.ok(await until(async () => (await ask(second, key, text)).status === 200));
      const other = await keyOf('emil', 21_000);
      await kill(returned, 'emil', other);
      t.equal((await ask(second, other, text)).status, 402);
      const dead = await writerOf(returned);
      t.match(await store('declare-dead', dead), {
        status: 0,
        stdout: /credits of it can be spent by others/,
      });
      t.match(await store('declare-dead', dead), { status: 1, stderr: /no writer .* that lives/ });
      t.ok(await until(async () => (await ask(second, other, text)).status === 200));
    },
  );

  t.test(
    'a host that is killed while the database is away waits for it at the next start, and then charges what it spoke',
    async (t) => {
      const [service, other] = (await living(2)) as [TestService, TestService];
      const key = await keyOf('fred', 5_000);
      const text = proseOf(1_500);
      const before = chargeOf(journalled(service));
      t.teardown(() => server.run());
      const heard = await listen(service.port, {
        ...{ path: '/v1/tts/stream', key, text },
        onBegun: () => server.signal('SIGKILL'),
      });
      t.match(heard, { status: 200, complete: true, letters: text.length });
      t.ok(await until(() => chargeOf(journalled(service)) === before + text.length));
      await service.kill();
      t.match(await other.stop(), { code: 0 });
      const opsPort = await freePort();
      const spawn = () => spawnHost({ DATA_DIR: service.dataDir, OPS_PORT: String(opsPort) });
      const isWaiting = async (): Promise<boolean> => {
        const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => null);
        return answer?.status === 503 && /cannot be reached/.test(await answer.text());
      };

      const stopped = spawn();
      t.ok(await until(isWaiting), 'the reason is in /readyz');
      await stopped.untilLogged('the start waits for the store');
      t.match(await stopped.stop(), { signal: 'SIGTERM' }, 'a stop ends the wait');

      const waiting = spawn();
      t.ok(await until(isWaiting));
      // By night longer than systemd would start it again and again.
      await pause(isNight ? 15_000 : 3_000);
      t.equal(waiting.exit, null);
      await server.run();
      await waiting.listening();
      t.match(await waiting.untilLogged('the journal of an earlier process was sent'), { entries: Number });
      t.equal(await balance('fred'), 5_000 - text.length);
      t.ok(await until(async () => (await ask(waiting, key, 'a'.repeat(100))).status === 200));
      t.ok(await until(async () => (await balance('fred')) === 4_900 - text.length));
    },
  );

  t.test('late entries of a dead host are refused and reported', async (t) => {
    const [first] = (await living(1)) as [TestService];
    const key = await keyOf('gina', 5_000);
    t.match(await ask(first, key, 'a'.repeat(100)), { status: 200 });
    t.ok(
      await until(async () => (await balance('gina')) === 4_900),
      'the database has this entry, and the journal too',
    );
    const before = journalled(first).length;
    t.ok(before > 0);
    const text = proseOf(900);
    const heard = await listen(first.port, {
      ...{ path: '/v1/tts/stream', key, text },
      onBegun: () => server.signal('SIGKILL'),
    });
    t.match(heard, { status: 200, complete: true });
    t.ok(await until(() => journalled(first).length > before));
    const late = journalled(first).at(-1);
    t.equal(late?.amount, -text.length);
    await first.kill();
    await server.run();
    t.match(await store('declare-dead', await writerOf(first)), { status: 0 });
    const returned = await startHost({ DATA_DIR: first.dataDir });
    const line = await returned.untilLogged(
      'ledger entries were refused: their process was declared dead; charge them by hand, from the first one on, then remove the journal',
    );
    t.match(line, { entries: 1, firstEntry: late?.entry, credits: text.length, journal: /\.refused$/ });
    t.equal(await returned.metric('syrinx_ledger_entries_refused_total'), 1);
    t.ok(existsSync(String(line['journal'])), 'the journal is kept');
    t.equal(await balance('gina'), 4_900, 'they are not in the ledger');
    const spent = async () => (await ask(returned, key, 'b'.repeat(4_000))).status === 200;
    t.ok(await until(spent), 'others can spend the credit that it had reserved');
  });

  t.test(
    'a host that is declared dead while it speaks admits nothing more, and reports what must be charged by hand',
    async (t) => {
      const [service] = (await living(1)) as [TestService];
      const key = await keyOf('hugo', null);
      const text = prose(60);
      // It is not read, so it is not spoken to its end.
      const stream = await openStream(service, text, key);
      t.match(await store('declare-dead', await writerOf(service)), { status: 0 });
      t.ok(await until(async () => /declared dead/.test(await service.unreadyReasons())));
      t.equal((await ask(service, key, 'a')).status, 503);
      await stream.rest();
      const message =
        'ledger entries were refused: this process was declared dead; restart it, charge them by hand, from the first one on, then remove the journal';
      const refused = () => service.logged(message).reduce((sum, { credits }) => sum + Number(credits), 0);
      t.ok(await until(async () => refused() - (await balance('hugo')) === text.length));
      const [line] = service.logged(message);
      t.match(await service.stop(), { code: 0 });
      const journal = String(line?.['journal']);
      t.ok(existsSync(journal), journal);
      const toCharge = entriesIn(journal).filter(({ entry }) => entry >= Number(line?.['firstEntry']));
      t.equal(chargeOf(toCharge), refused(), 'the journal has them');
    },
  );
}
