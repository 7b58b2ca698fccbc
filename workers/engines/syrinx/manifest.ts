/** What a manifest of the format syrinx-4 says, and whether it may. */
import typia, { type tags } from 'typia';
import { type Sex, VoicePackError } from '../../../src/threads/voices.js';
import { type HeldFile, type LanguageTag, checked } from '../pack.js';
import { missingPhones } from './phones.js';

/** A file in the pack's own folder. */
interface GraphFile {
  readonly path: string & tags.Pattern<'^[A-Za-z0-9_][A-Za-z0-9._-]*$'>;
  readonly bytes: number & tags.Type<'uint32'> & tags.Minimum<1>;
  readonly sha256: string & tags.Pattern<'^[0-9a-f]{64}$'>;
}

// Lists of voices repeat it.
type Words = string & tags.MaxLength<200>;

export interface Speaker {
  readonly id: string & tags.Pattern<'^[a-z0-9][a-z0-9_-]{0,63}$'>;
  readonly description: Words;
  readonly sex?: Sex;
  /** Weights of the speakers that the frame net was trained with: their timbres are mixed. */
  readonly mix: (number & tags.Minimum<0> & tags.Maximum<1>)[] & tags.MinItems<1>;
  /** Factor of F0. */
  readonly pitch: number & tags.Minimum<0.4> & tags.Maximum<2>;
  /** Frequency scale of the spectral envelope: above 1 a longer vocal tract. */
  readonly warp: number & tags.Minimum<0.7> & tags.Maximum<1.4>;
  /** The share of `sharpened`'s fine structure that this voice gets. */
  readonly fine: number & tags.Minimum<0> & tags.Maximum<1>;
  /** Factor of pace. */
  readonly rate: number & tags.Minimum<0.5> & tags.Maximum<2>;
  /** Factor of the F0 range and of the variety of clauses. */
  readonly liveliness: number & tags.Minimum<0> & tags.Maximum<3>;
  /** Factor of amplitude, that brings all speakers to one level. */
  readonly gain: number & tags.Minimum<0.25> & tags.Maximum<4>;
}

// Each segment keeps values of these sizes: `unitBytes.job` counts them for about such widths.
type Width = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<256>;
type Length = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<4096>;
type Margin = number & tags.Type<'uint32'> & tags.Maximum<32>;
type StyleRow = (number & tags.Minimum<-1> & tags.Maximum<1>)[] & tags.MinItems<4> & tags.MaxItems<4>;

export interface Manifest {
  readonly format: 'syrinx-4';
  readonly name: string;
  readonly language: LanguageTag;
  readonly sampleRateHz: 24000;
  readonly licence: Words;
  readonly files: { readonly encoder: GraphFile; readonly frames: GraphFile; readonly decoder: GraphFile };
  /** Names in id order. */
  readonly phones: string[];
  /** `rows` rows of `rowSamples` samples make up one frame of `durationMs`. */
  readonly frame: { readonly durationMs: 10; readonly rows: 2; readonly rowSamples: 120 };
  /** What a window needs at either side: of the encoder in phones, of the frame net in frames, of the decoder in rows. */
  readonly margins: {
    readonly phones: Margin;
    readonly frames: Margin;
    readonly rows: Margin;
  };
  /** Widths of the nets, and lengths of what the decoder passes on between chunks. */
  readonly sizes: {
    readonly hidden: Width;
    readonly style: 4;
    readonly noise: Width;
    readonly bands: Width;
    readonly pulses: Length;
    readonly decoderNoise: Length;
    readonly tail: Length;
  };
  /** Samples between the decoder's first row and its first sample of it. */
  readonly decoderDelaySamples: number & tags.Type<'uint32'> & tags.Maximum<2400>;
  /** Natural logarithm of the mean F0 in Hz, of the person whose melody the nets learned. */
  readonly trainingF0: { readonly logMean: number & tags.Minimum<4> & tags.Maximum<6.5> };
  /** In the order of the weights of a mix. */
  readonly trainingSpeakers: string[] & tags.MinItems<1>;
  /** How the four values of a clause's style go together: mean of log F0, its spread, pace, tune. */
  readonly style: { readonly correlation: StyleRow[] & tags.MinItems<4> & tags.MaxItems<4> };
  /** The pack's default first. */
  readonly speakers: Speaker[] & tags.MinItems<1>;
}

export type GraphName = keyof Manifest['files'];

/** `VoicePack.data` of this format. */
export interface SyrinxData {
  readonly manifest: Manifest;
  readonly manifestPath: string;
  readonly graphs: Readonly<Record<GraphName, HeldFile>>;
  /** See `SessionChoices.copiesIn`; absent if the folder of derived files cannot be written. */
  readonly copiesIn?: string | undefined;
}

const validateManifest = typia.createValidate<Manifest>();

/** What the types cannot say. @returns what is wrong, if anything is */
const faultIn = ({ phones, speakers, trainingSpeakers, style }: Manifest): string | undefined => {
  const missing = missingPhones(phones);
  if (missing.length > 0) return `phones lacks ${missing.join(', ')}`;
  const odd = speakers.findIndex(({ mix }) => mix.length !== trainingSpeakers.length);
  if (odd >= 0)
    return `manifest.speakers[${odd}].mix must be ${trainingSpeakers.length} weights, one for each trained speaker`;
  if (mixingOf(style.correlation) === null)
    return 'manifest.style.correlation must be a correlation: 1 on its diagonal, symmetric, positive definite';
  return undefined;
};

/** @param path for messages */
export const parseManifest = (path: string, value: unknown): Manifest => {
  const manifest = checked(path, 'manifest', validateManifest(value));
  const fault = faultIn(manifest);
  if (fault !== undefined) throw new VoicePackError(`${path}: ${fault}`);
  return manifest;
};

/**
 * The Cholesky factor of the correlation of a style's random numbers: multiplied by it, independent normal numbers have this correlation.
 * @returns its rows, each up to the diagonal; `null` if it is not a correlation
 */
export const mixingOf = (correlation: readonly (readonly number[])[]): number[][] | null => {
  const factor: number[][] = [];
  for (const [i, row] of correlation.entries()) {
    const made: number[] = [];
    for (let j = 0; j <= i; j++) {
      if (Math.abs(row[j]! - correlation[j]![i]!) > 1e-6) return null;
      let rest = row[j]!;
      for (let k = 0; k < j; k++) rest -= made[k]! * (j === i ? made : factor[j]!)[k]!;
      if (j < i) made.push(rest / factor[j]![j]!);
      else if (Math.abs(row[i]! - 1) > 1e-6 || rest < 1e-6) return null;
      else made.push(Math.sqrt(rest));
    }
    factor.push(made);
  }
  return factor;
};
