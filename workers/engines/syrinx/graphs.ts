/** The three graphs of a voice as functions of typed arrays. */
import { strict as assert } from 'node:assert';
import { Tensor } from 'onnxruntime-node';
import type { Sessions } from '../onnx.js';
import { floatTensor, floatsIn, integerTensor } from '../tensors.js';
import type { GraphName, Manifest } from './manifest.js';

const stateNames = ['phase', 'pulses', 'noise', 'tail', 'frameIndex'] as const;

/** What the decoder passes from one chunk to the next. */
export type DecoderState = Readonly<Record<(typeof stateNames)[number], Tensor>>;

/** What the decoder makes sound of: 5 ms in each row. */
export interface Rows {
  readonly f0: Float32Array;
  /** Probability that the row is voiced. */
  readonly voicing: Float32Array;
  /** Natural logarithms of amplitudes, `sizes.bands` for each row. */
  readonly bands: Float32Array;
}

/** Outside of these a net has failed: its graph limits what it gives to narrower ranges. */
const f0Range = [30, 1_000] as const;
const bandRange = [-30, 6] as const;

// The nets' inputs are small numbers: a new BigInt for each, in each frame, would cost more than copying these.
const bigIntegers = Array.from({ length: 4096 }, (_, value) => BigInt(value));
export const toBigInt = (value: number): bigint => bigIntegers[value] ?? BigInt(value);

const assertRange = (values: Float32Array, name: string, [low, high]: readonly [number, number]): void => {
  // Written so that it fails for NaN, too. An iterator would allocate each number: two thirds of a synthesis thread's garbage.
  for (let at = 0; at < values.length; at++)
    if (!(values[at]! >= low && values[at]! <= high)) assert.fail(`${name} is ${values[at]}`);
};

/** Feeds of the encoder, one column for each phone. */
export interface EncoderFeeds {
  /** [4, phones]: phone, stress, word start, terminal class. */
  readonly ids: BigInt64Array;
  /** [2, phones] */
  readonly place: Float32Array;
  /** [4, phones] */
  readonly style: Float32Array;
}

/** Feeds of the frame net, for a window of frames. */
export interface FrameFeeds {
  /** [hidden, phones] */
  readonly hidden: Float32Array;
  /** The phone of each frame. */
  readonly index: BigInt64Array;
  /** [4, frames] */
  readonly position: Float32Array;
  /** [sizes.noise, frames] */
  readonly noise: Float32Array;
  /** [2]: 1 where the window begins and ends with the phones, 0 where it has the margin. */
  readonly edges: BigInt64Array;
}

export class Graphs {
  readonly sizes: Manifest['sizes'];
  readonly margins: Manifest['margins'];
  readonly delaySamples: number;
  /** They run on windows of a few lengths: the decoder gets whole chunks, also at the end of a segment. */
  readonly hasWindows: boolean;
  readonly #rowSamples: number;
  readonly #run: Sessions<GraphName>['run'];

  constructor(sessions: Pick<Sessions<GraphName>, 'run' | 'batches'>, manifest: Manifest) {
    this.#run = sessions.run;
    this.hasWindows = sessions.batches !== undefined;
    this.sizes = manifest.sizes;
    this.margins = manifest.margins;
    this.delaySamples = manifest.decoderDelaySamples;
    this.#rowSamples = manifest.frame.rowSamples;
  }

  /**
   * @returns for each phone, `hidden` [hidden, phones], the usual `duration` in frames, not rounded, and the deviation of
   * its natural logarithm
   */
  async encode({ ids, place, style }: EncoderFeeds): Promise<{
    readonly hidden: Float32Array;
    readonly duration: Float32Array;
    readonly spread: Float32Array;
  }> {
    const phones = place.length / 2;
    const out = await this.#run.encoder({
      ids: new Tensor('int64', ids, [4, phones]),
      place: floatTensor(place, [2, phones]),
      style: floatTensor(style, [4, phones]),
    });
    return {
      hidden: floatsIn(out, 'hidden', this.sizes.hidden * phones),
      duration: floatsIn(out, 'duration', phones),
      spread: floatsIn(out, 'durationSpread', phones),
    };
  }

  /**
   * @param mix weights of the trained speakers
   * @param needed rows
   * @returns two rows for each frame outside the margins, with the bands that `sharpened` reads. A full window has fewer, but at least the needed ones
   */
  async frames(
    { hidden, index, position, noise, edges }: FrameFeeds,
    mix: Float32Array,
    needed: number,
  ): Promise<Rows> {
    const frames = index.length;
    const made = edges.reduce((left, edge) => (edge === 1n ? left : left - this.margins.frames), frames);
    const out = await this.#run.frames({
      hidden: floatTensor(hidden, [1, this.sizes.hidden, hidden.length / this.sizes.hidden]),
      index: new Tensor('int64', index, [frames]),
      position: floatTensor(position, [4, frames]),
      noise: floatTensor(noise, [this.sizes.noise, frames]),
      speaker: floatTensor(mix, [1, mix.length]),
      edges: new Tensor('int64', edges, [2]),
    });
    const rows = this.hasWindows ? Math.min(2 * made, out['f0']!.data.length) : 2 * made;
    assert(rows >= needed, `${rows} rows were made, not ${needed}`);
    const f0 = floatsIn(out, 'f0', rows);
    const voicing = floatsIn(out, 'voicing', rows);
    const bands = floatsIn(out, 'bands', rows * 2 * this.sizes.bands);
    assertRange(f0, 'f0', f0Range);
    assertRange(voicing, 'voicing', [0, 1]);
    assertRange(bands, 'a band', bandRange);
    return { f0, voicing, bands };
  }

  /** The rows from `from` to `to`; beyond the edges the first or the last row is repeated. */
  rowsBetween(rows: Rows, from: number, to: number): Rows {
    const count = rows.f0.length;
    const width = rows.bands.length / count;
    const result = {
      f0: new Float32Array(to - from),
      voicing: new Float32Array(to - from),
      bands: new Float32Array((to - from) * width),
    };
    for (let row = from; row < to; row++) {
      const source = Math.max(0, Math.min(count - 1, row));
      result.f0[row - from] = rows.f0[source]!;
      result.voicing[row - from] = rows.voicing[source]!;
      result.bands.set(rows.bands.subarray(source * width, (source + 1) * width), (row - from) * width);
    }
    return result;
  }

  /** @param noiseIndex where in its noise the decoder starts; @param phase of the first pulse, in periods */
  initialState(noiseIndex: number, phase: number): DecoderState {
    const { pulses, decoderNoise, tail } = this.sizes;
    const zeros = (size: number) => floatTensor(new Float32Array(size), [size]);
    return {
      phase: floatTensor(Float32Array.of(phase), [1]),
      pulses: zeros(pulses),
      noise: zeros(decoderNoise),
      tail: zeros(tail),
      frameIndex: integerTensor([noiseIndex]),
    };
  }

  /** @param rows with the decoder's context at either side */
  async decode(
    { f0, voicing, bands }: Rows,
    state: DecoderState,
    warp: Float32Array,
  ): Promise<{ pcm: Float32Array; state: DecoderState }> {
    const count = f0.length;
    const out = await this.#run.decoder({
      f0: floatTensor(f0, [count]),
      voicing: floatTensor(voicing, [count]),
      bands: floatTensor(bands, [count, this.sizes.bands]),
      ...state,
      warp: floatTensor(warp, [1]),
    });
    return {
      pcm: floatsIn(out, 'pcm', (count - 2 * this.margins.rows) * this.#rowSamples),
      state: Object.fromEntries(
        stateNames.map((name) => {
          const made = out[`${name}Out`]!;
          // A segment keeps it, and counts as the sizes of the manifest.
          assert(made.data.length === state[name].data.length, `${name} has ${made.data.length} values`);
          return [name, made];
        }),
      ) as DecoderState,
    };
  }
}
