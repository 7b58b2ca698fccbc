/** How many frames flow and generator take at a time, and the windows that they have on a GPU. */
import { lastInput, timeAxis } from '../graph/streams.js';
import type { Feeds, Fit, GraphWindows } from '../windows.js';
import { gaussian, randomAt } from '../random.js';
import type { PiperPlan } from './cut.js';
import type { PiperGraphs, StreamName, StreamPlan } from './graphs.js';

/** Frames of the first piece of sound: 70 ms at 22 kHz. mp3 needs as much for its first frame. */
const firstFrames = 6;
/**
 * Each piece is at most so many times as long as the one before it: the next one must be made, on a busy machine, while the listener
 * plays what came. With pieces of full length after the first, listeners ran dry at half the machine's capacity.
 */
const growth = 3;
/** The last piece may be this many times as long as the others: a short rest would take a run of its own. */
const lastPieceFactor = 1.25;
/** One and a half seconds at 22 kHz. Longer pieces gain nothing. */
const framesMax = 128;

/** Frames of the pieces of a sentence, in order; all further ones are as long as the last of these. The sentence's last piece has what is left. */
export type PieceSizes = readonly number[];

export type StreamSizes = Readonly<Record<StreamName, PieceSizes>>;

/** The most frames of a last piece. */
const longestLast = (size: number): number => Math.ceil(lastPieceFactor * size) - 1;

/** @param stepWork multiplications of a step */
export const sizesOf = ({ flow, generator }: PiperPlan, stepWork: number): StreamSizes => {
  const sizes = (first: number, { work }: StreamPlan): PieceSizes => {
    const longest = Math.max(1, Math.min(framesMax, Math.round(stepWork / work)));
    const growing: number[] = [];
    for (let frames = growth * firstFrames; frames < longest; frames *= growth) growing.push(frames);
    return [first, ...growing, longest];
  };
  const first = generator.lookahead + firstFrames;
  return { flow: sizes(flow.lookahead + first, flow), generator: sizes(first, generator) };
};

/** @param pieces that the sentence has had @param left frames @returns frames of its next piece */
export const nextPiece = (sizes: PieceSizes, pieces: number, left: number): number => {
  const size = sizes[pieces] ?? sizes.at(-1)!;
  return left <= longestLast(size) ? left : size;
};

/** Of the windows of last pieces. Each is at most twice as long as its piece, except the shortest. */
const lastLengths = (sizes: PieceSizes): number[] => {
  const longest = longestLast(Math.max(...sizes));
  const lengths: number[] = [];
  for (let length = longestLast(Math.min(...sizes)); length < longest; length *= 2) lengths.push(length);
  return [...lengths, longest];
};

const windowsOfStream = (
  { input, output, states, lookahead, rate }: StreamPlan,
  sizes: PieceSizes,
): GraphWindows => {
  /** The last piece of a sentence has any length. The others are windows as they are: what follows continues their states. */
  const fit = (feeds: Feeds): Fit | null => {
    const count = feeds[input]!.dims[timeAxis]!;
    const isLast = Number(feeds[lastInput]?.data[timeAxis]) === 1;
    const length = isLast ? lastLengths(sizes).find((known) => known >= count) : count;
    if (length === undefined) return null;
    return {
      ...{ length, count, from: 0, axes: { [input]: timeAxis } },
      surplus: { [output]: { axis: timeAxis, count: rate * (length - count) } },
      ...(isLast && { useless: states.map((state) => state.output) }),
    };
  };
  return {
    shared: [lastInput],
    mask: { data: input, rank: timeAxis + 1, axis: timeAxis, isCentred: false },
    // What a piece has of the one before: a convolution's reach, and what waits for a stream that lags.
    innerPlaces: lookahead + 2,
    fit,
  };
};

/** The encoder stays on the CPU: it reads whole sentences, which differ in length. */
export const windowsOf = (
  { flow, generator }: PiperPlan,
  sizes: StreamSizes,
): Readonly<Record<StreamName, GraphWindows>> => ({
  flow: windowsOfStream(flow, sizes.flow),
  generator: windowsOfStream(generator, sizes.generator),
});

/** Runs each window once: a sentence does not have all of them. */
export const runWindows = async (graphs: PiperGraphs, sizes: StreamSizes, speaker: number): Promise<void> => {
  const random = randomAt(0, 0);
  const noise = (frames: number) =>
    Float32Array.from({ length: graphs.plan.channels * frames }, () => gaussian(random));
  for (const part of ['flow', 'generator'] as const) {
    const [first = 1] = sizes[part];
    let shorter = 0;
    for (const last of lastLengths(sizes[part])) {
      // The only piece of a sentence.
      if (shorter < longestLast(first)) await graphs.open(part, speaker)(noise(last), last, true);
      shorter = last;
      const run = graphs.open(part, speaker);
      for (const frames of sizes[part]) await run(noise(frames), frames, false);
      await run(noise(last), last, true);
    }
  }
};
