/** What the engine asks of an export of Pocket TTS, whether it is five graphs or one. */
import type { tags } from 'typia';
import type { HeldFile, SampleRateHz } from '../pack.js';
import type { StateSpec } from './states.js';
import type { Vocabulary } from './tokeniser.js';
import type { VoicePrompt } from './voices.js';

/** The reference has 12.5. */
export type FrameRateHz = number & tags.Minimum<1> & tags.Maximum<100>;
export type Size = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<100_000>;

/** What both exports say, under the names of the export in one graph. */
export interface PocketConfig {
  readonly sample_rate: SampleRateHz;
  /** Samples. */
  readonly frame_size: Size;
  readonly frame_rate: FrameRateHz;
  readonly latent_dim: Size;
  readonly model_dim: Size;
  readonly temperature: number & tags.Minimum<0> & tags.Maximum<4>;
  /** Noise beyond it is drawn again; `null`: there is no bound. */
  readonly noise_clamp: (number & tags.ExclusiveMinimum<0>) | null;
  readonly eos_threshold: number;
  /** Frames after the end of speech that belong to it; `null`: by the length of the text. */
  readonly frames_after_eos: (number & tags.Type<'uint32'>) | null;
  /** A text has at most as many frames as its tokens take at this rate, and some seconds more. */
  readonly tokens_per_second_estimate: number & tags.ExclusiveMinimum<0>;
  readonly gen_seconds_padding: number & tags.Minimum<0>;
  readonly max_tokens_per_chunk: Size;
  /** Older models speak a few words better after spaces. */
  readonly pad_with_spaces_for_short_inputs: boolean;
  readonly remove_semicolons: boolean;
}

/** The configuration in the metadata of an export in one graph. */
export interface OneConfig extends PocketConfig {
  readonly flow_layers: Size;
  readonly flow_heads: Size;
  readonly flow_head_dim: Size;
  readonly mimi_layers: Size;
  readonly mimi_heads: Size;
  readonly mimi_head_dim: Size;
  readonly mimi_kv_len: Size;
  readonly conv_state_size: number & tags.Type<'uint32'>;
  readonly sampler_decode_steps: Size;
  readonly language: string | null;
}

/** The most frames of a text. */
export const framesOf = (config: PocketConfig, tokens: readonly number[]): number =>
  Math.ceil(
    (tokens.length / config.tokens_per_second_estimate + config.gen_seconds_padding) * config.frame_rate,
  );

/** What the model made of a voice. */
export interface PromptState {
  /** Positions of the model's memory that it takes. */
  readonly positions: number;
}

/** A piece of text while it is read, with a state of its own. */
export interface TextReading {
  /** Frames that the model has room for. */
  readonly framesMax: number;
  /**
   * Makes the next frame.
   *
   * @param noise for it, as long as a latent
   * @returns its samples, and whether the model says that speech ends here
   */
  next(noise: Float32Array): Promise<{ readonly pcm: Float32Array; readonly isEnd: boolean }>;
}

/** An export, loaded. */
export interface PocketModel {
  readPrompt(voice: VoicePrompt): Promise<PromptState>;
  /** Reads tokens in a voice whose prompt this model has read. */
  read(prompt: PromptState, tokens: readonly number[]): Promise<TextReading>;
}

/** What both exports have in common; can be cloned. */
export interface PocketBasics {
  readonly config: PocketConfig;
  readonly vocabulary: Vocabulary;
  readonly voices: readonly { readonly id: string; readonly prompt: VoicePrompt }[];
}

/** What an export in five graphs has besides. */
export interface FiveGraphs {
  readonly main: readonly StateSpec[];
  readonly decoder: readonly StateSpec[];
  readonly flowSteps: number;
  /** Vectors that the model hears before those of each voice; `null`: none. */
  readonly before: Float32Array | null;
}

/** What an export in one graph has besides: sizes of its memory. */
export interface OneGraph {
  /** Names of its inputs: older exports lack some. */
  readonly inputs: readonly string[];
  /** Numbers for one position of the speech model's memory, and of the decoder's. */
  readonly flowDims: readonly number[];
  readonly decoderDims: readonly number[];
  readonly config: OneConfig;
}

export type FiveGraphName = 'text' | 'main' | 'flow' | 'decoder';
export type OneGraphName = 'step';

/** `VoicePack.data` of this format. */
export type PocketData = { readonly basics: PocketBasics } & (
  | { readonly five: FiveGraphs; readonly files: Readonly<Record<FiveGraphName, HeldFile>> }
  | { readonly one: OneGraph; readonly files: Readonly<Record<OneGraphName, HeldFile>> }
);

/** The most segments that a thread speaks at once: each keeps tens of megabytes. */
export const segmentsAtOnceMax = 4;
/** The most voices of which a thread keeps the prompt. */
export const voicesKeptMax = 8;
