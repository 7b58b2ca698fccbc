/** The packs of MODELS_DIR for a command: which there are, and what one of them is. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readConfig } from '../../src/config.js';
import { limits } from '../../src/limits.js';
import type { Device } from '../../src/threads/device.js';
import { readInThread } from '../../src/threads/reader.js';
import {
  type ReadPacks,
  type VoicePack,
  VoicePackError,
  closeFiles,
  faultOfLoss,
} from '../../src/threads/voices.js';
import { type PackEntry, entriesIn, entryOf } from '../../workers/engines/entries.js';
import { type PackPlaces, readPacks } from '../../workers/engines/registry.js';
import { type DeviceConfig, deviceFor } from '../device.js';
import type { ReadPackAnswer, ReadPackData } from './read-pack.js';
import { KeptTrials, type TrialOutcome, tryPack } from '../../workers/engines/trial.js';

export const placesOf = (env: NodeJS.ProcessEnv): PackPlaces => {
  const { modelsDir, dataDir } = readConfig(env);
  return { modelsDir, cacheDir: join(dataDir, 'voices') };
};

/** Packs and findings; unlike a start, also when the default pack cannot be used. */
export const installed = async (places: PackPlaces): Promise<Omit<ReadPacks, 'files'>> => {
  try {
    const { packs, findings, files } = await readPacks(places);
    closeFiles(files);
    return { packs, findings };
  } catch (error) {
    if (!(error instanceof VoicePackError) || error.findings.length === 0) throw error;
    return { packs: [], findings: error.findings };
  }
};

/** @param target a path, or the name of a pack in MODELS_DIR */
export const entryFor = async (target: string, { modelsDir }: PackPlaces): Promise<PackEntry> => {
  if (existsSync(target)) return entryOf(resolve(target));
  const { packs } = await entriesIn(modelsDir);
  const found = packs.find(({ name }) => name === target);
  if (found === undefined)
    throw new VoicePackError(`${target}: there is no such file or folder, and no such pack in ${modelsDir}`);
  return found;
};

/** The installed pack with this name, or with this voice. */
export const packWith = (id: string, packs: readonly VoicePack[]): VoicePack => {
  const found =
    packs.find(({ name }) => name === id) ??
    packs.find(({ voices }) => voices.some((voice) => voice.id === id));
  if (found === undefined)
    throw new VoicePackError(`there is no pack and no voice "${id}": \`npm run voices -- list\` shows them`);
  return found;
};

export interface Examined {
  readonly pack: VoicePack;
  readonly outcome: TrialOutcome;
  /** On the GPU that the service would use; `null`: it would use none. */
  readonly onGpu: { readonly device: Device; readonly outcome: TrialOutcome } | null;
}

/** In a thread, so that signals end the command meanwhile. @throws {VoicePackError} */
const readPack = async (workerData: ReadPackData) => {
  const read = await readInThread({
    ...{ entry: new URL('./read-pack.js', import.meta.url), workerData, what: 'voices', bounds: limits },
    ...{ itemMsMax: limits.voiceReadMsMax, otherMsMax: limits.voiceReadMsMax },
    heapMiBMax: limits.voiceReadHeapMiBMax,
    onMail: (mail: ReadPackAnswer) => mail,
  });
  if ('loss' in read) throw new VoicePackError(faultOfLoss(read.loss));
  if ('fault' in read.answer) throw new VoicePackError(read.answer.fault);
  return read.answer;
};

/**
 * Reads a pack, and tries it in a process of its own, whatever an earlier trial said. The service uses the result.
 *
 * @param config tries the pack on the GPU that the service would use, too
 * @throws {VoicePackError} the pack cannot be read
 */
export const examine = async (
  entry: PackEntry,
  { cacheDir }: PackPlaces,
  config?: DeviceConfig,
): Promise<Examined> => {
  const { pack, identity } = await readPack({ entry, cacheDir });
  const { isFinal, ...outcome } = await tryPack({ entry, cacheDir, hasLowPriority: false }, limits);
  if (isFinal) {
    const kept = new KeptTrials(cacheDir);
    kept.add(identity, outcome);
    kept.write(true);
  }
  if (config === undefined) return { pack, outcome, onGpu: null };
  const device = await deviceFor(config);
  if (device.provider === 'cpu' && !device.isFallback) return { pack, outcome, onGpu: null };
  const gpu = { ...config.gpu, executionProvider: device.provider };
  const onGpu =
    device.provider === 'cpu'
      ? { fault: device.reason }
      : await tryPack({ entry, cacheDir, gpu, hasLowPriority: false }, limits);
  return { pack, outcome, onGpu: { device, outcome: onGpu } };
};
