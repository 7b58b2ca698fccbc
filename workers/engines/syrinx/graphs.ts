/** The three graphs of a voice as functions of typed arrays. Feeds are built in buffers that are reused. */
import { Tensor } from 'onnxruntime-node';
import type { Sessions } from '../onnx.js';
import { joinFloats } from '../pcm.js';
import type { GraphName, Manifest } from './manifest.js';

/** What the decoder passes from one chunk to the next. */
export interface DecoderState {
  readonly phase: Tensor;
  readonly lastF0: Tensor;
  readonly excitation: Tensor;
  readonly tail: Tensor;
  readonly frameIndex: Tensor;
}

/** Vocoder parameters, one row for each sub-frame. */
export interface FrameParameters {
  readonly f0: Float32Array;
  readonly voicing: Float32Array;
  readonly cepstra: Float32Array;
  readonly aperiodicity: Float32Array;
}

const cepstraPerSubFrame = 25;
const bandsPerSubFrame = 5;
/** Samples between the decoder's excitation and its output: its analysis window looks that far back. */
export const decoderDelaySamples = 360;
const excitationSamples = 360;
const tailSamples = 840;

/** The rows from `from` to `to`, without copying. */
export const rowsOf = (all: FrameParameters, from: number, to: number): FrameParameters => ({
  f0: all.f0.subarray(from, to),
  voicing: all.voicing.subarray(from, to),
  cepstra: all.cepstra.subarray(from * cepstraPerSubFrame, to * cepstraPerSubFrame),
  aperiodicity: all.aperiodicity.subarray(from * bandsPerSubFrame, to * bandsPerSubFrame),
});

export const joinRows = (parts: readonly FrameParameters[]): FrameParameters => ({
  f0: joinFloats(parts.map(({ f0 }) => f0)),
  voicing: joinFloats(parts.map(({ voicing }) => voicing)),
  cepstra: joinFloats(parts.map(({ cepstra }) => cepstra)),
  aperiodicity: joinFloats(parts.map(({ aperiodicity }) => aperiodicity)),
});

const float = (data: Float32Array, dims: readonly number[]) => new Tensor('float32', data, dims);

/** A buffer that grows when a larger one is needed, which does not happen in the steady state. */
class Feed<T extends Float32Array | BigInt64Array> {
  readonly #make: (size: number) => T;
  #buffer: T;

  constructor(make: (size: number) => T, size: number) {
    this.#make = make;
    this.#buffer = make(size);
  }

  take(size: number): T {
    if (this.#buffer.length < size) this.#buffer = this.#make(2 * size);
    return this.#buffer.subarray(0, size) as T;
  }
}

const floats = (size: number) => new Feed((length) => new Float32Array(length), size);
const integers = (size: number) => new Feed((length) => new BigInt64Array(length), size);

// The nets' inputs are small numbers: a new BigInt for each, in each frame, would cost more than copying these.
const bigIntegers = Array.from({ length: 4096 }, (_, value) => BigInt(value));
export const toBigInt = (value: number): bigint => bigIntegers[value] ?? BigInt(value);

export class Graphs {
  readonly hiddenSize: number;
  readonly #run: Sessions<GraphName>['run'];
  readonly #ids = integers(4 * 64);
  readonly #place = floats(2 * 64);
  readonly #hidden = floats(64 * 192);
  readonly #index = integers(256);
  readonly #position = floats(4 * 256);

  constructor(sessions: Sessions<GraphName>, manifest: Manifest) {
    this.#run = sessions.run;
    this.hiddenSize = manifest.hiddenSize;
  }

  /** The encoder's feeds for `count` phones: `ids` [4, count], `place` [2, count]. */
  encoderFeeds(count: number): { ids: BigInt64Array; place: Float32Array } {
    return { ids: this.#ids.take(4 * count), place: this.#place.take(2 * count) };
  }

  /** @returns `hidden` [H, count], and `duration` in frames, not rounded */
  async encode(
    { ids, place }: { ids: BigInt64Array; place: Float32Array },
    mix: Float32Array,
  ): Promise<{ hidden: Float32Array; duration: Float32Array }> {
    const count = place.length / 2;
    const { hidden, duration } = await this.#run.encoder({
      ids: new Tensor('int64', ids, [4, count]),
      place: float(place, [2, count]),
      speaker: float(mix, [1, mix.length]),
    });
    return { hidden: hidden!.data as Float32Array, duration: duration!.data as Float32Array };
  }

  /** The frame net's feeds: `hidden` [H, phones], `index` [frames], `position` [4, frames]. */
  frameFeeds(phones: number, frames: number) {
    return {
      hidden: this.#hidden.take(this.hiddenSize * phones),
      index: this.#index.take(frames),
      position: this.#position.take(4 * frames),
    };
  }

  async frames(feeds: {
    hidden: Float32Array;
    index: BigInt64Array;
    position: Float32Array;
  }): Promise<FrameParameters> {
    const { hidden, index, position } = feeds;
    const out = await this.#run.frames({
      hidden: float(hidden, [1, this.hiddenSize, hidden.length / this.hiddenSize]),
      index: new Tensor('int64', index, [index.length]),
      position: float(position, [4, index.length]),
    });
    return {
      f0: out['f0']!.data as Float32Array,
      voicing: out['voicing']!.data as Float32Array,
      cepstra: out['cepstra']!.data as Float32Array,
      aperiodicity: out['aperiodicity']!.data as Float32Array,
    };
  }

  /** @param noiseIndex where in its noise the decoder starts; @param phase of the first pulse, in periods */
  initialState(lastF0Hz: number, noiseIndex: number, phase: number): DecoderState {
    return {
      phase: float(Float32Array.of(phase), [1]),
      lastF0: float(Float32Array.of(lastF0Hz), [1]),
      excitation: float(new Float32Array(excitationSamples), [excitationSamples]),
      tail: float(new Float32Array(tailSamples), [tailSamples]),
      frameIndex: new Tensor('int64', BigInt64Array.of(BigInt(noiseIndex)), [1]),
    };
  }

  async decode(
    { f0, voicing, cepstra, aperiodicity }: FrameParameters,
    state: DecoderState,
    warp: Float32Array,
  ): Promise<{ pcm: Float32Array; state: DecoderState }> {
    const count = f0.length;
    const out = await this.#run.decoder({
      f0: float(f0, [count]),
      voicing: float(voicing, [count]),
      cepstra: float(cepstra, [count, cepstraPerSubFrame]),
      aperiodicity: float(aperiodicity, [count, bandsPerSubFrame]),
      ...state,
      warp: float(warp, [1]),
    });
    return {
      pcm: out['pcm']!.data as Float32Array,
      state: {
        phase: out['phaseOut']!,
        lastF0: out['lastF0Out']!,
        excitation: out['excitationOut']!,
        tail: out['tailOut']!,
        frameIndex: out['frameIndexOut']!,
      },
    };
  }
}
