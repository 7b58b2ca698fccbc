/**
 * Voices and voice packs, as far as every voice format has them in common. A format is one folder of `workers/engines`,
 * which reads its packs and speaks with them; everything else knows only what stands here.
 */

import { close } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** A pack of a folder that was read. */
export interface PackFinding {
  readonly pack: string;
  /** Why it cannot be used; `null` if it can. */
  readonly fault: string | null;
}

/** A voice pack that cannot be used. The message is one line that names the file or folder at fault. */
export class VoicePackError extends Error {
  override readonly name = 'VoicePackError';
  /** All packs of the folder, where they were read. */
  readonly findings: readonly PackFinding[];

  constructor(message: string, findings: readonly PackFinding[] = []) {
    super(message);
    this.findings = findings;
  }
}

export interface Voice {
  readonly id: string;
  /** Rate of the samples that the engine makes, before the actor resamples them. */
  readonly sampleRateHz: number;
  /** BCP 47. */
  readonly language: string;
  /** For people who choose a voice. */
  readonly description?: string;
}

/** A pack whose files were found whole. It can be cloned: each synthesis thread loads its own copy. */
export interface VoicePack {
  /** The format: a folder of `workers/engines`. */
  readonly engine: string;
  /** The pack's own folder in MODELS_DIR. */
  readonly name: string;
  /** The pack's default first. */
  readonly voices: readonly Voice[];
  readonly licence?: string;
  /** Size of the files that each thread loads. */
  readonly modelBytes: number;
  /** What its format needs to load it. */
  readonly data: unknown;
}

/** The voices that a request can ask for. */
export interface VoiceCatalogue {
  /** The default voice first. */
  readonly speakerIds: readonly string[];
  /** Rate of the samples that the voice is made with. @throws {RangeError} if there is no such voice */
  sampleRateHz(speakerId: string): number;
}

/** What a generation speaks with. */
export interface Voices {
  readonly catalogue: VoiceCatalogue;
  /** What its threads load. */
  readonly packs: readonly VoicePack[];
  /** Closes the files of the packs: no thread will load them any more. Idempotent. */
  readonly release: () => void;
}

export const catalogueOf = (packs: readonly VoicePack[]): VoiceCatalogue => {
  const voices = new Map(packs.flatMap((pack) => pack.voices.map((voice) => [voice.id, voice])));
  return {
    speakerIds: [...voices.keys()],
    sampleRateHz: (speakerId) => {
      const voice = voices.get(speakerId);
      if (voice === undefined) throw new RangeError(`unknown voice "${speakerId}"`);
      return voice.sampleRateHz;
    },
  };
};

/** All packs of a folder, found whole. */
export interface ReadPacks {
  /** The default one first. */
  readonly packs: readonly VoicePack[];
  /** Descriptors of their files, open until `closeFiles`: what is loaded is what was verified. */
  readonly files: number[];
}

/** What the thread that reads the packs answers: the packs, or what a `VoicePackError` says. */
export type PacksAnswer = ReadPacks | { readonly fault: string; readonly findings: readonly PackFinding[] };

/** Idempotent. */
export const closeFiles = (files: number[]): void => {
  for (const file of files.splice(0)) close(file, () => undefined);
};

/**
 * Reads and verifies all packs of a folder in a thread of its own, which ends with that: the caller's thread must not
 * wait for the hashes of large files.
 *
 * @param entry the compiled `workers/packs.ts`
 * @throws {VoicePackError} in one line that names the file
 */
export const readVoices = async (modelsDir: string, entry: URL): Promise<Voices> => {
  const answer = await new Promise<PacksAnswer>((resolve, reject) => {
    // By default a thread closes at its end the files that it opened.
    const thread = new Worker(entry, { workerData: modelsDir, trackUnmanagedFds: false });
    thread.once('message', resolve).once('error', reject);
    thread.once('exit', (code) =>
      reject(new Error(`the thread that reads the voices ended with code ${code}`)),
    );
  });
  if ('fault' in answer) throw new VoicePackError(answer.fault, answer.findings);
  const { packs, files } = answer;
  return { packs, catalogue: catalogueOf(packs), release: () => closeFiles(files) };
};
