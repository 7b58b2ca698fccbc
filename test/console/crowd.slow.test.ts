/** What one member may hold of the console's connections: the others are for operators. */
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';
import { answerTo, isOpen, openFrom } from '../support/many-connections.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

const SESSIONS = 8;
const { consoleConnectionsMax } = limits;

const startConsole = async (t: Test) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'own', credits: null });
  const member = await operator.invited(accountId, 'max');
  const call = Buffer.from(
    `POST /api/accounts HTTP/1.1\r\nhost: ${new URL(operator.url).host}\r\ncookie: ${operator.cookie}\r\n` +
      `origin: ${operator.url}\r\nsec-fetch-site: same-origin\r\n` +
      'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  );
  /** An operator's calls, each on a new connection. */
  const operatorIsServed = async (): Promise<void> => {
    for (let index = 0; index < 10; index++) {
      const [socket] = await openFrom(t, service.consolePort, '127.0.0.77', 1);
      t.equal(await answerTo(socket!, call), 'HTTP/1.1 200');
      socket!.destroy();
    }
  };
  return { service, operator, accountId, member, operatorIsServed };
};

t.test('a member with many sessions and WebSockets leaves the console to operators', async (t) => {
  const { service, operator, accountId, member, operatorIsServed } = await startConsole(t);
  const { consolePort } = service;
  const socketOf = ({ cookie, url }: ConsoleClient) =>
    openWs(consolePort, '', {
      path: `/api/socket?accountId=${accountId}`,
      headers: { cookie, origin: url },
    });
  const sessions = [member];
  while (sessions.length < SESSIONS) {
    const session = new ConsoleClient(consolePort);
    await session.call('signIn', { name: 'max', password: PASSWORD });
    sessions.push(session);
  }
  const open: Awaited<ReturnType<typeof socketOf>>[] = [];
  let refused = 0;
  for (let index = 0; index < consoleConnectionsMax; index++)
    await socketOf(sessions[index % SESSIONS]!).then(
      (socket) => open.push(socket),
      () => refused++,
    );
  await operatorIsServed();
  t.comment(`${open.length} WebSockets are open, ${refused} were refused`);
  t.equal(open.length, (consoleConnectionsMax * 3) / 8, 'half of what streams may have');
  open[0]!.close();
  await open[0]!.closing();
  const isBack = (): Promise<boolean> =>
    socketOf(member).then(
      () => true,
      () => false,
    );
  t.ok(await until(isBack), 'a WebSocket that has closed leaves its place');
  await socketOf(operator);
  t.pass('an operator speaks as well');
});

t.test('a member who keeps connections after long answers leaves the console to operators', async (t) => {
  const { service, member, operatorIsServed } = await startConsole(t);
  const ask = Buffer.from(
    `GET /api/administration.json HTTP/1.1\r\nhost: ${new URL(member.url).host}\r\n` +
      `cookie: ${member.cookie}\r\nsec-fetch-site: same-origin\r\n\r\n`,
  );
  const sockets = [];
  for (let index = 0; index < consoleConnectionsMax; index++) {
    const [socket] = await openFrom(t, service.consolePort, '127.0.0.9', 1);
    sockets.push(socket!);
    await answerTo(socket!, ask);
  }
  t.comment(`${sockets.filter(isOpen).length} connections are open`);
  await operatorIsServed();
});

t.test(
  'a member who signs in again may not call more often, and keeps nobody else from calling',
  async (t) => {
    const { service, operator, accountId, member } = await startConsole(t);
    const other = await operator.invited(accountId, 'mia');
    const again = new ConsoleClient(service.consolePort);
    await again.call('signIn', { name: 'max', password: PASSWORD });
    const isRefused = async (client: ConsoleClient): Promise<boolean> => {
      const answer = await client.post('/api/session', {});
      await answer.text();
      return answer.status === 429;
    };
    let isOver = false;
    const flood = async (): Promise<void> => {
      while (!isOver) await isRefused(member);
    };
    const floods = [flood(), flood()];
    t.ok(await until(() => isRefused(member)), 'its session is refused');
    let calls = 0;
    while (calls < 100 && !(await isRefused(again))) calls++;
    t.ok(calls < 100, `and so is its other one, after ${calls} calls`);
    for (const client of [other, operator])
      for (let index = 0; index < 20; index++) t.notOk(await isRefused(client));
    isOver = true;
    await Promise.all(floods);
  },
);

/** Until it is over, calls without a session use up the rate of the address. */
const startFlood = async (t: Test, consolePort: number): Promise<{ end: () => Promise<void> }> => {
  const stranger = new ConsoleClient(consolePort);
  let isOver = false;
  const flood = async (): Promise<void> => {
    while (!isOver) await (await stranger.post('/api/session', {})).text();
  };
  const floods = [flood(), flood()];
  const isRefused = async (): Promise<boolean> => {
    const answer = await stranger.post('/api/session', {});
    await answer.text();
    return answer.status === 429;
  };
  t.ok(await until(isRefused), 'the address is refused');
  return {
    end: async () => {
      t.ok(await until(isRefused), 'and still is');
      isOver = true;
      await Promise.all(floods);
    },
  };
};

t.test(
  'calls without a session use up the rate of their address, and not that of who is signed in there',
  async (t) => {
    const { service, operator, member } = await startConsole(t);
    const { end } = await startFlood(t, service.consolePort);
    for (let index = 0; index < 20; index++) {
      await operator.call('session', {});
      await member.call('session', {});
    }
    await end();
    service.signal('SIGTERM');
    await service.exited;

    const { dataDir } = service;
    const env = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', DATA_DIR: dataDir };
    const { consolePort } = await startService(t, env, SCRIPTED);
    const again = await startFlood(t, consolePort);
    let refused = 0;
    for (const { cookies } of [operator, member]) {
      const client = new ConsoleClient(consolePort);
      for (const [name, value] of cookies) client.cookies.set(name, value);
      for (let index = 0; index < 20; index++)
        await client.call('session', {}).catch(() => refused++);
    }
    t.equal(refused, 0, 'nor after a restart, that of sessions from before');
    await again.end();
  },
);
