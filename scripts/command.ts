/** How commands read their arguments, write their output and end. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ParseArgsConfig } from 'node:util';
import { answerTo, endWithReader, parseCommandLine, printable, UsageError } from '../src/command-line.js';
import { ConfigError } from '../src/config.js';
import { AdministrationError, StoreError } from '../src/store/store.js';
import { VoicePackError } from '../src/threads/voices.js';
import { SayError } from './say/service.js';

export { UsageError };

/** For the usage of commands that open the store. */
export const storePlace =
  'The store is in DATA_DIR (default ./data), or in the PostgreSQL database of STORE_URL.';

const unitMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/**
 * Reads a date in UTC, or a duration.
 *
 * @param name of the option
 * @param toTimeMs what a duration means, in milliseconds since 1970
 * @returns milliseconds since 1970
 */
export const parseTime = (name: string, text: string, toTimeMs: (durationMs: number) => number): number => {
  const [, count, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (count !== undefined) return toTimeMs(Number(count) * (unitMs[unit] ?? 0));
  const [, date = '', time = '00:00', seconds = '00'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d))?)?Z?$/.exec(text) ?? [];
  const iso = `${date}T${time}:${seconds}.000Z`;
  const ms = Date.parse(iso);
  // `Date.parse` takes the 30th of February for a day in March.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== iso)
    throw new UsageError(
      `${name} is a date (2026-07-01, 2026-07-01T14:30) or a duration (30m, 12h, 7d, 2w), not "${text}"`,
    );
  return ms;
};

/** The surroundings of a command. Tests pass their own and run commands in their own process. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

const processTerminal: Terminal = {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

export interface CommandLine {
  readonly operands: readonly string[];
  /** @returns the value of an option; `null` if it is not given */
  readonly option: (name: string) => string | null;
  readonly flag: (name: string) => boolean;
}

export interface Command {
  /** Default: no operands. */
  readonly operands?: readonly [min: number, max: number];
  /** Names of options with a value. */
  readonly options?: readonly string[];
  /** Names of options without a value. */
  readonly flags?: readonly string[];
  /** Letters for some of them. */
  readonly short?: Readonly<Record<string, string>>;
  readonly run: (line: CommandLine, terminal: Terminal) => void | Promise<void>;
}

/** @returns the exit code: 0 done, 1 the store, the configuration or a voice pack does not allow it, 2 a usage error */
export type Program = (args: readonly string[], terminal?: Terminal) => Promise<number>;

const isCommand = (commands: Command | Readonly<Record<string, Command>>): commands is Command =>
  typeof commands.run === 'function';

const checkOperands = (what: string, count: number, [min, max]: readonly [number, number]): void => {
  if (count >= min && count <= max) return;
  const wanted = min === max ? String(min) : `${min} to ${max}`;
  throw new UsageError(`${what} takes ${wanted} operand${wanted === '1' ? '' : 's'}, not ${count}`);
};

/** @param commands one command, or several by their names */
export const program = (
  name: string,
  usage: string,
  commands: Command | Readonly<Record<string, Command>>,
): Program => {
  const rows = isCommand(commands) ? [commands] : Object.values(commands);
  const options: NonNullable<ParseArgsConfig['options']> = {};
  for (const row of rows) {
    const letterOf = (name: string) => {
      const short = row.short?.[name];
      return short === undefined ? {} : { short };
    };
    for (const option of row.options ?? []) options[option] = { type: 'string', ...letterOf(option) };
    for (const flag of row.flags ?? []) options[flag] = { type: 'boolean', ...letterOf(flag) };
  }

  const read = (args: readonly string[]): { command: Command; line: CommandLine } => {
    const asked = !isCommand(commands) && args[0] === 'help' ? ['--help'] : [...args];
    const { values, positionals } = parseCommandLine({ args: asked, allowPositionals: true, options });
    const given: Readonly<Record<string, unknown>> = values;
    const isSingle = isCommand(commands);
    const [word = '', ...rest] = isSingle ? ['', ...positionals] : positionals;
    if (!isSingle && word === '') throw new UsageError('a command is missing');
    const command = isSingle ? commands : Object.hasOwn(commands, word) ? commands[word] : undefined;
    if (command === undefined) throw new UsageError(`there is no command "${word}"`);
    const what = isSingle ? name : `"${word}"`;
    checkOperands(what, rest.length, command.operands ?? [0, 0]);
    const taken = [...(command.options ?? []), ...(command.flags ?? [])];
    const extra = Object.keys(given).find((option) => !taken.includes(option));
    if (extra !== undefined) throw new UsageError(`${what} takes no --${extra}`);
    return {
      command,
      line: {
        operands: rest,
        option: (option) => (given[option] as string | undefined) ?? null,
        flag: (flag) => given[flag] === true,
      },
    };
  };

  return async (args, { env, ...given } = processTerminal) => {
    const terminal: Terminal = {
      env,
      out: (text) => given.out(printable(text)),
      err: (text) => given.err(printable(text)),
    };
    try {
      const { command, line } = read(args);
      await command.run(line, terminal);
      return 0;
    } catch (error) {
      const isExpected = [AdministrationError, ConfigError, StoreError, VoicePackError, SayError].some(
        (kind) => error instanceof kind,
      );
      if (isExpected) {
        terminal.err(`${(error as Error).message}\n`);
        return 1;
      }
      // Any other error is a defect and keeps its stack.
      const { exitCode, text } = answerTo(error, name, usage);
      terminal[exitCode === 0 ? 'out' : 'err'](text);
      return exitCode;
    }
  };
};

/** Runs the program if its file is the one that the process was started with. @param url `import.meta.url` */
export const runIfMain = async (url: string, run: Program): Promise<void> => {
  const main = process.argv[1];
  if (main === undefined || realpathSync(main) !== fileURLToPath(url)) return;
  endWithReader();
  process.exitCode = await run(process.argv.slice(2));
};
