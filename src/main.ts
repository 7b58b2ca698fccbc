/**
 * The entry: loads the service (`start.ts`), which takes half a second. Without handlers, SIGHUP and SIGUSR2 would end the
 * process meanwhile.
 */
import { isatty } from 'node:tty';

const isAtTerminal = isatty(1);

for (const signal of ['SIGHUP', 'SIGUSR2'] as const)
  process.on(signal, () => {
    // Nothing was read yet that a reload would read again. But a closed window sends SIGHUP, too.
    const isClosed = isAtTerminal && !isatty(1);
    if (!isClosed || process.listenerCount(signal) > 1) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });

// Without a listener it opens Node's debugger, which lets every user of this machine run code in the service.
process.on('SIGUSR1', () => undefined);

await import('./start.js');
