/** A key that is greedy over WebSockets: as many sockets as it gets, as much text, as many frames. */
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultCodecFormat } from '../../../src/api/formats.js';
import { encodeFrame, encodeMessage, encodeStart, opcodes } from '../../rig/socket.js';
import { longText, repeatTo } from '../../rig/texts.js';
import { CountingSocket, openSockets } from '../floods/counting-socket.js';
import type { Attack, AttackParts } from './attack.js';

const dialers = 32;
const socketCount = 9;
const contextsPerSocket = 60;
const charactersPerContext = 50_000;
const answerMsMax = 30_000;

/** Opens sockets without end, and keeps those that it gets. */
export const socketsAttack: Attack = async ({ answers, faults, key, loop, port }) => {
  const open: CountingSocket[] = [];
  loop(dialers, async () => {
    const socket = new CountingSocket(port, key);
    try {
      await socket.opened();
      open.push(socket);
      answers.add('101');
    } catch {
      const answer = /answered HTTP\/1\.1 (\d+)/.exec(socket.end ?? '')?.[1];
      answers.add(answer ?? socket.end ?? 'nothing');
      socket.close();
    }
  });
  while (answers.sum < 2_000) await sleep(20);
  return async () => {
    const answered = await Promise.all(open.map((socket) => socket.caughtUp(answerMsMax)));
    const silent = answered.filter((isAnswered) => !isAnswered).length;
    for (const socket of open) socket.close();
    if (silent > 0) faults.push(`${silent} open sockets do not answer`);
    for (const answer of answers.names)
      if (!['101', '503'].includes(answer)) faults.push(`a handshake ended with ${answer}`);
  };
};

/** Fills nine sockets with contexts, and each context with text. */
const fillSockets = async (
  { answers, faults, key, port, voice }: AttackParts,
  reads: boolean,
): Promise<() => Promise<void>> => {
  const sockets = await openSockets(port, [key], socketCount);
  const send_text = repeatTo(longText, charactersPerContext);
  for (const socket of sockets)
    for (let context = 0; context < contextsPerSocket; context++) {
      socket.start(voice, `${context}`);
      socket.send({ send_text, context_id: `${context}` });
    }
  const finish = async (socket: CountingSocket, i: number): Promise<void> => {
    for (let context = 0; context < contextsPerSocket; context++)
      socket.send({ cancel_context: true, context_id: `${context}` });
    if (!(await socket.caughtUp(answerMsMax)))
      faults.push(`socket ${i} does not answer: ${socket.end ?? 'open'}`);
    const [started, closed] = [socket.of('context_started'), socket.of('context_closed')];
    if (started !== contextsPerSocket || closed !== started)
      faults.push(`socket ${i}: ${started} contexts started, ${closed} closed`);
    // Its slot still speaks, to the end.
    const audio = socket.of('audio_chunk');
    socket.start(voice, 'last');
    socket.send({ send_text: 'Still here.', context_id: 'last' });
    socket.send({ close_context: true, context_id: 'last' });
    const isWhole = await socket.until('context_closed', closed + 1, answerMsMax);
    if (!isWhole || socket.of('audio_chunk') === audio) faults.push(`socket ${i} does not speak`);
    answers.merge(socket.counts);
    answers.merge(socket.errors);
    socket.close();
  };
  if (!reads) for (const socket of sockets) socket.pause();
  return async () => {
    for (const socket of sockets) socket.resume();
    await Promise.all(sockets.map(finish));
  };
};

export const textAttack: Attack = (parts) => fillSockets(parts, true);

/** The same, and reads nothing until the end. */
export const unreadTextAttack: Attack = (parts) => fillSockets(parts, false);

/** Its encoder is costly to make. */
const encoderFormat = defaultCodecFormat('mp3');
/** Each is answered by one message. */
const smallFrames = [
  encodeFrame(Buffer.from('{'), { opcode: opcodes.text }),
  encodeFrame(Buffer.from('{}'), { opcode: opcodes.text }),
  encodeFrame(Buffer.alloc(0), { opcode: opcodes.text }),
  encodeFrame(Buffer.from('['), { opcode: opcodes.binary }),
  encodeMessage({ send_text: ' ', context_id: 'nobody' }),
  encodeMessage({ flush: true, context_id: 'open' }),
];
/** By no message. */
const silentFrames = Array.from({ length: 126 }, (_, bytes) =>
  encodeFrame(Buffer.alloc(bytes), { opcode: bytes % 4 === 3 ? opcodes.pong : opcodes.ping }),
);
const emptyText = encodeMessage({ send_text: '', context_id: 'open' });
const burst = 50;
/** So that the end does not have to wait for long. */
const unansweredMax = 4_000;

/** Sends small frames as fast as they are read: each must be answered once, and flushes in their order. */
export const framesAttack: Attack = async ({ answers, faults, key, loop, port, voice }) => {
  const closes = (turn: number): boolean => turn % 2 === 1;
  const clients = Array.from({ length: socketCount }, (_, i) => {
    const client = { turns: 0, flushed: 0, asked: 1, socket: new CountingSocket(port, key, onMessage) };
    function onMessage(json: string): void {
      const id = /"flush_id":"f(\d+)"/.exec(json)?.[1];
      if (id !== undefined && Number(id) !== client.flushed++)
        faults.push(`socket ${i}: flush ${id} was answered in the place of ${client.flushed - 1}`);
      // Its start was refused, and so its close has one answer only.
      const refused = /unknown context_id: c(\d+)/.exec(json)?.[1];
      if (refused !== undefined && closes(Number(refused))) client.asked--;
    }
    return client;
  });
  // An encoder in mp3 may end with audio.
  const unanswered = ({ asked, socket }: (typeof clients)[number]): number =>
    asked - (socket.counts.sum - socket.of('audio_chunk'));
  await Promise.all(clients.map(({ socket }) => socket.opened()));
  for (const { socket } of clients) socket.start(voice, 'open');
  loop(socketCount, async (i) => {
    const client = clients[i]!;
    await sleep(1);
    if (client.socket.end !== null || unanswered(client) >= unansweredMax) return;
    const frames: Buffer[] = [];
    for (let sent = 0; sent < burst; sent++) {
      const turn = client.turns++;
      const context_id = `c${turn}`;
      const answered = [
        encodeMessage({ flush: true, flush_id: `f${turn}`, context_id: 'nobody' }),
        ...smallFrames,
        encodeStart({ voice, format: encoderFormat }, context_id),
        encodeMessage({ context_id, [closes(turn) ? 'close_context' : 'cancel_context']: true }),
      ];
      // A close also flushes.
      client.asked += answered.length + (closes(turn) ? 1 : 0);
      frames.push(silentFrames[turn % silentFrames.length]!, emptyText, ...answered);
    }
    client.socket.write(Buffer.concat(frames));
  });
  return async () => {
    const endMs = performance.now() + answerMsMax;
    while (performance.now() < endMs && clients.some((client) => unanswered(client) > 0)) await sleep(20);
    for (const [i, client] of clients.entries()) {
      const { socket } = client;
      if (socket.end !== null) faults.push(`socket ${i}: ${socket.end}`);
      const left = unanswered(client);
      if (left !== 0) faults.push(`socket ${i}: ${left} frames without an answer`);
      const [started, closed] = [socket.of('context_started'), socket.of('context_closed')];
      // One stays open.
      if (closed !== started - 1) faults.push(`socket ${i}: ${started} contexts started, ${closed} closed`);
      answers.add('frame', socket.counts.sum);
      socket.close();
    }
  };
};
