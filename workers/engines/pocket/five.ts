/** The export in five graphs: text, speech model, flow, decoder, and an encoder of recordings that is not used. */
import type { Tensor } from 'onnxruntime-node';
import type { Sessions } from '../onnx.js';
import { joinFloats } from '../pcm.js';
import { floatTensor, floatsIn, integerTensor } from '../tensors.js';
import type {
  FiveGraphName,
  FiveGraphs,
  PromptState,
  PocketConfig,
  PocketModel,
  TextReading,
} from './models.js';
import { type Corner, type State, compactOf, stateAfter, stateFrom } from './states.js';
import { type VoicePrompt, readState } from './voices.js';

interface FivePromptState extends PromptState {
  readonly corners: ReadonlyMap<string, Corner>;
}

/** Positions that a state has taken: the largest of its counters. */
const positionsOf = (corners: ReadonlyMap<string, Corner>): number => {
  let positions = 0;
  for (const { values } of corners.values())
    if (values instanceof BigInt64Array && values.length === 1)
      positions = Math.max(positions, Number(values[0]));
  return positions;
};

export class FiveGraphModel implements PocketModel {
  readonly #run: Sessions<FiveGraphName>['run'];
  readonly #config: PocketConfig;
  readonly #graphs: FiveGraphs;
  /** Positions of the smallest cache. */
  readonly #capacity: number;
  readonly #noText: Tensor;
  readonly #noSpeech: Tensor;

  constructor({ run }: Sessions<FiveGraphName>, config: PocketConfig, graphs: FiveGraphs) {
    this.#run = run;
    this.#config = config;
    this.#graphs = graphs;
    const caches = graphs.main.filter(({ type, dims }) => type === 'float32' && dims.length > 2);
    this.#capacity = Math.min(...caches.map(({ dims }) => Math.max(...dims)));
    this.#noText = floatTensor(new Float32Array(0), [1, 0, config.model_dim]);
    this.#noSpeech = floatTensor(new Float32Array(0), [1, 0, config.latent_dim]);
  }

  async readPrompt(voice: VoicePrompt): Promise<FivePromptState> {
    const { main, before } = this.#graphs;
    if (voice.kind === 'state') {
      const corners = readState(voice, main);
      return { corners, positions: positionsOf(corners) };
    }
    const { model_dim: width } = this.#config;
    // A copy, because onnxruntime takes no shared memory.
    const latents = joinFloats(before === null ? [voice.values] : [before, voice.values]);
    const state = await this.#prompt(
      floatTensor(latents, [1, latents.length / width, width]),
      stateFrom(main),
    );
    const corners = compactOf(main, state);
    return { corners, positions: latents.length / width };
  }

  async read({ corners, positions }: FivePromptState, tokens: readonly number[]): Promise<TextReading> {
    const { main, decoder } = this.#graphs;
    const ids = integerTensor(tokens, [1, tokens.length]);
    const { model_dim: width, latent_dim: latentSize } = this.#config;
    const embeddings = floatsIn(await this.#run.text({ token_ids: ids }), 'embeddings');
    const text = floatTensor(embeddings, [1, embeddings.length / width, width]);
    let state = await this.#prompt(text, stateFrom(main, corners));
    let decoderState = stateFrom(decoder);
    // The first latent is not a number: the model's sign for the beginning.
    let latent = new Float32Array(latentSize).fill(Number.NaN);
    return {
      framesMax: this.#capacity - positions - tokens.length,
      next: async (noise) => {
        const spoken = await this.#run.main({
          sequence: floatTensor(latent, [1, 1, latentSize]),
          text_embeddings: this.#noText,
          ...state,
        });
        state = stateAfter(main, spoken);
        const isEnd = floatsIn(spoken, 'eos_logit')[0]! > this.#config.eos_threshold;
        latent = await this.#flow(floatsIn(spoken, 'conditioning'), noise);
        const decoded = await this.#run.decoder({
          latent: floatTensor(latent, [1, 1, latentSize]),
          ...decoderState,
        });
        decoderState = stateAfter(decoder, decoded);
        return { pcm: floatsIn(decoded, 'audio_frame', this.#config.frame_size), isEnd };
      },
    };
  }

  async #prompt(text: Tensor, state: State): Promise<State> {
    const outputs = await this.#run.main({ sequence: this.#noSpeech, text_embeddings: text, ...state });
    return stateAfter(this.#graphs.main, outputs);
  }

  /** From noise to a latent, in a few straight steps. */
  async #flow(conditioning: Float32Array, noise: Float32Array): Promise<Float32Array<ArrayBuffer>> {
    const { flowSteps } = this.#graphs;
    const x = new Float32Array(noise);
    const c = floatTensor(conditioning, [1, conditioning.length]);
    for (let step = 0; step < flowSteps; step++) {
      const outputs = await this.#run.flow({
        c,
        s: floatTensor(Float32Array.of(step / flowSteps), [1, 1]),
        t: floatTensor(Float32Array.of((step + 1) / flowSteps), [1, 1]),
        x: floatTensor(x, [1, x.length]),
      });
      const direction = floatsIn(outputs, 'flow_dir');
      for (let i = 0; i < x.length; i++) x[i]! += direction[i]! / flowSteps;
    }
    return x;
  }
}
