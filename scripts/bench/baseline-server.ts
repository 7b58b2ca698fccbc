/**
 * `node:http` and `ws`, sending: what a front thread costs that does nothing else. It sends over all sockets that are
 * connected, in a process of its own.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { serveLoad, type LoadProcess } from '../rig/load-process.js';

interface ListenOrder {
  /** Of one utterance: every socket gets them over and over. */
  readonly frames: readonly string[];
  readonly framesPerSecond: number;
  /** Sending begins when so many sockets are connected. */
  readonly sockets: number;
}

/** How often frames that are due are sent. */
const tickMs = 10;

/** @returns its port */
const listen = ({ frames, framesPerSecond, sockets: expected }: ListenOrder): Promise<number> => {
  const server = createServer();
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  // The service has its frames as bytes too.
  const prepared = frames.map((frame) => Buffer.from(frame));
  const clients: WebSocket[] = [];
  let sent = 0;
  const begin = (): void => {
    const startedMs = performance.now();
    setInterval(() => {
      const due = ((performance.now() - startedMs) / 1000) * framesPerSecond;
      for (; sent < due; sent++) {
        const client = clients[sent % clients.length]!;
        client.send(prepared[Math.floor(sent / clients.length) % prepared.length]!, { binary: false });
      }
    }, tickMs);
  };
  sockets.on('connection', (client) => {
    client.on('error', () => client.terminate());
    if (clients.push(client) === expected) begin();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
};

const calls = { listen };
export type Baseline = LoadProcess<typeof calls>;

serveLoad(calls);
