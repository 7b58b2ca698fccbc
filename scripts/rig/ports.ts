/** Free ports of this machine. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A port that something else listens on. @param wanted by default one that the system chooses */
export const holdPort = async (wanted = 0): Promise<{ port: number; release: () => Promise<void> }> => {
  const server = createServer().listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, release: () => new Promise((resolve) => server.close(() => resolve())) };
};

/**
 * A port that was free a moment ago, and not one that the system gives to others: it may be free for a while, as between a
 * stop and a start.
 */
export const freePort = async (): Promise<number> => {
  for (;;)
    try {
      const { port, release } = await holdPort(randomInt(10_240, 32_768));
      await release();
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
};
