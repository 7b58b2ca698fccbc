/**
 * When listeners arrive, and what they ask for. They arrive whatever the service does (an open loop): those that were
 * refused, and those that wait, do not lower the load that comes after them. A load of N listeners is as many arrivals a
 * second as N listeners make who ask again as soon as they have heard their utterance.
 */
import { seededRandom } from '../../rig/random.js';
import { sentences } from '../../rig/texts.js';

export interface Arrival {
  /** From the beginning of the load. */
  readonly atMs: number;
  /** An index among the texts. */
  readonly text: number;
  readonly transport: 'http' | 'ws';
}

/** Of the arrivals, one in so many comes over a WebSocket. */
const socketEvery = 3;

const transportOf = (arrival: number): Arrival['transport'] => (arrival % socketEvery === 0 ? 'ws' : 'http');

const shuffled = (count: number, random: () => number): number[] => {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
};

/**
 * Arrivals at random moments, as of a Poisson process with exactly this number of them; each text equally often. So every
 * load of a size is the same amount of work, and the gaps are still those of chance.
 */
export const drawArrivals = (
  seed: number,
  visitsPerSecond: number,
  durationMs: number,
  textCount: number,
): Arrival[] => {
  const random = seededRandom(seed);
  const count = Math.round((visitsPerSecond * durationMs) / 1000);
  const moments = Array.from({ length: count }, () => random() * durationMs).sort((a, b) => a - b);
  let deck: number[] = [];
  return moments.map((atMs, i) => {
    if (deck.length === 0) deck = shuffled(textCount, random);
    return { atMs, text: deck.pop()!, transport: transportOf(i) };
  });
};

/** Listeners who all begin in one moment, and again after each pause. */
export const arrivalsAtOnce = (
  listeners: number,
  rounds: number,
  everyMs: number,
  textCount: number,
): Arrival[] =>
  Array.from({ length: rounds * listeners }, (_, i) => ({
    atMs: Math.floor(i / listeners) * everyMs,
    text: i % textCount,
    transport: transportOf(i),
  }));

/** Characters of an utterance: three to eight seconds of speech. */
const charactersMin = 50;
const charactersMax = 130;

/** Utterances of one sentence or several. */
export const drawUtterances = (seed: number, count: number): string[] => {
  const random = seededRandom(seed);
  const pick = () => sentences[Math.floor(random() * sentences.length)]!;
  return Array.from({ length: count }, () => {
    for (;;) {
      let text = pick();
      while (text.length < charactersMin || random() < 0.3) text = `${text} ${pick()}`;
      if (text.length <= charactersMax) return text;
    }
  });
};
