/** The command line of the benchmark. */
import { parseCommandLine, UsageError } from '../../src/command-line.js';
import type { OverloadOptions } from './overload/overload.js';
import { overloadParts } from './overload/phases.js';

export const usage = `Usage: npm run bench -- [--only PARTS] [--rate HZ] [--json FILE] [--readme]
       npm run bench -- ws [--only PARTS] [--rate HZ] [--json FILE]
       npm run bench -- pauses [--json FILE]
       npm run bench -- overload [--only PARTS] [--seconds N] [--capacity N] [--quick] [--rate HZ] [--json FILE]
       npm run bench -- tokens [--json FILE]
       npm run bench -- text [--json FILE]
       npm run bench -- dialects [--json FILE]
       npm run bench -- peers [--only PARTS] [--json FILE]
       npm run bench -- voices [--only PARTS] [--json FILE]
       npm run bench -- hosts [--only PARTS] [--json FILE]
       npm run bench -- gpu [--only PARTS] [--json FILE]

  (no name)      requests over HTTP; parts: first-audio, throughput, encodings, listeners and memory
  ws             WebSockets; parts: idle, together, streams and frames
  pauses         how long the front thread stops for one caller's worst, and for work over many WebSockets
  overload       what the machine carries, and more; parts: cold and warm (listeners at once), half, steady, neighbour,
                 0.8, 2, 4, 10 (times its capacity), burst, flood, greedy, throughput and audible
  tokens         text that arrives as a language model writes it
  text           what a character of prose, of chat with markup and of addresses costs the front thread
  dialects       first audio through the listeners for clients of other services
  peers          a Piper voice here and in sherpa-onnx, and small voices beside programs; parts: piper and small
  voices         memory and load time of voices of 62 MB; parts: sharing and loading
  hosts          PostgreSQL against SQLite, and the ledger of several hosts; parts: stores and ledger (needs PostgreSQL)
  gpu            engines by the size of a batch, on a GPU (by WebGPU) and on the CPU; parts: engines and cpu-batches
  --only PARTS   some of the parts, separated by commas
  --rate HZ      the sample rate of the speech (default 24000)
  --seconds N    how long each overload lasts, from 1 on (default 40)
  --capacity N   listeners that the machine carries; by default the run finds the number first
  --quick        a short run, to see that it works: its figures say little
  --json FILE    also writes the results into a file
  --readme       puts the table into README.md

Exit codes: 0 every bar was met, 1 a bar was missed, 2 wrong usage.
`;

const programs = {
  all: ['first-audio', 'throughput', 'encodings', 'listeners', 'memory'],
  ws: ['idle', 'together', 'streams', 'frames'],
  pauses: ['pauses'],
  overload: [...overloadParts, 'throughput', 'audible'],
  tokens: ['tokens'],
  text: ['text'],
  dialects: ['dialects'],
  peers: ['piper', 'small'],
  voices: ['sharing', 'loading'],
  hosts: ['stores', 'ledger'],
  gpu: ['engines', 'cpu-batches'],
} as const;
export type Program = keyof typeof programs;
export type Part = (typeof programs)[Program][number];

export interface BenchOptions {
  readonly program: Program;
  readonly parts: readonly Part[];
  readonly rateHz: number;
  readonly overload: Omit<OverloadOptions, 'parts'>;
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
      seconds: { type: 'string' },
      capacity: { type: 'string' },
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
    },
  });

const secondsOf = { full: 40, quick: 4 } as const;

const readOverload = (
  program: Program,
  { capacity, quick, seconds }: ReturnType<typeof parse>['values'],
): BenchOptions['overload'] => {
  const number = (name: string, text: string | undefined): number | null => {
    if (text === undefined) return null;
    const value = Number(text);
    if (!(Number.isInteger(value) && value >= 1))
      throw new UsageError(`--${name} is a whole number from 1 on, not "${text}"`);
    return value;
  };
  if (program !== 'overload' && (capacity !== undefined || seconds !== undefined || quick))
    throw new UsageError('--seconds, --capacity and --quick go with overload');
  return {
    isQuick: quick,
    seconds: number('seconds', seconds) ?? secondsOf[quick ? 'quick' : 'full'],
    capacity: number('capacity', capacity),
  };
};

/** @throws {UsageError} */
export const readOptions = (args: readonly string[]): BenchOptions => {
  const { values, positionals } = parse(args);
  const [program = 'all'] = positionals;
  if (!isProgram(program) || positionals.length > 1)
    throw new UsageError(`there is no "${positionals.join(' ')}": ${Object.keys(programs).join(', ')}`);
  const rateHz = Number(values.rate);
  if (!(Number.isInteger(rateHz) && rateHz > 0))
    throw new UsageError(`--rate is a sample rate in Hz, not "${values.rate}"`);
  if (values.readme && program !== 'all')
    throw new UsageError('--readme goes with the measurements over HTTP');
  const parts = readParts(program, values.only);
  const overload = readOverload(program, values);
  return { program, parts, rateHz, overload, json: values.json ?? null, readme: values.readme };
};
