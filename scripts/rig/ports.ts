/** Free ports of this machine. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A port that something else listens on. */
export const holdPort = async (): Promise<{ port: number; release: () => Promise<void> }> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, release: () => new Promise((resolve) => server.close(() => resolve())) };
};

/** A port that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  const { port, release } = await holdPort();
  await release();
  return port;
};
