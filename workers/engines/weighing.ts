/** What a pack takes of the memory of a process that tries it. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { NativeGuard } from '../../src/threads/vitals.js';
import { type VoicePack, VoicePackError } from '../../src/threads/voices.js';
import { loadedBytesMax } from './optimised.js';

export const inMiB = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** The most memory that the process had since `restartPeak`, in bytes; 0 if the system does not report it. */
export const peakBytes = (): number => {
  try {
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
};

/** @returns the memory that the process has now, in bytes */
export const restartPeak = (): number => {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // Another system, or one that does not allow it: the memory of a run stays unknown.
  }
  return peakBytes();
};

/** Weighs the graphs of a pack while they load. */
export class Weighing {
  /** Of the last load: in the end, of the sessions that speak. */
  loadBytes = 0;
  readonly #fileBytes: number;

  constructor({ sharedBytes, modelBytes }: VoicePack) {
    this.#fileBytes = sharedBytes ?? modelBytes;
  }

  /** @throws {VoicePackError} the load took far more memory than the files have */
  readonly weigh: NativeGuard = async (load) => {
    const beforeBytes = restartPeak();
    const made = await load();
    this.loadBytes = Math.max(0, peakBytes() - beforeBytes);
    const bytesMax = loadedBytesMax(this.#fileBytes);
    if (this.loadBytes <= bytesMax) return made;
    throw new VoicePackError(
      `loaded, its graphs take ${inMiB(this.loadBytes)} MiB of memory, but its files have only ` +
        `${inMiB(this.#fileBytes)} MiB: they may take ${inMiB(bytesMax)} MiB. They make large constants out of small ones: ` +
        'use another export of the model',
    );
  };
}
