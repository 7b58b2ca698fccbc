/** The voice formats, and the packs of MODELS_DIR: which format has which, read by one thread and loaded by others. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import type { SynthesisThreadData } from '../../src/threads/messages.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import {
  type PackFinding,
  type PacksAnswer,
  type ReadPacks,
  type VoicePack,
  VoicePackError,
  closeFiles,
} from '../../src/threads/voices.js';
import type { Engine, EngineLog, EngineMeans, LoadedVoices, VoiceFormat } from './engine.js';
import { PackFolder, faultOf } from './pack.js';
import { syrinx } from './syrinx/format.js';

export const formats: readonly VoiceFormat[] = [syrinx];

/** The first voice of this pack is the default. The other packs follow by name. */
const defaultPack = 'syrinx-en';

const packNames = async (modelsDir: string): Promise<string[]> => {
  try {
    const entries = await readdir(modelsDir, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => name)
      .sort((a, b) => Number(b === defaultPack) - Number(a === defaultPack) || (a < b ? -1 : 1));
  } catch (error) {
    throw new VoicePackError(`${modelsDir}: ${faultOf(error, 'the folder of voices')}`);
  }
};

const readPack = async (
  folder: PackFolder,
  name: string,
  known: readonly VoiceFormat[],
): Promise<VoicePack> => {
  for (const format of known)
    if (await format.recognises(folder)) return { engine: format.name, name, ...(await format.read(folder)) };
  const wanted = known.map(({ looksFor }) => join(folder.path, looksFor));
  throw new VoicePackError(`${wanted.join(' or ')}: the file is missing`);
};

/**
 * Reads and verifies all packs, also after a fault, so that an operator learns of every one. Loads no model.
 *
 * @returns the default pack first, and the files to be closed when the packs are loaded
 * @throws {VoicePackError} in one line that names the file of the first fault
 */
export const readPacks = async (modelsDir: string, known = formats): Promise<ReadPacks> => {
  const files: number[] = [];
  try {
    const names = await packNames(modelsDir);
    if (names.length === 0) throw new VoicePackError(`${modelsDir}: the folder has no voice pack`);
    const packs: VoicePack[] = [];
    const owners = new Map<string, string>();
    const findings: PackFinding[] = [];
    for (const name of names) {
      let fault: string | null = null;
      try {
        const folder = await PackFolder.open(join(modelsDir, name), files);
        const pack = await readPack(folder, name, known);
        for (const { id } of pack.voices) {
          const owner = owners.get(id);
          if (owner !== undefined)
            throw new VoicePackError(`${folder.path}: voice "${id}" is in ${owner} already`);
          owners.set(id, folder.path);
        }
        packs.push(pack);
      } catch (error) {
        if (!(error instanceof VoicePackError)) throw error;
        fault = error.message;
      }
      findings.push({ pack: name, fault });
    }
    for (const { fault } of findings) if (fault !== null) throw new VoicePackError(fault, findings);
    return { packs, files };
  } catch (error) {
    closeFiles(files);
    throw error;
  }
};

/** What the thread does that reads the packs: it answers once, and ends. */
export const answerWithPacks = async (
  port: MessagePort,
  modelsDir: string,
  known = formats,
): Promise<void> => {
  let answer: PacksAnswer;
  try {
    answer = await readPacks(modelsDir, known);
  } catch (error) {
    if (!(error instanceof VoicePackError)) throw error;
    answer = { fault: error.message, findings: error.findings };
  }
  port.postMessage(answer);
};

/**
 * Loads packs for the calling thread.
 *
 * @throws {VoicePackError} in one line that names the file at fault
 */
export const loadPacks = async (
  packs: readonly VoicePack[],
  means: EngineMeans,
  known = formats,
): Promise<LoadedVoices> => {
  const engines: Engine[] = [];
  for (const pack of packs) {
    const format = known.find(({ name }) => name === pack.engine);
    if (format === undefined) throw new RangeError(`unknown voice format "${pack.engine}"`);
    engines.push(await format.load(pack, means));
  }
  const byVoice = new Map(engines.flatMap((engine) => engine.voices.map(({ id }) => [id, engine])));
  return {
    voices: engines.flatMap(({ voices }) => voices),
    executionProvider: engines.every(({ executionProvider }) => executionProvider === 'cuda')
      ? 'cuda'
      : 'cpu',
    open: (request) => {
      const engine = byVoice.get(request.settings.voiceId);
      if (engine === undefined) throw new RangeError(`unknown voice "${request.settings.voiceId}"`);
      return engine.open(request);
    },
  };
};

type ThreadSettings = Pick<SynthesisThreadData, 'executionProvider' | 'logLevel' | 'bounds'>;

/** What a synthesis thread loads its packs with. */
export const meansOf = (
  { executionProvider, logLevel, bounds }: ThreadSettings,
  native: NativeGuard,
): EngineMeans => {
  let made: Promise<EngineLog> | undefined;
  // The log's library is loaded when there is a line to write: it is a tenth of what the start of a thread costs.
  const log = () =>
    (made ??= import('../../src/log.js').then(async ({ createLog, loadTerminal }) =>
      createLog(logLevel, bounds, (await loadTerminal())?.readable),
    ));
  const isDebug = logLevel === 'trace' || logLevel === 'debug';
  return {
    provider: executionProvider,
    native,
    bounds,
    log: {
      debug: (...line: Parameters<EngineLog['debug']>) => {
        if (isDebug) void log().then((sink) => sink.debug(...line));
      },
      warn: (...line: Parameters<EngineLog['warn']>) => void log().then((sink) => sink.warn(...line)),
    },
  };
};
