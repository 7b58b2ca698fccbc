/** Structured log, one JSON line an event, on standard output. Never text to be spoken, never a key. */
import { pino } from 'pino';
import type { LogLevel } from './config.js';
import { limits } from './limits.js';

export type Log = Pick<ReturnType<typeof pino>, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/**
 * A log that cannot be written, because its disk is full, is no reason to fail a request: its lines wait, and are
 * dropped when they are too many. When it can be written again it tells how many are missing.
 */
export const createLog = (level: LogLevel): Log => {
  const destination = pino.destination({ dest: 1, sync: true, maxLength: limits.logBytesWaitingMax });
  const log = pino({ level, base: null }, destination);
  let dropped = 0;
  // Without a listener each line would throw, wherever it is written.
  destination.on('error', () => undefined);
  destination.on('drop', () => (dropped += 1));
  destination.on('write', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    // After the write that is under way.
    queueMicrotask(() => log.warn({ lines }, 'the log could not be written: lines are missing'));
  });
  return log;
};
