/** Structured log: one JSON line per event on standard output. It never holds text to speak or a key. */
import { pino } from 'pino';
import type { LogLevel } from './config.js';
import type { Bounds } from './limits.js';

export type Log = Pick<ReturnType<typeof pino>, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/**
 * A log that cannot be written (a full disk) fails no request: lines wait, and lines beyond the bound are dropped. The
 * log reports their number when it can be written again.
 */
export const createLog = (level: LogLevel, bounds: Pick<Bounds, 'logBytesWaitingMax'>): Log => {
  const destination = pino.destination({ dest: 1, sync: true, maxLength: bounds.logBytesWaitingMax });
  const log = pino({ level, base: null }, destination);
  let dropped = 0;
  // Without a listener every log call would throw.
  destination.on('error', () => undefined);
  destination.on('drop', () => (dropped += 1));
  destination.on('write', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    // After the current write.
    queueMicrotask(() => log.warn({ lines }, 'log lines were lost: the log could not be written'));
  });
  return log;
};
