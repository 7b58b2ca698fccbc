/** Entry of the thread that reads a pack for a command, which a signal ends meanwhile. */
import { parentPort, workerData } from 'node:worker_threads';
import type { ReadProgress } from '../../src/threads/reader.js';
import { type VoicePack, VoicePackError, closeFiles } from '../../src/threads/voices.js';
import type { PackEntry } from '../../workers/engines/entries.js';
import { derivedIn, readEntry } from '../../workers/engines/registry.js';

export interface ReadPackData {
  readonly entry: PackEntry;
  readonly cacheDir: string;
}

export type ReadPackAnswer =
  | { readonly pack: VoicePack; readonly identity: string }
  | { readonly fault: string };

const read = async ({ entry, cacheDir }: ReadPackData): Promise<ReadPackAnswer> => {
  const files: number[] = [];
  try {
    return await readEntry(entry, derivedIn(cacheDir), files);
  } catch (error) {
    if (!(error instanceof VoicePackError)) throw error;
    return { fault: error.message };
  } finally {
    closeFiles(files);
  }
};

const data = workerData as ReadPackData;
parentPort!.postMessage({ reading: data.entry, files: [] } satisfies ReadProgress);
parentPort!.postMessage(await read(data));
