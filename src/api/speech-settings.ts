/**
 * How a text is to be spoken. Built once, where a request is validated, and carried whole to the engine: a new option
 * touches its wire type, this type and the engines that use it.
 */
import type { tags } from 'typia';

/** From even (0.5) to lively (3): pitch range and variety of durations. */
export type Temperature = number & tags.Minimum<0.5> & tags.Maximum<3>;
/** Factor of pace: 2 is twice as fast as the voice's own. */
export type Speed = number & tags.Minimum<0.5> & tags.Maximum<2>;

export interface SpeechSettings {
  readonly voiceId: string;
  /** 1 is the voice as trained. */
  readonly temperature: Temperature;
  /** Numbers, dates and the like are spoken as the language of the voice reads them; the reported words stay as written. */
  readonly normalizeText: boolean;
  /** 1 when absent. The specification's bodies have no such field. */
  readonly speed?: Speed;
}

/** Used where a request gives no temperature, or `null`. */
export const DEFAULT_TEMPERATURE: Temperature = 1;
