/** A line to a distant client: it passes on bytes and ends after a delay. Otherwise the moment of a race is too short to be hit. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Test } from 'tap';

export interface DistantLine {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
}

const forward = (from: Socket, to: Socket, delayMs: number): void => {
  from.on('data', (bytes: Buffer) => setTimeout(() => to.write(bytes), delayMs));
  from.on('end', () => setTimeout(() => to.end(), delayMs));
  from.on('close', (hadError) => {
    if (hadError) setTimeout(() => to.resetAndDestroy(), delayMs);
  });
  from.on('error', () => undefined);
};

/** @param delayMs in each direction */
export const startDistantLine = async (t: Test, toPort: number, delayMs: number): Promise<DistantLine> => {
  let connections = 0;
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    connections += 1;
    const far = connect({ port: toPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    forward(near, far, delayMs);
    forward(far, near, delayMs);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
  };
};
