/** Connections without a key to one listener of a service leave its other listeners, and callers of other addresses, alone. */
import { createConnection, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { percentile } from '../../scripts/rig/statistics.js';
import { SCRIPTED, startService, until } from '../support/service.js';

const service = await startService(
  t,
  { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1', SOCKETS_MAX: '200', OPENAI_PORT: '0', CONSOLE_PORT: '0' },
  SCRIPTED,
);
const publicPort = Number(new URL(service.url).port);
const opsPort = Number(new URL(service.opsUrl).port);
const { consolePort } = service;
const openAiPort = service.dialectPorts['openai'] ?? 0;
/** Of another machine. */
const OTHER = '127.0.0.2';

/** Opens connections that send nothing, from one address. */
const attack = async (t: Test, port: number, count: number): Promise<() => number> => {
  const sockets: Socket[] = [];
  let settled = 0;
  t.teardown(() => sockets.forEach((socket) => socket.destroy()));
  for (let index = 0; index < count; index++) {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.resume();
    for (const event of ['connect', 'error'] as const) socket.once(event, () => settled++);
    sockets.push(socket);
  }
  await until(() => settled >= count);
  return () => sockets.filter(({ readyState }) => readyState === 'open').length;
};

interface Answer {
  /** `null`: none. */
  readonly status: number | null;
  readonly ms: number;
}

/** Asks on a connection of its own. */
const ask = (port: number, path: string, localAddress = OTHER, key = service.key): Promise<Answer> => {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port, localAddress });
    let answer = '';
    const end = (): void => {
      socket.destroy();
      const status = answer === '' ? null : Number(answer.slice(9, 12));
      resolve({ status, ms: performance.now() - startedMs });
    };
    socket.once('data', (bytes) => {
      answer = bytes.toString('latin1');
      end();
    });
    socket.on('error', end);
    socket.on('close', end);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${key}\r\n\r\n`);
  });
};

const askTimes = async (t: Test, times: number, ...question: Parameters<typeof ask>): Promise<void> => {
  const answers: Answer[] = [];
  for (let index = 0; index < times; index++) answers.push(await ask(...question));
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200]);
  t.comment(
    `p95 ${percentile(
      answers.map(({ ms }) => ms),
      0.95,
    ).toFixed(1)} ms`,
  );
};

t.test('300 connections to the port for OpenAI leave callers of the public port alone', async (t) => {
  const held = await attack(t, openAiPort, 300);
  await askTimes(t, 50, publicPort, '/v1/tts/speakers');
  await askTimes(t, 50, openAiPort, '/v1/models');
  t.ok(held() <= 66, `${held()} of 264 are held`);
});

t.test('400 connections to the console leave the console to other addresses', async (t) => {
  const held = await attack(t, consolePort, 400);
  await askTimes(t, 20, consolePort, '/');
  t.equal(held(), 64, 'a quarter');
});

t.test('70 connections to the ops port leave its health reachable, also from the same address', async (t) => {
  const held = await attack(t, opsPort, 70);
  await askTimes(t, 20, opsPort, '/healthz', '127.0.0.1');
  await askTimes(t, 20, opsPort, '/metrics');
  t.ok(held() <= 16, `${held()} are held`);
});
