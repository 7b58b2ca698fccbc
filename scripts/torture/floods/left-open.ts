/** Connections that are opened and left: not a byte is ever sent. */
import { type Socket, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from '../scenario.js';
import { TortureService } from '../service.js';

/** The library gives a connection without a request ten seconds, in steps of four. */
const closedMsMax = 30_000;

export const leftOpen: Scenario = {
  name: 'left-open',
  about: 'connections opened and left, not a byte sent: the service closes them',
  defaultCount: 1_000,
  async run({ count, progress }) {
    const service = await TortureService.start();
    const connections = new Set<Socket>();
    try {
      await sleep(500);
      const filesBefore = service.openFiles;
      let refused = 0;
      for (let i = 0; i < count; i++) {
        const socket = connect({ host: '127.0.0.1', port: service.port });
        connections.add(socket);
        socket.on('error', () => refused++);
        // Read, or its end is not seen.
        socket.resume();
        socket.on('close', () => connections.delete(socket));
      }
      const startedMs = performance.now();
      const elapsedMs = (): number => performance.now() - startedMs;
      while (connections.size > 0 && elapsedMs() < closedMsMax) {
        progress(`${String(connections.size)} connections are still open`);
        await sleep(100);
      }
      const seconds = (elapsedMs() / 1000).toFixed(1);
      const left = connections.size;
      const answer = await fetch(`http://127.0.0.1:${String(service.port)}/readyz`);
      await answer.arrayBuffer();
      const held = left === 0 && refused === 0 && answer.status === 200 && service.faultCount === 0;
      const outcome =
        left === 0
          ? `all closed by the service within ${seconds} s; ${String(filesBefore)} files open before, ` +
            `${String(service.openFiles)} after`
          : `${String(left)} still open after ${seconds} s`;
      return [
        { fault: 'connections opened and left', injected: 'TCP connect, nothing sent', count, outcome, held },
      ];
    } finally {
      for (const socket of connections) socket.destroy();
      await service.stop();
    }
  },
};
