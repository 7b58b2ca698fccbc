/**
 * Tries a pack in a process of its own before a thread of the service loads it. A model is a program: one that never ends
 * or wants more memory than the machine has would hang or end the service. The result is kept until its files change.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import typia from 'typia';
import type { Provider } from '../../src/config.js';
import type { Bounds } from '../../src/limits.js';
import { readRegular } from '../../src/regular-file.js';
import type { GpuThreadData } from '../../src/threads/messages.js';
import { hungPacks, type TrialResult } from '../../src/threads/voices.js';
import type { PackEntry } from './entries.js';
import { copiesName } from './optimised.js';

/** The input of the process, as a line of JSON on its standard input. That stays open while the answer is wanted. */
export interface TrialOrder {
  readonly entry: PackEntry;
  readonly cacheDir: string;
  readonly bounds: Bounds;
  /** Tries it on a GPU; absent: on the CPU, as for the service. */
  readonly gpu?: Omit<GpuThreadData, 'state'> & { readonly executionProvider: Provider };
  /** Other processes come first on the processor. */
  readonly hasLowPriority: boolean;
}

/** The last line of its standard output. */
export type TrialOutcome =
  | {
      readonly result: TrialResult;
      /** Where each graph runs, by `PACK/GRAPH`, if WebGPU was tried. */
      readonly graphs?: Readonly<Record<string, string>>;
    }
  | { readonly fault: string };

export type Trial = (
  order: Omit<TrialOrder, 'bounds'>,
  bounds: Bounds,
) => Promise<TrialOutcome & { readonly isFinal: boolean }>;

const MiB = 1024 * 1024;
/** The share of the free memory that a trial may take. */
const FREE_PART = 0.8;

/**
 * Sets limits that the process cannot lift: seconds of processor time, and KiB of memory that it writes to. A hard limit
 * equal to the soft one would end it with SIGKILL, as does a system that lacks memory.
 */
const limited = [
  '-c',
  'ulimit -S -t "$1" && ulimit -H -t "$(($1 + 5))" && ulimit -d "$2"; shift 2; exec "$@"',
  'sh',
];
/** What others send: they say nothing about the pack. */
const signalsOfOthers: readonly (string | number)[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'];
const memoryFault = /bad_alloc|bad allocation|allocate memory|out of memory/i;

/** @param end its signal, or its code */
const faultOf = (end: string | number, isLate: boolean, memoryMiB: number, bounds: Bounds): string => {
  if (isLate) return `it did not speak a sentence within ${bounds.voiceTrialMsMax / 1000} s`;
  if (signalsOfOthers.includes(end)) return `its trial was ended by ${end}: reload to try it again`;
  if (end === 'SIGXCPU')
    return (
      `it took more than ${bounds.voiceTrialCpuSecondsMax} s of processor time for a sentence, ` +
      'and may never end: use a smaller model'
    );
  return `it ended the process that tried it (${end}): it is damaged, or needs more than ${memoryMiB} MiB`;
};

/** Loads the pack and speaks a sentence, in a process with limits. */
export const tryPack: Trial = async (order, bounds) => {
  const memoryMiB = Math.floor(
    Math.min(bounds.voiceTrialMiBMax, (FREE_PART * process.availableMemory()) / MiB),
  );
  const program = [process.execPath, '--expose-gc', fileURLToPath(new URL('../trial.js', import.meta.url))];
  // Drivers of GPUs map far more memory than they use.
  const [command, ...args] =
    process.platform === 'win32' || order.gpu !== undefined
      ? program
      : ['sh', ...limited, String(bounds.voiceTrialCpuSecondsMax), String(memoryMiB * 1024), ...program];
  const child = spawn(command!, args, {
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: bounds.voiceTrialMsMax,
    killSignal: 'SIGKILL',
  });
  // The process may end before it has read all of it.
  child.stdin
    .on('error', () => undefined)
    .write(`${JSON.stringify({ ...order, bounds } satisfies TrialOrder)}\n`);
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const output = await readAll(child.stdout);
  const [code, signal] = await ended;
  const end = signal ?? code!;
  if (end !== 0)
    return {
      fault: faultOf(end, child.killed, memoryMiB, bounds),
      isFinal: !signalsOfOthers.includes(end),
    };
  const outcome = JSON.parse(output.trim().split('\n').at(-1) ?? '') as TrialOutcome;
  const isMemory = 'fault' in outcome && memoryFault.test(outcome.fault);
  return isMemory
    ? { fault: `${outcome.fault} (it may have ${memoryMiB} MiB)`, isFinal: false }
    : { ...outcome, isFinal: true };
};

/** What a result depends on besides the files of the pack. */
const surroundings = (): string => {
  const path = new URL('../../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version: string };
  return [version, process.version, copiesName].join(' ');
};

type Kept = Readonly<Record<string, TrialOutcome>>;
const isOutcome = typia.createIs<TrialOutcome>();

/** The results of earlier trials: a file, which keeps those of the packs that are there. */
export class KeptTrials {
  readonly #path: string;
  readonly #surroundings = surroundings();
  readonly #before: Kept;
  readonly #now: Record<string, TrialOutcome> = {};

  constructor(cacheDir: string) {
    this.#path = join(cacheDir, 'trials.json');
    this.#before = this.#read(cacheDir);
  }

  /** @param identity of the pack's files */
  find(identity: string): TrialOutcome | undefined {
    const key = this.#keyOf(identity);
    const found = this.#before[key];
    if (found !== undefined) this.#now[key] = found;
    return found;
  }

  add(identity: string, outcome: TrialOutcome): void {
    this.#now[this.#keyOf(identity)] = outcome;
  }

  /** @param all keeps earlier results too */
  write(all = false): void {
    const kept = all ? { ...this.#before, ...this.#now } : this.#now;
    if (JSON.stringify(kept) === JSON.stringify(this.#before)) return;
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      writeFileSync(`${this.#path}.new`, JSON.stringify(kept));
      renameSync(`${this.#path}.new`, this.#path);
    } catch {
      // Without them the next reading tries the packs again. The store reports a data folder that cannot be written.
    }
  }

  #keyOf(identity: string): string {
    return `${identity} ${this.#surroundings}`;
  }

  #read(cacheDir: string): Kept {
    const hung = Object.entries(hungPacks(cacheDir)).map(([stamp, fault]) => [this.#keyOf(stamp), { fault }]);
    const faults = Object.fromEntries(hung) as Kept;
    try {
      const kept = JSON.parse(readRegular(this.#path).toString()) as Readonly<Record<string, unknown>>;
      const whole = Object.entries(kept).filter(([, outcome]) => isOutcome(outcome));
      return { ...(Object.fromEntries(whole) as Kept), ...faults };
    } catch {
      // Nothing was tried yet, or the file is damaged: what it lacks is tried again.
      return faults;
    }
  }
}
