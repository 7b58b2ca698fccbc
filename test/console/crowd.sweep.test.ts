/** What one member may hold of the console's connections: the others are for operators. */
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { ConsoleClient, PASSWORD } from '../support/console-client.js';
import { answerTo, isOpen, openFrom } from '../support/many-connections.js';
import { SCRIPTED, startService, until } from '../support/service.js';

const SESSIONS = 4;
const { consoleConnectionsMax } = limits;

// So little memory that one address could fill what bodies may take.
const env = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', MEMORY_MAX_MIB: '1150' };
const service = await startService(t, env, SCRIPTED);
const { consolePort } = service;
const operator = await ConsoleClient.claim(service);
const { accountId } = await operator.call('createAccount', { name: 'own', credits: null });
// Sign-ins and invitations of an address have a rate.
const max = await operator.invited(accountId, 'max');
const mia = await operator.invited(accountId, 'mia');
const moe = await operator.invited(accountId, 'moe');
const call = Buffer.from(
  `POST /api/accounts HTTP/1.1\r\nhost: ${new URL(operator.url).host}\r\ncookie: ${operator.cookie}\r\n` +
    `origin: ${operator.url}\r\nsec-fetch-site: same-origin\r\n` +
    'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
);
/** An operator's calls, each on a new connection. */
const operatorIsServed = async (t: Test): Promise<void> => {
  for (let index = 0; index < 3; index++) {
    const [socket] = await openFrom(t, consolePort, '127.0.0.77', 1);
    t.equal(await answerTo(socket!, call), 'HTTP/1.1 200');
    socket!.destroy();
  }
};

const isRefused = async (client: ConsoleClient): Promise<boolean> => {
  const answer = await client.post('/api/session', {});
  await answer.text();
  return answer.status === 429;
};

/** Runs `work` while a client calls without a pause. */
const whileCalling = async (client: ConsoleClient, work: () => Promise<void>): Promise<void> => {
  let isOver = false;
  const flood = async (): Promise<void> => {
    while (!isOver) await isRefused(client);
  };
  // So many that a busy machine, too, makes more calls than a member may.
  const floods = Array.from({ length: 8 }, flood);
  try {
    await Promise.race([work(), ...floods]);
  } finally {
    isOver = true;
    await Promise.all(floods);
  }
};

t.test('a member with many sessions and WebSockets leaves the console to operators', async (t) => {
  const sessions = [max];
  while (sessions.length < SESSIONS) {
    const session = new ConsoleClient(consolePort);
    await session.call('signIn', { name: 'max', password: PASSWORD });
    sessions.push(session);
  }
  const open: Awaited<ReturnType<ConsoleClient['openSocket']>>[] = [];
  let refused = 0;
  for (let index = 0; index < consoleConnectionsMax / 2; index++)
    await sessions[index % SESSIONS]!.openSocket(accountId).then(
      (socket) => open.push(socket),
      () => refused++,
    );
  await operatorIsServed(t);
  t.comment(`${open.length} WebSockets are open, ${refused} were refused`);
  t.equal(open.length, (consoleConnectionsMax * 3) / 8, 'half of what streams may have');
  open[0]!.close();
  await open[0]!.closing();
  const isBack = (): Promise<boolean> =>
    max.openSocket(accountId).then(
      ({ ws }) => {
        ws.terminate();
        return true;
      },
      () => false,
    );
  t.ok(await until(isBack), 'a WebSocket that has closed leaves its place');
  const ofOperator = await operator.openSocket(accountId);
  t.pass('an operator speaks as well');
  for (const socket of [ofOperator, ...open]) socket.ws.terminate();
});

t.test('a member who keeps connections after long answers leaves the console to operators', async (t) => {
  const ask = Buffer.from(
    `GET /api/administration.json HTTP/1.1\r\nhost: ${new URL(mia.url).host}\r\n` +
      `cookie: ${mia.cookie}\r\nsec-fetch-site: same-origin\r\n\r\n`,
  );
  const sockets = [];
  for (let index = 0; index < consoleConnectionsMax; index++) {
    const [socket] = await openFrom(t, consolePort, '127.0.0.9', 1);
    sockets.push(socket!);
    await answerTo(socket!, ask);
  }
  t.comment(`${sockets.filter(isOpen).length} connections are open`);
  await operatorIsServed(t);
});

t.test('unfinished bodies of one address keep out neither users nor sign-ins', async (t) => {
  const unfinished = (bytes: number): Buffer =>
    Buffer.from(
      `POST /api/session HTTP/1.1\r\nhost: ${new URL(mia.url).host}\r\ncontent-type: application/json\r\n` +
        `content-length: ${bytes}\r\n\r\n${' '.repeat(bytes - 1)}`,
    );
  const sockets = await openFrom(t, consolePort, '127.0.0.10', 40);
  for (const socket of sockets) socket.write(unfinished(limits.consoleBodyBytesMax));
  for (const socket of await openFrom(t, consolePort, '127.0.0.10', 8)) socket.write(unfinished(4_096));
  const refused = (): Promise<number> =>
    service.metric('syrinx_refusals_total', { reason: 'bodiesOfAccountExhausted' });
  t.ok(await until(async () => (await refused()) > 0), 'longer ones are refused');
  await new ConsoleClient(consolePort).call('signIn', { name: 'mia', password: PASSWORD });
  await operator.call('accounts', {});
  const long = JSON.stringify({ text: 'Hi.', voice: 'wren' }) + ' '.repeat(8_000);
  const answer = await mia.post(`/api/v1/tts?accountId=${accountId}`, long);
  t.equal(answer.status, 200, 'a user speaks in the playground');
  await answer.arrayBuffer();
  for (const socket of sockets) socket.destroy();
});

t.test('WebSockets with a made-up cookie take nothing of the long messages of users', async (t) => {
  t.ok(
    await until(async () => (await service.metric('syrinx_sockets')) === 0),
    'those of other tests are closed',
  );
  const sockets = await openFrom(t, consolePort, '127.0.0.11', 64);
  const [name] = mia.cookie.split('=');
  const handshake = Buffer.from(
    `GET /api/socket?accountId=${accountId} HTTP/1.1\r\nhost: ${new URL(mia.url).host}\r\norigin: ${mia.url}\r\n` +
      `cookie: ${name}=${'A'.repeat(43)}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${'A'.repeat(22)}==\r\n\r\n`,
  );
  const answers = await Promise.all(sockets.map((socket) => answerTo(socket, handshake)));
  t.comment(`${answers.filter((answer) => answer === 'HTTP/1.1 101').length} of 64 are open`);
  t.ok(answers.includes('HTTP/1.1 101'));
  const socket = await mia.openSocket(accountId);
  socket.ws.send(
    `${' '.repeat(limits.socketShortMessageBytesMax)}${JSON.stringify({ context_id: 'long', cancel_context: true })}`,
  );
  t.ok(await socket.frame(({ context_id: id }) => id === 'long'), 'a user sends a long message');
  socket.ws.terminate();
});

t.test('a member who signs in again may not call more often, and keeps no other from calling', async (t) => {
  const again = new ConsoleClient(consolePort);
  await again.call('signIn', { name: 'moe', password: PASSWORD });
  await whileCalling(moe, async () => {
    t.ok(await until(() => isRefused(moe)), 'its session is refused');
    // Fewer than a session with a rate of its own could make at once.
    const most = limits.consoleCallsAtOnceMax - 50;
    let calls = 0;
    while (calls < most && !(await isRefused(again))) calls++;
    t.ok(calls < most, `and so is its other one, after ${calls} calls`);
    for (const client of [mia, operator])
      for (let index = 0; index < 5; index++) t.notOk(await isRefused(client));
  });
});

/** Calls without a session use up the rate of their address. Meanwhile those who are signed in are served. */
const areServedMeanwhile = async (t: Test, clients: readonly ConsoleClient[]): Promise<void> => {
  const stranger = new ConsoleClient(Number(new URL(clients[0]!.url).port));
  await whileCalling(stranger, async () => {
    t.ok(await until(() => isRefused(stranger)), 'the address is refused');
    for (const client of clients)
      for (let index = 0; index < 5; index++) t.notOk(await isRefused(client), 'who is signed in is served');
    t.ok(await until(() => isRefused(stranger)), 'and the address still is refused');
  });
};

t.test('calls without a session leave those who are signed in at the same address alone', async (t) => {
  // After a restart, sessions are in the store only. With the first call, each is in memory, too.
  service.signal('SIGTERM');
  await service.exited;
  const next = await startService(t, { ...env, DATA_DIR: service.dataDir }, SCRIPTED);
  const again = [operator, mia].map(({ cookies }) => {
    const client = new ConsoleClient(next.consolePort);
    for (const [name, value] of cookies) client.cookies.set(name, value);
    return client;
  });
  await areServedMeanwhile(t, again);
});
