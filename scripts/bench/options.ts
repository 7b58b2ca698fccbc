/** The command line of the benchmark. */
import { parseCommandLine, UsageError } from '../command.js';

export const usage = `Usage: npm run bench -- [--only PARTS] [--rate HZ] [--json FILE] [--readme]
       npm run bench -- ws [--only PARTS] [--rate HZ] [--json FILE]
       npm run bench -- ws-check [--minutes N] [--json FILE]

  (no name)      requests over HTTP; parts: first-audio, throughput, encodings, listeners and memory
  ws             WebSockets; parts: idle, streams and frames
  ws-check       checks every frame that a hundred WebSockets receive
  --only PARTS   some of the parts, separated by commas
  --rate HZ      the sample rate of the speech (default 24000)
  --minutes N    how long frames are checked, from 0.5 on (default 1)
  --json FILE    also writes the results into a file
  --readme       puts the table into README.md

Exit codes: 0 every bar was met, 1 a bar was missed, 2 wrong usage.
`;

const programs = {
  all: ['first-audio', 'throughput', 'encodings', 'listeners', 'memory'],
  ws: ['idle', 'streams', 'frames'],
  'ws-check': ['check'],
} as const;
export type Program = keyof typeof programs;
export type Part = (typeof programs)[Program][number];

export interface BenchOptions {
  readonly program: Program;
  readonly parts: readonly Part[];
  readonly rateHz: number;
  readonly minutes: number;
  /** `null`: no file. */
  readonly json: string | null;
  readonly readme: boolean;
}

const isProgram = (word: string): word is Program => Object.hasOwn(programs, word);

const readParts = (program: Program, only: string | undefined): readonly Part[] => {
  const parts: readonly Part[] = programs[program];
  if (only === undefined) return parts;
  return only.split(',').map((text) => {
    const part = parts.find((candidate) => candidate === text.trim());
    if (part === undefined) throw new UsageError(`--only: there is no part "${text}": ${parts.join(', ')}`);
    return part;
  });
};

const parse = (args: readonly string[]) =>
  parseCommandLine({
    args: [...args],
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      rate: { type: 'string', default: '24000' },
      minutes: { type: 'string', default: '1' },
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });

/**
 * @returns `null` for `--help`
 * @throws {UsageError}
 */
export const readOptions = (args: readonly string[]): BenchOptions | null => {
  const { values, positionals } = parse(args);
  if (values.help) return null;
  const [program = 'all'] = positionals;
  if (!isProgram(program) || positionals.length > 1)
    throw new UsageError(`there is no "${positionals.join(' ')}": ${Object.keys(programs).join(', ')}`);
  const rateHz = Number(values.rate);
  if (!(Number.isInteger(rateHz) && rateHz > 0))
    throw new UsageError(`--rate is a sample rate in Hz, not "${values.rate}"`);
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.5 && minutes < Infinity))
    throw new UsageError(`--minutes is a number from 0.5 on, not "${values.minutes}"`);
  if (values.readme && program !== 'all')
    throw new UsageError('--readme goes with the measurements over HTTP');
  const parts = readParts(program, values.only);
  return { program, parts, rateHz, minutes, json: values.json ?? null, readme: values.readme };
};
