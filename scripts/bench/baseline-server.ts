/**
 * `node:http` and `ws`, sending: what a front thread costs that does nothing else. A process of its own; its parent
 * tells it the frames and the rate, over all sockets that are connected.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

export interface BaselineOrder {
  /** Of one turn: every socket gets them over and over. */
  readonly frames: readonly string[];
  readonly framesPerSecond: number;
  /** Sockets to wait for. */
  readonly sockets: number;
}

/** As often as this what is due is sent. */
const tickMs = 10;

const server = createServer();
const sockets = new WebSocketServer({ server, perMessageDeflate: false });

process.once('message', ({ frames, framesPerSecond, sockets: expected }: BaselineOrder) => {
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
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
process.on('disconnect', () => process.exit(0));
