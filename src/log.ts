/**
 * Structured log on standard output: one JSON line per event; on a terminal, lines for people. It never contains text to
 * speak or a key.
 */
import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { LogLevel } from './config.js';
import { LogWriter, type LogBounds } from './log-writer.js';

export type Log = Pick<ReturnType<typeof pino>, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

/** The log of a process or thread. */
export interface ProcessLog extends Log {
  isLevelEnabled(level: LogLevel): boolean;
  /** Writes text as it is, in order with the lines; `null` where the lines are JSON. */
  readonly print: ((text: string) => void) | null;
  /** Lines that could not be written and did not fit into memory. */
  readonly linesLost: number;
  /**
   * Resolves when its lines are written, or cannot be written within `logEndMsMax`.
   *
   * @returns whether the process may exit; if not, a write hangs and only a signal ends the process
   */
  end(): Promise<boolean>;
}

/** @returns the texts for a terminal; `null` if standard output is not a terminal. Only a terminal pays for loading them. */
export const loadTerminal = async () => (isatty(1) ? await import('./terminal.js') : null);

/**
 * A log that cannot be written (a full disk, a pipe without a reader) neither fails nor delays a request: lines wait, and
 * lines beyond the bound are lost. The log reports their number when it can be written again.
 *
 * @param readable turns a line of JSON into a line for people
 */
export const createLog = (
  level: LogLevel,
  bounds: LogBounds,
  readable?: (line: string) => string,
): ProcessLog => {
  const writer = new LogWriter(bounds, (lines) =>
    log.warn({ lines }, 'log lines were lost: the log could not be written'),
  );
  const log = pino({ level, base: null }, { write: (line: string) => writer.write(line, readable) });
  return Object.defineProperties(log, {
    linesLost: { get: () => writer.linesLost },
    print: { value: readable === undefined ? null : (text: string) => writer.write(text) },
    end: { value: () => writer.end() },
  }) as Log as ProcessLog;
};
