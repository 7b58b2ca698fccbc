/** The arguments of every program: the service and its commands take `--help`, `-h` and `--version`, and refuse what they do not know. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { version } from './version.js';

/** The command line was not understood. */
export class UsageError extends Error {}

/** The caller asks what the program is, and not for its work. */
class Question extends Error {
  constructor(readonly about: 'help' | 'version') {
    super(about);
  }
}

/** @throws for `--help` and `--version`, and for what the options do not allow: see `answerTo` */
export const parseCommandLine = <const Config extends ParseArgsConfig>(
  config: Config,
): ReturnType<typeof parseArgs<Config>> => {
  const own = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;
  const all: Config = { ...config, options: { ...config.options, ...own } };
  let parsed: ReturnType<typeof parseArgs<Config>>;
  try {
    parsed = parseArgs(all);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  for (const about of ['help', 'version'] as const) if (about in parsed.values) throw new Question(about);
  return parsed;
};

/** Names and licences come from others: their control characters must not command the terminal, or change the order in which it is read. */
export const printable = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');

/** @returns what a program answers to arguments that it cannot work with; rethrows other errors */
export const answerTo = (
  error: unknown,
  name: string,
  usage: string,
): { readonly exitCode: 0 | 2; readonly text: string } => {
  if (error instanceof UsageError) return { exitCode: 2, text: `${name}: ${error.message}\n\n${usage}` };
  if (!(error instanceof Question)) throw error;
  return { exitCode: 0, text: error.about === 'help' ? usage : `syrinx ${version}\n` };
};

/** Of a process that SIGPIPE ended, as shells report it. */
const BROKEN_PIPE_STATUS = 141;

/**
 * Ends this process quietly when the reader of its output has gone, as in `npm run usage | head`. Node ignores SIGPIPE, and
 * would report the failed write with a stack.
 */
export const endWithReader = (): void => {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit(BROKEN_PIPE_STATUS);
    });
};

/** Reads the arguments of this process. Help, version and usage errors are printed, and end it. */
export const readArguments = async <Options>(
  name: string,
  usage: string,
  read: (args: readonly string[]) => Options,
): Promise<Options> => {
  try {
    return read(process.argv.slice(2));
  } catch (error) {
    const { exitCode, text } = answerTo(error, name, usage);
    endWithReader();
    const stream = exitCode === 0 ? process.stdout : process.stderr;
    await new Promise((resolve) => stream.write(printable(text), (failed) => failed ?? resolve(undefined)));
    process.exit(exitCode);
  }
};
