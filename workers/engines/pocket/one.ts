/** The export in one graph: a step takes text, a voice or the last latent, and gives a latent and a frame of audio. */
import { Tensor } from 'onnxruntime-node';
import { product } from '../graph/model.js';
import type { Sessions } from '../onnx.js';
import { floatTensor, floatsIn } from '../tensors.js';
import {
  framesOf,
  type OneGraph,
  type OneGraphName,
  type OneConfig,
  type PocketModel,
  type PromptState,
  type TextReading,
} from './models.js';
import type { VoicePrompt } from './voices.js';

/** Selects the input of a step. */
const gates = { text: [1, 0, 0], latent: [0, 1, 0], voice: [0, 0, 1] } as const;

interface OnePromptState extends PromptState {
  readonly memory: Float32Array;
}

interface Inputs {
  readonly gate: keyof typeof gates;
  /** Positions of the selected input. */
  readonly length: number;
  readonly tokens?: BigInt64Array;
  readonly latent?: Float32Array;
  readonly isFirst?: boolean;
  readonly voice?: Float32Array;
  readonly noise?: Float32Array;
}

const integer = (value: number) => new Tensor('int64', BigInt64Array.of(BigInt(value)), []);

/** The decoder's memory of one piece of text. */
interface Decoder {
  readonly memory: Memory;
  convolutions: Tensor;
  offset: Tensor;
}

/** What the model remembers: positions that are appended. */
class Memory {
  readonly #size: number;
  readonly #values: Float32Array;
  length = 0;

  constructor(size: number, positions: number) {
    this.#size = size;
    this.#values = new Float32Array(size * positions);
  }

  /** @throws if it has no room for them */
  append(values: Float32Array): void {
    const end = this.length * this.#size + values.length;
    if (end > this.#values.length || end % this.#size !== 0)
      throw new Error(`its memory has ${end} values, and room for ${this.#values.length}`);
    this.#values.set(values, this.length * this.#size);
    this.length = end / this.#size;
  }

  /** Forgets all but the last `positions` positions, if those that will be appended have no room. */
  makeRoom(values: Float32Array, positions: number): void {
    const end = this.length * this.#size;
    if (end + values.length <= this.#values.length) return;
    const from = Math.max(0, this.length - positions) * this.#size;
    this.#values.copyWithin(0, from, end);
    this.length = (end - from) / this.#size;
  }

  get all(): Float32Array {
    return this.#values.subarray(0, this.length * this.#size);
  }

  /** The last `positions` positions, with zeros before the first. */
  last(positions: number): Float32Array {
    const from = this.length - positions;
    if (from >= 0) return this.#values.subarray(from * this.#size, this.length * this.#size);
    const padded = new Float32Array(positions * this.#size);
    padded.set(this.all, -from * this.#size);
    return padded;
  }
}

export class OneGraphModel implements PocketModel {
  readonly #run: Sessions<OneGraphName>['run']['step'];
  readonly #config: OneConfig;
  readonly #graph: OneGraph;
  readonly #flowSize: number;
  readonly #decoderSize: number;

  constructor({ run }: Sessions<OneGraphName>, graph: OneGraph) {
    this.#run = run.step;
    this.#config = graph.config;
    this.#graph = graph;
    this.#flowSize = product(graph.flowDims);
    this.#decoderSize = product(graph.decoderDims);
  }

  async readPrompt(voice: VoicePrompt): Promise<OnePromptState> {
    if (voice.kind === 'state')
      throw new Error('a voice in a file of states is for the export in five graphs');
    const memory = new Memory(this.#flowSize, voice.frames);
    const decoder = this.#newDecoder();
    // A copy, because onnxruntime takes no shared memory.
    const values = new Float32Array(voice.values);
    const outputs = await this.#step(memory, decoder, { gate: 'voice', length: voice.frames, voice: values });
    memory.append(this.#floats(outputs, 'flow_kv_new'));
    return { memory: memory.all.slice(), positions: voice.frames };
  }

  async read({ memory: prompt, positions }: OnePromptState, tokens: readonly number[]): Promise<TextReading> {
    const { frame_size: frameSamples, eos_threshold: endThreshold } = this.#config;
    const framesMax = framesOf(this.#config, tokens);
    const memory = new Memory(this.#flowSize, positions + tokens.length + framesMax);
    memory.append(prompt);
    const decoder = this.#newDecoder();
    const ids = BigInt64Array.from(tokens, BigInt);
    const prompted = await this.#step(memory, decoder, { gate: 'text', length: tokens.length, tokens: ids });
    memory.append(this.#floats(prompted, 'flow_kv_new'));
    let latent: Float32Array = new Float32Array(this.#config.latent_dim);
    let isFirst = true;
    return {
      framesMax,
      next: async (noise) => {
        const outputs = await this.#step(memory, decoder, {
          gate: 'latent',
          length: 1,
          latent,
          isFirst,
          noise,
        });
        memory.append(this.#floats(outputs, 'flow_kv_new'));
        const decoded = this.#floats(outputs, 'mimi_kv_new');
        decoder.memory.makeRoom(decoded, this.#config.mimi_kv_len);
        decoder.memory.append(decoded);
        const convolutions = this.#tensor(outputs, 'mimi_conv_out', 'mimi_conv_new');
        if (convolutions.data.length !== this.#config.conv_state_size)
          throw new Error(`its convolutions keep ${convolutions.data.length} values, not as many as it says`);
        decoder.convolutions = convolutions;
        decoder.offset = this.#tensor(outputs, 'mimi_offset_out', 'mimi_offset_new');
        latent = this.#floats(outputs, 'next_latent', 'latent');
        isFirst = false;
        const pcm = floatsIn(outputs, 'audio', frameSamples);
        return { pcm, isEnd: this.#floats(outputs, 'eos_logit', 'eos')[0]! > endThreshold };
      },
    };
  }

  #newDecoder(): Decoder {
    const { conv_state_size: convolutionSize, mimi_kv_len: decoderPositions } = this.#config;
    return {
      memory: new Memory(this.#decoderSize, 2 * decoderPositions),
      convolutions: floatTensor(new Float32Array(convolutionSize), [convolutionSize]),
      offset: integer(0),
    };
  }

  #step(
    memory: Memory,
    decoder: Decoder,
    { gate, length, tokens, latent, isFirst = false, voice, noise }: Inputs,
  ) {
    const { latent_dim: latentSize, model_dim: width, mimi_kv_len: decoderPositions } = this.#config;
    const { flowDims, decoderDims, inputs } = this.#graph;
    const feeds: Record<string, Tensor> = {
      tokens: new Tensor('int64', tokens ?? new BigInt64Array(length), [1, length]),
      latent: floatTensor(latent ?? new Float32Array(length * latentSize), [1, length, latentSize]),
      is_bos: floatTensor(new Float32Array(length).fill(isFirst ? 1 : 0), [1, length, 1]),
      cond: floatTensor(voice ?? new Float32Array(length * width), [1, length, width]),
      gates: floatTensor(Float32Array.from(gates[gate]), [3]),
      noise: floatTensor(noise ?? new Float32Array(latentSize), [1, latentSize]),
      flow_kv: floatTensor(memory.all, [memory.length, ...flowDims]),
      flow_offset: integer(memory.length),
      mimi_kv: floatTensor(decoder.memory.last(decoderPositions), [decoderPositions, ...decoderDims]),
      mimi_offset: decoder.offset,
      mimi_conv: decoder.convolutions,
      decode_steps: floatTensor(Float32Array.of(this.#config.sampler_decode_steps), []),
      // The adapter that reads phonemes stays off: the text is spelt.
      lora: floatTensor(Float32Array.of(0), []),
    };
    return this.#run(Object.fromEntries(inputs.map((name) => [name, feeds[name]!])));
  }

  /** An output, by the names that exports give it. */
  #tensor(outputs: Readonly<Record<string, Tensor>>, ...names: readonly string[]): Tensor {
    const found = names.map((name) => outputs[name]).find((tensor) => tensor !== undefined);
    if (found === undefined) throw new Error(`the graph gave no ${names.join(' or ')}`);
    return found;
  }

  #floats(outputs: Readonly<Record<string, Tensor>>, ...names: readonly string[]): Float32Array {
    return this.#tensor(outputs, ...names).data as Float32Array;
  }
}
