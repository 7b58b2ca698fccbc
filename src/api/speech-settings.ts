/**
 * How a text is to be spoken. A request asks for some of it, its key sets some, and the rest stands here. The result is carried
 * whole to the engine: a new option touches its wire type, these types and the engines that use it.
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
  /** The name of a lexicon whose words come before those of all others. */
  readonly lexiconId?: string;
}

/** What a key, or its account, sets for requests that do not say it. `null`: it leaves it open. */
export interface SpeakingDefaults {
  readonly normalizeText: boolean | null;
  readonly speed: Speed | null;
  readonly lexiconId: string | null;
}

/** Used where a request gives no temperature, or `null`. */
export const DEFAULT_TEMPERATURE: Temperature = 1;

export const noSpeakingDefaults: SpeakingDefaults = { normalizeText: null, speed: null, lexiconId: null };

/** What one request asks for. `null` counts as absent. */
export interface AskedSettings {
  readonly voiceId: string;
  readonly temperature?: Temperature | null | undefined;
  readonly normalizeText?: boolean | null | undefined;
  readonly speed?: Speed | null | undefined;
  /** What its API does where neither the request nor the key says it. The specification's does not normalise. */
  readonly normalizesByDefault?: boolean;
}

/** The only place of defaults: a field of the request wins, then its key, then its API. */
export const settingsOf = (
  { voiceId, temperature, normalizeText, speed, normalizesByDefault = false }: AskedSettings,
  key: SpeakingDefaults = noSpeakingDefaults,
): SpeechSettings => {
  const pace = speed ?? key.speed ?? 1;
  return {
    voiceId,
    temperature: temperature ?? DEFAULT_TEMPERATURE,
    normalizeText: normalizeText ?? key.normalizeText ?? normalizesByDefault,
    ...(pace !== 1 && { speed: pace }),
    ...(key.lexiconId !== null && { lexiconId: key.lexiconId }),
  };
};
