/** The voice formats, and the packs of MODELS_DIR: which format has which, read by one thread and loaded by others. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import type { Provider } from '../../src/config.js';
import type { Bounds } from '../../src/limits.js';
import { monotonicMs } from '../../src/monotonic.js';
import { cudaDeviceOf } from '../../src/threads/device.js';
import { GpuState } from '../../src/threads/gpu.js';
import type { GraphPlaces, SynthesisThreadData } from '../../src/threads/messages.js';
import type { ReadProgress } from '../../src/threads/reader.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import {
  type PackFinding,
  type PacksAnswer,
  type PacksThreadData,
  type ReadPacks,
  type RefusedPack,
  type TrialResult,
  type Voice,
  type VoicePack,
  VoicePackError,
  closeFiles,
} from '../../src/threads/voices.js';
import { unitBytes } from '../../src/worst-case.js';
import type {
  Engine,
  EngineLog,
  EngineMeans,
  GpuMeans,
  LoadedVoices,
  PackUse,
  Pronounce,
  VoiceFormat,
} from './engine.js';
import { type PackEntry, entriesIn, firstLine, remedyFor, voiceIdFault } from './entries.js';
import { DerivedFiles } from './graph/derived.js';
import { LoadedPacks } from './loaded.js';
import { kokoro } from './kokoro/format.js';
import { type Held, licenceIn, PackFolder, stampOf } from './pack.js';
import { piper } from './piper/format.js';
import { pocket } from './pocket/format.js';
import { syrinx } from './syrinx/format.js';
import { KeptTrials, type Trial, tryPack } from './trial.js';

export const formats: readonly VoiceFormat[] = [syrinx, piper, kokoro, pocket];

/** The first voice of this pack is the default. The other packs follow by name. */
export const defaultPack = 'syrinx-en';

/** @returns why a folder is not a pack of any format */
const unrecognisedFault = ({ name, path, files }: PackFolder, known: readonly VoiceFormat[]): string => {
  if (name === defaultPack) return `${join(path, syrinx.looksFor)}: the file is missing`;
  if (files.length === 0) return `${path}: the folder is empty`;
  const models = files.filter((file) => file.endsWith('.onnx'));
  const remedy = models.length === 0 ? files.map(remedyFor).find((found) => found !== undefined) : undefined;
  if (remedy !== undefined) return `${path}: ${remedy}`;
  const wanted = known.map(({ looksFor }) => looksFor).join('; or ');
  return `${path}: no voice format that this service knows. A pack has ${wanted}`;
};

/** The most voices of a pack: more would slow every list of them. The largest Piper model that is published has 904. */
const voicesMax = 1_000;

/** The folder of a pack, or its first file among loose files. */
const placeOf = ({ path, files }: PackEntry): string => join(path, files?.[0] ?? '');

/** Whatever goes wrong while a pack is read is a fault of this pack. */
const packFault = (entry: PackEntry, error: unknown): VoicePackError =>
  error instanceof VoicePackError
    ? error
    : new VoicePackError(`${placeOf(entry)}: the pack cannot be read: ${firstLine(error)}`);

/** Reads and verifies one pack. @throws {VoicePackError} */
export const readEntry = async (
  entry: PackEntry,
  derived: DerivedFiles,
  files: Held,
  known = formats,
): Promise<{ pack: VoicePack; identity: string }> => {
  try {
    const folder = await PackFolder.open(entry, files);
    for (const format of known) {
      if (!(await format.recognises(folder))) continue;
      const { name } = entry;
      const content = { ...(await licenceIn(folder)), ...(await format.read(folder, derived)) };
      const count = content.voices.length;
      if (count < 1 || count > voicesMax)
        throw new VoicePackError(
          `${placeOf(entry)}: the pack has ${count} voices, a pack has 1 to ${voicesMax}`,
        );
      const ids = new Set<string>();
      for (const { id } of content.voices) {
        const fault = ids.has(id) ? `two of its voices have the id "${id}"` : voiceIdFault(id);
        if (fault !== null) throw new VoicePackError(`${placeOf(entry)}: ${fault}`);
        ids.add(id);
      }
      return {
        pack: { engine: format.name, name, ...content, openFiles: folder.openFiles },
        identity: folder.identity,
      };
    }
    throw new VoicePackError(unrecognisedFault(folder, known));
  } catch (error) {
    throw packFault(entry, error);
  }
};

/** @returns `null` if the voices of the pack read letters */
export const pronounceOf = async (
  pack: VoicePack,
  bounds: Bounds,
  known = formats,
): Promise<Pronounce | null> =>
  (await known.find(({ name }) => name === pack.engine)?.pronounce?.(pack, bounds)) ?? null;

/** After a segment the thread rests for this many times its duration: phonemes cost no credit, and speech needs the core. */
const RESTS = 2;

/**
 * Between two segments the thread does everything else.
 *
 * @returns for each segment, the phonemes of each of its words
 */
export const ipasOf = async (
  pronounce: Pronounce,
  segments: readonly Parameters<Pronounce>[0][],
  voice: Voice,
): Promise<string[][]> => {
  const found: string[][] = [];
  for (const segment of segments) {
    const startMs = monotonicMs();
    const ipas: string[][] = segment.words.map(() => []);
    for (const { word, ipa } of pronounce(segment, voice)) if (word !== null) ipas[word]!.push(ipa);
    found.push(ipas.map((parts) => parts.join(' ')));
    await pause(RESTS * (monotonicMs() - startMs));
  }
  return found;
};

/** A fault of an earlier reading or use. It may name its file. */
const keptFault = (entry: PackEntry, fault: string): VoicePackError =>
  new VoicePackError(fault.startsWith('/') ? fault : `${placeOf(entry)}: ${fault}`);

type RunTrial = (entry: PackEntry) => ReturnType<Trial>;

/** @throws {VoicePackError} the pack does not speak */
const tried = async (
  entry: PackEntry,
  identity: string,
  run: RunTrial,
  kept: KeptTrials,
): Promise<TrialResult> => {
  let outcome = kept.find(identity);
  if (outcome === undefined) {
    const { isFinal, ...made } = await run(entry);
    if (isFinal) kept.add(identity, made);
    // The thread may end before it has read the other packs.
    kept.write(true);
    outcome = made;
  }
  if ('result' in outcome) return outcome.result;
  throw keptFault(entry, outcome.fault);
};

const MiB = 1024 * 1024;

/**
 * A run takes memory in addition to what segments keep: each thread runs one model at a time. So do graphs that take more
 * than their files let expect.
 */
const withTrial = (pack: VoicePack, trial: TrialResult): VoicePack => {
  const { runMiB = 0, loadMiB = 0 } = trial;
  const excess = Math.max(0, loadMiB * MiB - unitBytes.modelByte * pack.modelBytes);
  return { ...pack, trial, stateBytes: (pack.stateBytes ?? 0) + runMiB * MiB + excess };
};

/** @param cacheDir for what is derived from packs */
export const derivedIn = (cacheDir: string): DerivedFiles => new DerivedFiles(join(cacheDir, 'derived'));

/** The folder of packs, and the folder for files that are derived from them. */
export interface PackPlaces {
  readonly modelsDir: string;
  readonly cacheDir: string;
}

/** How the packs of a folder are read. */
interface Reading {
  /** Absent: packs are not tried. */
  readonly trial?: RunTrial | undefined;
  /** What is known of the packs from earlier. */
  readonly kept?: KeptTrials;
  /** Packs that are not read, and why. */
  readonly refused?: readonly RefusedPack[];
  /** Called before and after each pack, and for each file that is opened. */
  readonly onProgress?: (progress: ReadProgress) => void;
}

/**
 * Reads and verifies all packs. One that cannot be used is a finding, and the others are there without it: all but the
 * default pack, so that a request without a voice never gets another one.
 *
 * @returns the default pack first, and the files to be closed when the packs are loaded
 * @throws {VoicePackError} in one line that names the file: of the default pack, or of the first if none can be used
 */
export const readPacks = async (
  { modelsDir, cacheDir }: PackPlaces,
  known = formats,
  { trial: run, kept, refused = [], onProgress }: Reading = {},
): Promise<ReadPacks> => {
  const files: number[] = [];
  let reading: ReadProgress['reading'] = null;
  const report = (now = reading): void => {
    reading = now;
    onProgress?.({ reading, files });
  };
  // A file that was reported may be closed by the other thread, so it is no longer reported when it is closed here.
  const closeFrom = (mark: number): void => {
    const opened = files.splice(mark);
    report(null);
    closeFiles(opened);
  };
  const held: Held = {
    push: (descriptor) => {
      files.push(descriptor);
      report();
    },
  };
  const derived = derivedIn(cacheDir);
  try {
    const entries = await entriesIn(modelsDir);
    const packs: VoicePack[] = [];
    const owners = new Map<string, string>();
    const findings: PackFinding[] = [];
    const isDefault = ({ name }: PackEntry) => name === defaultPack;
    for (const entry of [...entries.packs].sort((a, b) => Number(isDefault(b)) - Number(isDefault(a)))) {
      const mark = files.length;
      try {
        const place = { name: entry.name, path: placeOf(entry) };
        const refusal = refused.find(({ pack }) => pack === entry.name);
        if (refusal?.stamp !== undefined) {
          kept?.add(refusal.stamp, { fault: refusal.fault });
          kept?.write(true);
        }
        if (refusal !== undefined) throw new VoicePackError(refusal.fault);
        report(place);
        // A start without the default pack ends, so that one is read each time.
        let stamp: string | undefined;
        if (kept !== undefined && !isDefault(entry)) {
          stamp = await stampOf(entry);
          const known = kept.find(stamp);
          if (known !== undefined && 'fault' in known) throw keptFault(entry, known.fault);
          report({ ...place, stamp });
        }
        const { pack: read, identity } = await readEntry(entry, derived, held, known);
        const pack = { ...read, identity, ...(stamp !== undefined && { stamp }) };
        report(null);
        for (const { id } of pack.voices) {
          const owner = owners.get(id);
          if (owner !== undefined)
            throw new VoicePackError(
              `${entry.path}: voice "${id}" is in ${owner} already: rename one of the two`,
            );
        }
        const needsTrial = run !== undefined && kept !== undefined && !isDefault(entry);
        const trial = needsTrial ? await tried(entry, identity, run, kept) : undefined;
        for (const { id } of pack.voices) owners.set(id, entry.path);
        packs.push(trial === undefined ? pack : withTrial(pack, trial));
      } catch (error) {
        closeFrom(mark);
        findings.push({ pack: entry.name, fault: packFault(entry, error).message });
      }
    }
    findings.push(...entries.findings);
    kept?.write();
    await derived.prune();
    const [first] = findings;
    if (first !== undefined && (packs.length === 0 || first.pack === defaultPack))
      throw new VoicePackError(first.fault, findings);
    if (packs.length === 0) throw new VoicePackError(`${modelsDir}: the folder has no voice pack`);
    return { packs, findings, files };
  } catch (error) {
    closeFrom(0);
    throw error;
  }
};

/** What the thread does that reads the packs: it answers once, and ends. */
export const answerWithPacks = async (
  port: MessagePort,
  { modelsDir, cacheDir, refused, bounds }: PacksThreadData,
  known = formats,
  trial: Trial | null = tryPack,
): Promise<void> => {
  let answer: PacksAnswer;
  try {
    const run = (trying: Trial) => (entry: PackEntry) =>
      trying({ entry, cacheDir, hasLowPriority: true }, bounds);
    answer = await readPacks({ modelsDir, cacheDir }, known, {
      ...{ trial: trial === null ? undefined : run(trial), kept: new KeptTrials(cacheDir), refused },
      onProgress: (progress) => port.postMessage(progress),
    });
  } catch (error) {
    if (!(error instanceof VoicePackError)) throw error;
    answer = { fault: error.message, findings: error.findings };
  }
  port.postMessage(answer);
};

const onGpu = 'GPU';

/** Where each graph runs, for the operator. */
const graphsOf = (gpu: GpuMeans | undefined): GraphPlaces =>
  new Map(
    [...(gpu?.placements ?? [])].map(([graph, { device, difference }]) => {
      if (difference !== undefined) return [graph, `CPU: on the GPU its results are wrong by ${difference}`];
      return [graph, device === 'gpu' && !gpu!.state.isLost ? onGpu : 'CPU'];
    }),
  );

/** What the models of a thread run on: by WebGPU if one of them does, by CUDA if all of them do. */
const providerOf = (engines: readonly Engine[], { provider, gpu }: EngineMeans): Provider => {
  if (provider === 'webgpu') return [...graphsOf(gpu).values()].includes(onGpu) ? 'webgpu' : 'cpu';
  return engines.every(({ executionProvider }) => executionProvider === 'cuda') ? 'cuda' : 'cpu';
};

/**
 * Loads packs for the calling thread.
 *
 * @param loadedMax the most packs that are loaded at once: `hold` loads the others when they are needed
 * @throws {VoicePackError} the default pack cannot be loaded: in one line that names the file at fault
 */
export const loadPacks = async (
  packs: readonly VoicePack[],
  means: EngineMeans,
  known = formats,
  loadedMax = packs.length,
): Promise<LoadedVoices> => {
  const loaded = new LoadedPacks(
    packs.map((pack): readonly [VoicePack, VoiceFormat] => {
      const format = known.find(({ name }) => name === pack.engine);
      if (format === undefined) throw new RangeError(`unknown voice format "${pack.engine}"`);
      return [pack, format];
    }),
    means,
    loadedMax,
  );
  const { engines, faults } = await loaded.loadAll();
  return {
    faults,
    voices: engines.flatMap(({ voices }) => voices),
    executionProvider: providerOf(engines, means),
    graphs: graphsOf(means.gpu),
    costs: loaded.costs,
    crowded: engines.filter(({ segmentsMax }) => segmentsMax !== undefined),
    loadedPacks: () => loaded.size,
    open: (request) => loaded.engineOf(request.settings.voiceId).open(request),
    batchesOf: (voiceId) => loaded.engineOf(voiceId).batches,
    ...(loadedMax < packs.length && { hold: (use: PackUse) => loaded.hold(use) }),
  };
};

type ThreadSettings = Pick<SynthesisThreadData, 'executionProvider' | 'gpu' | 'logLevel' | 'bounds'>;

/** What a synthesis thread loads its packs with. */
export const meansOf = (
  { executionProvider, gpu, logLevel, bounds }: ThreadSettings,
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
    ...(gpu !== undefined && {
      gpu: {
        ...{ graphs: gpu.graphs, batchMax: gpu.batchMax },
        ...{ cudaDevice: cudaDeviceOf(gpu.device), placements: new Map() },
        state: new GpuState(gpu.state),
      },
    }),
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
