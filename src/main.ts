/**
 * The entry of the service, which is `start.ts`. Loading that takes half a second, in which the default actions of signals
 * that end nothing would end the process.
 */
import { isatty } from 'node:tty';

const isAtTerminal = isatty(1);

for (const signal of ['SIGHUP', 'SIGUSR2'] as const)
  process.on(signal, () => {
    // Nothing was read that could be read again. But a closed window sends SIGHUP too.
    const isClosed = isAtTerminal && !isatty(1);
    if (!isClosed || process.listenerCount(signal) > 1) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });

await import('./start.js');
