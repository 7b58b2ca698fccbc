/** A key that is greedy with bodies and messages: many slow large ones, and ones that are expensive to parse. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { HttpConnection } from '../../rig/http.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { opcodes, encodeFrame, encodeMessage } from '../../rig/socket.js';
import { openSockets, type CountingSocket } from '../floods/counting-socket.js';
import type { Attack } from './attack.js';

const connections = 200;
const pieceBytes = 16 * 1024;
const pieceEveryMs = 200;
const answerMsMax = 60_000;
const unfinishedAtOnce = 60;
const unfinishedBytes = 70_000;
const unfinishedMs = 50;

const headOf = (key: string, bytes: number): string =>
  [
    'POST /v1/tts/stream HTTP/1.1',
    'Host: torture',
    `X-Api-Key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${bytes}`,
    '\r\n',
  ].join('\r\n');

/** Sends valid requests of one MiB, slowly, over many connections at once. */
export const bodiesAttack: Attack = async ({ answers, faults, key, loop, port, voice }) => {
  const json = JSON.stringify({ text: 'Still here.', voice, response_format: 'pcm' });
  const body = Buffer.from(json.padEnd(limits.bodyBytesMax));
  loop(connections, async () => {
    const client = new RawConnection({ port });
    const isOver = (): boolean => client.isWhole || (client.status !== null && client.status !== '200');
    client.write(headOf(key, body.length));
    for (let at = 0; at < body.length && !isOver(); at += pieceBytes) {
      client.write(body.subarray(at, at + pieceBytes));
      await sleep(pieceEveryMs);
    }
    const endMs = performance.now() + answerMsMax;
    while (!isOver() && !client.isClosed && performance.now() < endMs) await sleep(20);
    const status = client.status ?? 'nothing';
    answers.add(status);
    if (!['200', '429', '503'].includes(status)) faults.push(`a body was answered ${status}`);
    if (status === '200' && !client.isWhole) faults.push('a stream broke off');
    client.reset();
    // A refused body is not sent again at once: the attack is on memory.
    if (status === '503') await sleep(pieceEveryMs);
  });
  // Half of the bodies are there.
  await sleep((pieceEveryMs * body.length) / pieceBytes / 2);
  return () => {
    if (answers.of('200') === 0) faults.push('no request was served');
  };
};

const filled = (unit: string, bytes: number): string => unit.repeat(Math.floor(bytes / unit.length));
const MiB = 1024 * 1024;
const keysOf = (bytes: number): string =>
  `{${Array.from({ length: Math.floor(bytes / 11) }, (_, i) => `"${i.toString(36).padStart(5, '0')}":0`).join()}}`;

/**
 * Sends what is expensive to look at, over WebSockets and over HTTP, each after the answer to the one before; and beginnings of
 * large bodies.
 */
export const parsingAttack: Attack = async ({ answers, faults, key, loop, port }) => {
  const bytes = limits.socketMessageBytesMax - 32;
  const messages = [
    encodeFrame(Buffer.from(`{"x":${filled('[', bytes)}`), { opcode: opcodes.text }),
    encodeFrame(Buffer.from(`{"x":[${filled('{},', bytes)}0]}`), { opcode: opcodes.text }),
    encodeFrame(Buffer.from(keysOf(bytes)), { opcode: opcodes.text }),
    encodeFrame(Buffer.from(`{"send_text":"${filled('\\u0061', bytes)}"}`), { opcode: opcodes.text }),
    encodeMessage({ send_text: filled('é ', limits.socketTextBytesMax), context_id: 'nobody' }),
  ];
  const bodies = [
    keysOf(MiB - 16),
    `{"text":${filled('[', MiB - 16)}`,
    `{"text":[${filled('1e9,', MiB - 32)}0]}`,
  ];
  const requests = bodies.map((body) =>
    Buffer.concat([Buffer.from(headOf(key, Buffer.byteLength(body))), Buffer.from(body)]),
  );
  const say = async (socket: CountingSocket, message: Buffer): Promise<void> => {
    const before = socket.of('error');
    socket.write(message);
    if (await socket.until('error', before + 1, answerMsMax)) answers.add('error frame');
    else {
      faults.push(`a message without an answer: ${socket.end ?? 'the socket is open'}`);
      await sleep(1_000);
    }
  };
  const ask = (connection: HttpConnection, request: Buffer): Promise<void> =>
    new Promise((resolve) => {
      connection.request(request, {
        onHead: (status) => {
          answers.add(`${status}`);
          if (![400, 422, 503].includes(status)) faults.push(`a body was answered ${status}`);
        },
        onBody: () => undefined,
        onEnd: resolve,
        onError: (error) => {
          faults.push(`a request without an answer: ${error.message}`);
          void sleep(1_000).then(resolve);
        },
      });
    });
  const kept = Array.from({ length: 8 }, () => new HttpConnection({ port }));
  const sockets = await openSockets(port, [key], 8);
  let turn = 0;
  loop(8, (i) => say(sockets[i]!, messages[turn++ % messages.length]!));
  loop(8, (i) => ask(kept[i]!, requests[turn++ % requests.length]!));
  loop(unfinishedAtOnce, async () => {
    const client = new RawConnection({ port });
    client.write(Buffer.concat([Buffer.from(headOf(key, MiB)), Buffer.alloc(unfinishedBytes, 'a')]));
    await sleep(unfinishedMs);
    client.reset();
  });
  await sleep(500);
  return () => {
    for (const socket of sockets) socket.close();
  };
};
