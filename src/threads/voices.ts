/**
 * Voices and voice packs, as far as every voice format has them in common. A format is one folder of `workers/engines`,
 * which reads its packs and speaks with them; everything else knows only what stands here.
 */

import { close, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineAbout } from '../fault.js';
import type { Bounds } from '../limits.js';
import { readRegular } from '../regular-file.js';
import { readFilesInThread, type ReadLoss } from './reader.js';

/** Packs that made a thread hang and are remembered, besides the newest. */
const HUNG_PACKS_MAX = 1_000;

/** Something in MODELS_DIR that cannot be used. */
export interface PackFinding {
  /** Name of the pack, or of the file. */
  readonly pack: string;
  /** Why, in one line that names the file, and what to do. */
  readonly fault: string;
}

/** A voice pack that cannot be used. The message is one line that names the file or folder at fault. */
export class VoicePackError extends Error {
  override readonly name = 'VoicePackError';
  /** Everything that cannot be used, if a whole folder was read. */
  readonly findings: readonly PackFinding[];

  constructor(message: string, findings: readonly PackFinding[] = []) {
    super(lineAbout(message));
    this.findings = findings;
  }
}

/** The longest step of an engine that cannot interrupt its model, measured at load. */
export interface LongStep {
  /** Compute time. */
  readonly ms: number;
  /** The speech that it makes. */
  readonly speechMs: number;
}

/** What speech of a voice costs. */
export interface VoiceCost {
  /** CPU time of a millisecond of speech, in milliseconds. */
  readonly cpu: number;
  /** CPU time of the first step of a segment, in milliseconds. */
  readonly beginMs: number;
}

export type Sex = 'female' | 'male';

export interface Voice {
  readonly id: string;
  /** Rate of the samples that the engine makes, before the actor resamples them. */
  readonly sampleRateHz: number;
  /** BCP 47. */
  readonly language: string;
  /** For people who choose a voice. */
  readonly description?: string;
  /** As it sounds; absent: the pack does not say. */
  readonly sex?: Sex;
  /** Factor of the pace that its model learned; absent: the pack does not say. */
  readonly pace?: number;
  /** Of a loaded voice whose steps take longer than `stepComputeMsTarget`. */
  readonly longStep?: LongStep;
}

/** How fast a pack speaks on this machine, in a process of its own. */
export interface TrialResult {
  readonly loadMs: number;
  readonly firstChunkMs: number;
  readonly stepMsMax: number;
  /** Seconds of computing for a second of speech. */
  readonly realTimeFactor: number;
  /** Memory of the process at its highest. */
  readonly peakMiB: number;
  /** Memory that the longest run takes besides the loaded models; absent in older results. */
  readonly runMiB?: number;
  /** Memory that the load of its graphs takes in each thread at its highest; absent in older results. */
  readonly loadMiB?: number;
}

/** A pack whose files were found whole. It can be cloned: each synthesis thread loads its own copy. */
export interface VoicePack {
  /** The format: a folder of `workers/engines`. */
  readonly engine: string;
  /** Name of its folder in MODELS_DIR, or of its model without the ending. */
  readonly name: string;
  /** The pack's default first. */
  readonly voices: readonly Voice[];
  readonly licence?: string;
  /** Size of the files that each thread loads. */
  readonly modelBytes: number;
  /** Size of the files that all threads map: they are in memory once. */
  readonly sharedBytes?: number;
  /** Bytes that the segments of a thread keep in memory together; absent: few. */
  readonly stateBytes?: number;
  /** Bytes of inner values that a run on a GPU needs for each segment of its batch; absent: it makes no batches. */
  readonly gpuItemBytes?: number;
  /** Files that stay open for it. */
  readonly openFiles: number;
  /** What this pack lacks, or what the service does not support of it: a short sentence each. */
  readonly notes?: readonly string[];
  /** A text that its voices can speak, if they do not know the letters of every language. */
  readonly sample?: string;
  /** The result of its trial; absent: it was not tried. */
  readonly trial?: TrialResult;
  /** Of the state of its files; absent: it is refused by no earlier fault. */
  readonly stamp?: string;
  /** Of the files that were read: with the same ones its voices make the same samples. */
  readonly identity?: string;
  /** What its format needs to load it. */
  readonly data: unknown;
}

/** What a generation speaks with. */
export interface Voices {
  readonly catalogue: VoiceCatalogue;
  /** What was found beside the packs and cannot be used. */
  readonly findings: readonly PackFinding[];
  /** What its threads load. */
  readonly packs: readonly VoicePack[];
  /** Closes the files of the packs: no thread will load them any more. Idempotent. */
  readonly release: () => void;
}

export const catalogueOf = (packs: readonly VoicePack[]) => {
  const voices = new Map(packs.flatMap((pack) => pack.voices.map((voice) => [voice.id, voice])));
  const voiceOf = (speakerId: string): Voice => {
    const voice = voices.get(speakerId);
    if (voice === undefined) throw new RangeError(`unknown voice "${speakerId}"`);
    return voice;
  };
  return {
    /** The default voice first. */
    speakerIds: [...voices.keys()] as readonly string[],
    /** Rate of the samples that the voice is made with. @throws {RangeError} if there is no such voice */
    sampleRateHz: (speakerId: string): number => voiceOf(speakerId).sampleRateHz,
    /** BCP 47. @throws {RangeError} if there is no such voice */
    language: (speakerId: string): string => voiceOf(speakerId).language,
  };
};

/** The voices that a request can ask for. */
export type VoiceCatalogue = Readonly<ReturnType<typeof catalogueOf>>;

/** The packs of a folder. */
export interface ReadPacks {
  /** Those that were found whole, the default one first. */
  readonly packs: readonly VoicePack[];
  readonly findings: readonly PackFinding[];
  /** Descriptors of their files, open until `closeFiles`: what is loaded is what was verified. */
  readonly files: number[];
}

/** What the thread that reads the packs answers: the packs, or what a `VoicePackError` says. */
export type PacksAnswer = ReadPacks | { readonly fault: string; readonly findings: readonly PackFinding[] };

/** Closes the files from this one on. Idempotent. */
export const closeFiles = (files: number[], from = 0): void => {
  for (const file of files.splice(from)) close(file, () => undefined);
};

/** A pack at which an earlier thread ended: it is not read. */
export interface RefusedPack extends PackFinding {
  /** Of its files, if the reading did not end: another one will not end either until they change. */
  readonly stamp?: string;
}

const hungPath = (cacheDir: string): string => join(cacheDir, 'hung.json');

/** The faults of packs that made a synthesis thread hang, by the stamps of their files. */
export const hungPacks = (cacheDir: string): Readonly<Record<string, string>> => {
  try {
    const kept: unknown = JSON.parse(readRegular(hungPath(cacheDir)).toString());
    // A damaged file can hold any value: `null` has no entries to ask for.
    return { ...(kept as Record<string, string>) };
  } catch {
    // No pack did, or the file is damaged.
    return {};
  }
};

/** The pack is refused from now on, until its files change. @throws if the folder cannot be written */
export const addHungPack = (cacheDir: string, stamp: string, fault: string): void => {
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
  const path = hungPath(cacheDir);
  const kept = Object.entries(hungPacks(cacheDir)).slice(-HUNG_PACKS_MAX);
  writeFileSync(`${path}.new`, JSON.stringify({ ...Object.fromEntries(kept), [stamp]: fault }));
  renameSync(`${path}.new`, path);
};

/** `workerData` of the thread that reads the packs. */
export interface PacksThreadData {
  readonly modelsDir: string;
  /** Folder for what is derived from packs. */
  readonly cacheDir: string;
  readonly refused: readonly RefusedPack[];
  readonly bounds: Bounds;
}

/** A loss in words about the pack that was read. */
export const faultOfLoss = ({ item: { path, stamp }, kind, fault }: ReadLoss): string => {
  if (kind === 'other') return `${path}: while it was read: ${fault}`;
  if (kind === 'memory')
    return `${path}: ${fault}: it is damaged, or no voice; a start may have more memory for it than a reload`;
  const again = stamp === undefined ? '' : '; it is read again when its files change';
  return `${path}: ${fault}: use a smaller model, or a faster disk${again}`;
};

/**
 * Reads and verifies all packs of a folder in a thread of its own, which ends with that: the caller's thread must not
 * wait for the hashes of large files. A pack at which the thread ends, or hangs, is a finding, and another thread reads the
 * others.
 *
 * @param entry the compiled `workers/packs.ts`
 * @param signal ends the reading
 * @throws {VoicePackError} in one line that names the file, if the default pack cannot be used, or no pack can
 */
export const readVoices = async (
  data: Omit<PacksThreadData, 'refused'>,
  entry: URL,
  signal?: AbortSignal,
): Promise<Voices> => {
  const refused: RefusedPack[] = [];
  const { voiceReadMsMax, voiceTrialMsMax, voiceReadHeapMiBMax } = data.bounds;
  for (;;) {
    const read = await readFilesInThread({
      ...{ entry, what: 'voices', bounds: data.bounds },
      workerData: { ...data, refused } satisfies PacksThreadData,
      heapMiBMax: voiceReadHeapMiBMax,
      ...{ itemMsMax: voiceReadMsMax, otherMsMax: voiceReadMsMax + voiceTrialMsMax },
      onMail: (mail: PacksAnswer) => mail,
      ...(signal !== undefined && { signal }),
    });
    if ('loss' in read) {
      const { item, kind } = read.loss;
      // What only took too long is read again when its files change.
      const stamp = kind === 'late' && item.stamp !== undefined ? { stamp: item.stamp } : {};
      refused.push({ pack: item.name, fault: faultOfLoss(read.loss), ...stamp });
      continue;
    }
    const { answer } = read;
    if ('fault' in answer) throw new VoicePackError(answer.fault, answer.findings);
    const { packs, findings, files } = answer;
    return { packs, findings, catalogue: catalogueOf(packs), release: () => closeFiles(files) };
  }
};
