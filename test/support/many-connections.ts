/** Many connections of chosen addresses of this machine. */
import { createConnection, type Socket } from 'node:net';
import type { Test } from 'tap';
import { until } from './waiting.js';

/** Clients of one address. */
export const openFrom = async (
  t: Test,
  port: number,
  localAddress: string,
  count: number,
): Promise<Socket[]> => {
  const sockets = Array.from({ length: count }, () => {
    const socket = createConnection({ host: '127.0.0.1', port, localAddress });
    socket.on('error', () => undefined);
    socket.resume();
    return socket;
  });
  t.teardown(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  return sockets;
};

export const isOpen = (socket: Socket): boolean => socket.readyState === 'open';

export const openIn = (sockets: readonly Socket[]): number => sockets.filter(isOpen).length;

/** @returns what has come when the condition holds, or when the connection has ended */
export const answerUntil = async (
  socket: Socket,
  request: Buffer,
  isWhole: (answer: string) => boolean,
): Promise<string> => {
  let answer = '';
  const onData = (bytes: Buffer): void => void (answer += bytes.toString('latin1'));
  socket.on('data', onData);
  socket.write(request);
  await until(() => isWhole(answer) || !isOpen(socket));
  socket.off('data', onData);
  return answer;
};

/** @returns the first line of the answer, up to its status; empty if the connection ended without one */
export const answerTo = async (socket: Socket, request: Buffer): Promise<string> => {
  const answer = await answerUntil(socket, request, (begun) => begun !== '');
  return answer.slice(0, 'HTTP/1.1 200'.length);
};
