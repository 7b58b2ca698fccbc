/** Structured log: one JSON line per event on standard output. It never holds text to speak or a key. */
import { pino } from 'pino';
import type { LogLevel } from './config.js';
import { LogWriter, type LogBounds } from './log-writer.js';

export type Log = Pick<ReturnType<typeof pino>, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/** The log of a process or thread. */
export interface ProcessLog extends Log {
  /** Lines that could not be written and did not fit into memory. */
  readonly linesLost: number;
  /** Resolves when its lines are written, or cannot be written within `logEndMsMax`: the process may end. */
  end(): Promise<void>;
}

/**
 * A log that cannot be written (a full disk, a pipe that nobody reads) neither fails a request nor delays it: lines wait,
 * and lines beyond the bound are lost. The log reports their number when it can be written again.
 */
export const createLog = (level: LogLevel, bounds: LogBounds): ProcessLog => {
  const writer = new LogWriter(bounds, (lines) =>
    log.warn({ lines }, 'log lines were lost: the log could not be written'),
  );
  const log = pino({ level, base: null }, writer);
  return Object.defineProperties(log, {
    linesLost: { get: () => writer.linesLost },
    end: { value: () => writer.end() },
  }) as Log as ProcessLog;
};
