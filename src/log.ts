/** Structured log, one JSON line an event, on standard output. Never text to be spoken, never a key. */
import { pino } from 'pino';
import type { LogLevel } from './config.js';

export type Log = Pick<ReturnType<typeof pino>, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

export const createLog = (level: LogLevel): Log => pino({ level, base: null });
