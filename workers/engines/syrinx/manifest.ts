/** What a manifest of the format syrinx-1 says, and whether it may. */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import type { HeldFile } from '../pack.js';
import { missingPhones } from './phones.js';

/** A file in the pack's own folder. */
interface GraphFile {
  readonly path: string & tags.Pattern<'^[A-Za-z0-9_][A-Za-z0-9._-]*$'>;
  readonly bytes: number & tags.Type<'uint32'> & tags.Minimum<1>;
  readonly sha256: string & tags.Pattern<'^[0-9a-f]{64}$'>;
}

export interface Speaker {
  readonly id: string & tags.Pattern<'^[a-z0-9][a-z0-9_-]{0,63}$'>;
  readonly description: string;
  /** Weights of the speakers that the nets were trained with. */
  readonly mix: (number & tags.Minimum<0> & tags.Maximum<1>)[] & tags.MinItems<3> & tags.MaxItems<3>;
  /** Factor of F0. */
  readonly pitch: number & tags.Minimum<0.5> & tags.Maximum<2>;
  /** Frequency scale of the spectral envelope: above 1 a longer vocal tract. */
  readonly warp: number & tags.Minimum<0.7> & tags.Maximum<1.4>;
  /** Factor of pace. */
  readonly rate: number & tags.Minimum<0.5> & tags.Maximum<2>;
  /** Factor of the F0 range. */
  readonly liveliness: number & tags.Minimum<0> & tags.Maximum<3>;
  /** Factor of amplitude, that brings all speakers to one level. */
  readonly gain: number & tags.Minimum<0.25> & tags.Maximum<4>;
}

export interface Manifest {
  readonly format: 'syrinx-1';
  readonly name: string;
  readonly language: string;
  readonly sampleRateHz: 24000;
  readonly licence: string;
  readonly files: { readonly encoder: GraphFile; readonly frames: GraphFile; readonly decoder: GraphFile };
  /** Names in id order. */
  readonly phones: string[];
  /** `subFrames` vocoder frames of `hopSamples` samples make up one frame of `durationMs`. */
  readonly frame: { readonly durationMs: 10; readonly subFrames: 2; readonly hopSamples: 120 };
  /** Receptive fields of the encoder in phones and of the frame net in frames, at either side. */
  readonly margins: {
    readonly phones: number & tags.Type<'uint32'> & tags.Maximum<64>;
    readonly frames: number & tags.Type<'uint32'> & tags.Maximum<64>;
  };
  /** Natural logarithms of F0 in Hz, of the speakers that the nets were trained with. */
  readonly trainingF0: { readonly logMean: number[] & tags.MinItems<3> & tags.MaxItems<3> };
  readonly hiddenSize: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<4096>;
  /** The pack's default first. */
  readonly speakers: Speaker[] & tags.MinItems<1>;
}

export type GraphName = keyof Manifest['files'];

/** `VoicePack.data` of this format. */
export interface SyrinxData {
  readonly manifest: Manifest;
  readonly manifestPath: string;
  readonly graphs: Readonly<Record<GraphName, HeldFile>>;
}

const validateManifest = typia.createValidate<Manifest>();

/** @param path for messages */
export const parseManifest = (path: string, value: unknown): Manifest => {
  const result = validateManifest(value);
  if (!result.success) {
    const [first] = result.errors;
    throw new VoicePackError(
      `${path}: ${first?.path.replace('$input', 'manifest')} must be ${first?.expected}`,
    );
  }
  const missing = missingPhones(result.data.phones);
  if (missing.length > 0) throw new VoicePackError(`${path}: phones lacks ${missing.join(', ')}`);
  return result.data;
};
