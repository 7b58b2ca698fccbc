/** One input of the fuzz: what is written to a new connection, how it is cut, and how the connection ends. */
import { Dice } from '../dice.js';
import { httpInput } from './http-inputs.js';
import { otherProtocolInput } from './other-protocols.js';
import { socketInput } from './socket-inputs.js';

/** What inputs are made with. */
export interface Vocabulary {
  /** Keys that are spoken for; whose credit is used up; that are none. */
  readonly goodKeys: readonly string[];
  readonly brokeKeys: readonly string[];
  readonly unknownKeys: readonly string[];
  readonly voices: readonly string[];
}

/**
 * `half-close`: the client says at once that it sends no more. `reset`: it goes at once. `wait`: it stays for an answer
 * for a moment; `patient`: for as long as first audio may take. `linger`: it stays until the service has had enough.
 */
export type Ending = 'half-close' | 'reset' | 'wait' | 'patient' | 'linger';

export interface Input {
  /** For statistics. */
  readonly kind: string;
  readonly bytes: Buffer;
  /** To be written once the answer 101 is there. */
  readonly afterUpgrade: Buffer | null;
  /** Where `bytes` are cut into writes of their own, ascending. */
  readonly cuts: readonly number[];
  readonly ending: Ending;
}

export type Made = Pick<Input, 'kind' | 'bytes' | 'afterUpgrade'>;

const everyByteMax = 400;

const cutsOf = (length: number, dice: Dice): number[] => {
  const what = dice.unit();
  if (what < 0.8 || length < 2) return [];
  if (what < 0.985) {
    const cuts = Array.from({ length: dice.between(1, 3) }, () => dice.between(1, length - 1));
    return [...new Set(cuts)].sort((a, b) => a - b);
  }
  return length > everyByteMax ? [] : Array.from({ length: length - 1 }, (_, i) => i + 1);
};

const makers = [
  { weight: 58, value: httpInput },
  { weight: 38, value: socketInput },
  { weight: 4, value: otherProtocolInput },
] as const;

const endings: readonly { readonly weight: number; readonly value: Ending }[] = [
  { weight: 47, value: 'wait' },
  { weight: 3, value: 'patient' },
  { weight: 42, value: 'half-close' },
  { weight: 8, value: 'reset' },
];

/** Only among the first: the end of a run does not wait for them. */
const lingerersBefore = 2_000;
const lingererShare = 0.03;

const endingOf = (index: number, dice: Dice): Ending =>
  index < lingerersBefore && dice.chance(lingererShare) ? 'linger' : dice.weighted(endings);

/** @param index from 0: an input follows from seed and index alone */
export const inputOf = (seed: number, index: number, vocabulary: Vocabulary): Input => {
  const dice = new Dice(seed, index);
  const made = dice.weighted<(dice: Dice, vocabulary: Vocabulary) => Made>(makers)(dice, vocabulary);
  return { ...made, cuts: cutsOf(made.bytes.length, dice), ending: endingOf(index, dice) };
};
