/**
 * What makes two readings of a sentence differ: the style of each clause, the length of each sound, and the noise that
 * the frame net turns into small movements. It depends only on the seeds and on clause, phone and frame numbers, never on
 * when a step ran. A part of the style belongs to the utterance, so that its segments sound like one reading.
 */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { type Terminal, terminals } from '../g2p/lexer.js';
import type { Speaker } from './manifest.js';
import { gaussian, randomAt } from '../random.js';

/** What numbers are drawn for. */
const draws = { mood: 0, clause: 1, cutClause: 2, sound: 3, silence: 4, frame: 5, decoder: 6 } as const;

/** A style has four values: mean of log F0, its spread, pace, and tune (F0 at the end against the mean). */
const styleSize = 4;
/** Further from the usual than this the nets were not trained. */
const styleMax = 2.5;
/** The part of each value's variance that belongs to the utterance; the rest belongs to the clause. */
const moodShares = [0.6, 0.5, 0.95, 0.15] as const;

/**
 * The part of each value's deviation that is drawn. The mean varies most with what is said: two readings of one sentence
 * by the person deviate by half of it. The pace is not drawn: clients send each sentence of a reply as a request, and a
 * reply whose sentences differ in pace limps. Spread and tune move lengths, too, so a little less of them is drawn, and less
 * of texts with fewer words than these: in "Yes." nothing balances the length of its one vowel.
 */
const drawnShares = [0.5, 0.9, 0, 0.9] as const;
const drawnWordsMin = 4;
/** In deviations. Rarer moods would make one reply in a hundred noticeably longer or shorter than the one before it. */
const drawnMax = 1.5;

/** How a clause of a terminal class is spoken. */
interface Manner {
  /** The class that the encoder gets. */
  readonly terminal: Terminal;
  /** The usual style, and the deviation from it. */
  readonly centre: readonly number[];
  readonly deviation: readonly number[];
}

// The encoder follows a spread only in part: with this centre the range of F0 is the person's. The recordings have almost
// no questions and exclamations. The encoder gets them as full stops, with a tune that rises, or with more spread.
const manners: Readonly<Record<Terminal, Manner>> = {
  [terminals.continuing]: {
    terminal: terminals.continuing,
    centre: [0, 0.4, 0, 0.4],
    deviation: [1, 1, 1, 1],
  },
  [terminals.period]: { terminal: terminals.period, centre: [0, 0.4, 0, 0], deviation: [1, 1, 1, 1] },
  [terminals.question]: { terminal: terminals.period, centre: [0.2, 0.4, 0, 2], deviation: [1, 1, 1, 0.2] },
  [terminals.exclamation]: { terminal: terminals.period, centre: [0.4, 1.2, 0, 0], deviation: [1, 1, 1, 1] },
};

/** How much a temperature widens the F0 range, the variety of styles, and that of lengths, relative to 1. */
const rangeAt = (temperature: number): number => temperature ** 0.3;
const styleSpreadAt = (temperature: number): number => temperature ** 0.75;
const lengthSpreadAt = (temperature: number): number => temperature ** 0.5;

/** The share of the deviation of lengths that is drawn: with twice as much, the word error rate was a point higher. */
const lengthShare = 0.3;
/**
 * What the sounds so far are longer or shorter than usual, the next ones give back, so that lengths vary and the pace
 * stays. The part that the next sound gives back, and the largest part of its own length that this may be:
 */
const givenBackShare = 0.5;
const givenBackMax = 0.2;
/** Limit of what is given back later, in frames. */
const owedFramesMax = 8;
/** Limit of the natural logarithm of a length over the usual one. */
const lengthMax = 0.7;
/**
 * A recogniser mishears words with short consonants more often than others, but not words with short vowels. So consonants
 * have a least length. The lengths of vowels differ more, which keeps the variety of all lengths.
 */
const consonantFramesMin = 3.5;
const vowelStretch = 1.12;
/** The length of a vowel that stays as it is. */
const vowelFramesKept = 7;
/** Limit of an F0 excursion in natural logarithms, a little more than an octave in all. */
const excursionMax = 0.62;

/** Limits softly: nearly linear up to half of the limit. */
const limited = (value: number, max: number): number => value / (1 + (value / max) ** 4) ** 0.25;

export type ProsodyRequest = Pick<SegmentRequest, 'seed' | 'utteranceSeed' | 'settings'>;

/** What all speakers of a pack share. */
export interface Melody {
  /** Natural logarithm of the mean F0, in Hz, before a speaker's own pitch. */
  readonly logMean: number;
  /** `mixingOf` the correlation of styles. */
  readonly mixing: readonly (readonly number[])[];
}

export interface ClauseStyle {
  readonly terminal: Terminal;
  readonly values: readonly number[];
}

/** Pauses were trained without a style. */
export const pauseStyle: ClauseStyle = { terminal: terminals.continuing, values: [0, 0, 0, 0] };

export class Prosody {
  /** Where the decoder starts in its noise and its pulse train. */
  readonly noiseIndex: number;
  readonly startPhase: number;
  readonly #seed: number;
  readonly #utteranceSeed: number;
  readonly #melody: Melody;
  readonly #pitchShift: number;
  readonly #range: number;
  readonly #pace: number;
  readonly #styleSpread: number;
  /** Of the spread of the segment's own clauses. */
  readonly #ownShare: number;
  readonly #lengthSpread: number;
  readonly #mood: readonly number[];
  #silences = 0;
  /** Frames that the sounds so far are shorter than usual. */
  #owed = 0;

  /** @param spokenWords of the segment, with those that stand for numbers and signs */
  constructor(request: ProsodyRequest, speaker: Speaker, melody: Melody, spokenWords: number) {
    const { seed, utteranceSeed } = request;
    const { temperature, speed = 1 } = request.settings;
    this.#seed = seed;
    this.#utteranceSeed = utteranceSeed;
    this.#melody = melody;
    this.#pitchShift = Math.log(speaker.pitch);
    this.#range = speaker.liveliness * rangeAt(temperature);
    this.#pace = 1 / (speaker.rate * speed);
    this.#styleSpread = styleSpreadAt(temperature);
    this.#ownShare = Math.min(1, spokenWords / drawnWordsMin);
    this.#lengthSpread = lengthShare * lengthSpreadAt(temperature);
    this.#mood = normals(randomAt(utteranceSeed, draws.mood));
    const random = randomAt(seed, draws.decoder);
    this.noiseIndex = Math.floor(1024 * random());
    this.startPhase = random();
  }

  /** @param clause its number in the segment, or `null` if other segments speak a part of it: they must agree with this one */
  styleOf(clause: number | null, terminal: Terminal): ClauseStyle {
    const { terminal: spoken, centre, deviation } = manners[terminal];
    const own = normals(
      clause === null
        ? randomAt(this.#utteranceSeed, draws.cutClause)
        : randomAt(this.#seed, draws.clause, clause),
    );
    const drawn = own.map((value, i) =>
      within(Math.sqrt(moodShares[i]!) * this.#mood[i]! + Math.sqrt(1 - moodShares[i]!) * value, drawnMax),
    );
    const spread = this.#styleSpread * (clause === null ? 1 : this.#ownShare);
    const values = this.#melody.mixing.map((row, i) => {
      const value = row.reduce((sum, weight, j) => sum + weight * drawn[j]!, 0);
      const style = centre[i]! + spread * drawnShares[i]! * deviation[i]! * value;
      return within(style, styleMax);
    });
    return { terminal: spoken, values };
  }

  /**
   * A sound's length in whole frames. Call it once for each phone, in order: it carries on what it owes.
   * @param spread deviation of the logarithm of its length
   */
  soundFrames(phone: number, isVowel: boolean, usualFrames: number, spread: number): number {
    const shaped = (frames: number): number =>
      isVowel
        ? vowelFramesKept * (frames / vowelFramesKept) ** vowelStretch
        : Math.max(consonantFramesMin, frames);
    return this.#balanced(shaped(usualFrames), shaped(usualFrames * this.#variation(phone, spread)));
  }

  /** The length of a sound that another segment speaks. */
  usualFrames(usualFrames: number): number {
    return Math.max(1, Math.round(usualFrames * this.#pace));
  }

  /** The length of a pause within the segment. Call it as `soundFrames`. */
  pauseFrames(
    phone: number,
    usualFrames: number,
    spread: number,
    [min, max]: readonly [number, number],
  ): number {
    const allowed = (frames: number): number => Math.max(min, Math.min(max, frames));
    return this.#balanced(allowed(usualFrames), allowed(usualFrames * this.#variation(phone, spread)));
  }

  /** Varies the length of a silence. */
  silence(length: number, spread: number): number {
    const random = randomAt(this.#seed, draws.silence, this.#silences++);
    return length * (1 + spread * (2 * random() - 1)) * this.#pace;
  }

  /** Noise of the frame net, a row for each of its channels. @param firstFrame number of its first frame */
  fillNoise(noise: Float32Array, firstFrame: number, frames: number): void {
    for (let frame = 0; frame < frames; frame++) {
      const random = randomAt(this.#seed, draws.frame, firstFrame + frame);
      for (let at = frame; at < noise.length; at += frames) noise[at] = gaussian(random);
    }
  }

  /** Shapes F0 in place. */
  shapePitch(f0: Float32Array): void {
    const { logMean } = this.#melody;
    for (let at = 0; at < f0.length; at++) {
      const excursion = (Math.log(f0[at]!) - logMean) * this.#range;
      f0[at] = Math.exp(logMean + this.#pitchShift + limited(excursion, excursionMax));
    }
  }

  /** Gives a part of what is owed back, and owes the rest and its own deviation. */
  #balanced(usual: number, varied: number): number {
    const wanted = varied * this.#pace;
    const most = givenBackMax * wanted;
    const frames = Math.max(1, Math.round(wanted + within(givenBackShare * this.#owed, most)));
    this.#owed = within(this.#owed + usual * this.#pace - frames, owedFramesMax);
    return frames;
  }

  /** The factor of a length. */
  #variation(phone: number, spread: number): number {
    const drawn = this.#lengthSpread * spread * gaussian(randomAt(this.#seed, draws.sound, phone));
    return Math.exp(within(drawn, lengthMax));
  }
}

const within = (value: number, max: number): number => Math.max(-max, Math.min(max, value));
const normals = (random: () => number): number[] => Array.from({ length: styleSize }, () => gaussian(random));
