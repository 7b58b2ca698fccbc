/** What the engine asks of an export of Pocket TTS, whether it is five graphs or one. */
import type { tags } from 'typia';
import type { HeldFile } from '../pack.js';
import type { StateSpec } from './states.js';
import type { TextRules } from './text.js';
import type { Vocabulary } from './tokeniser.js';
import type { VoicePrompt } from './voices.js';

/** The reference has 12.5. */
export type FrameRateHz = number & tags.Minimum<1> & tags.Maximum<100>;

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
  readonly latentSize: number;
  readPrompt(voice: VoicePrompt): Promise<PromptState>;
  /** Reads tokens in a voice whose prompt this model has read. */
  read(prompt: PromptState, tokens: readonly number[]): Promise<TextReading>;
}

/** What both exports have in common; can be cloned. */
export interface PocketBasics {
  readonly sampleRateHz: number;
  readonly frameSamples: number;
  readonly frameRateHz: number;
  readonly latentSize: number;
  readonly width: number;
  readonly temperature: number;
  /** Noise beyond it is drawn again; `null`: there is no bound. */
  readonly noiseMax: number | null;
  readonly endThreshold: number;
  /** Frames after the end of speech that belong to it; `null`: by the length of the text. */
  readonly framesAfterEnd: number | null;
  /** A text has at most as many frames as its tokens take at this rate, and some seconds more. */
  readonly tokensPerSecond: number;
  readonly secondsMore: number;
  readonly text: TextRules;
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
  readonly decoderPositions: number;
  readonly convolutionSize: number;
  readonly decodeSteps: number;
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
