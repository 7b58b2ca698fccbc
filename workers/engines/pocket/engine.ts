/** Speaks with an export of Pocket TTS: a step is one frame of 80 ms. */
import { Latest } from '../../../src/latest.js';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { VoicePack } from '../../../src/threads/voices.js';
import type { EngineMeans } from '../engine.js';
import { ModelEngine } from '../model-engine.js';
import { type Sessions, createSessions } from '../onnx.js';
import { FiveGraphModel } from './five.js';
import {
  type PromptState,
  type PocketBasics,
  type PocketData,
  type PocketModel,
  segmentsAtOnceMax,
  voicesKeptMax,
} from './models.js';
import { OneGraphModel } from './one.js';
import { PocketSegment } from './segment.js';
import { utteranceOf } from '../steps.js';
import { Tokeniser } from './tokeniser.js';

const warmUpText = 'Yes.';

export class PocketEngine extends ModelEngine {
  readonly segmentsMax = segmentsAtOnceMax;
  readonly #basics: PocketBasics;
  readonly #model: PocketModel;
  readonly #tokeniser: Tokeniser;
  /** The prompts of the last used voices, as the model has read them. */
  readonly #prompts = new Latest<string, Promise<PromptState>>(voicesKeptMax);

  private constructor(pack: VoicePack, sessions: Omit<Sessions, 'run'>, model: PocketModel) {
    super(pack, sessions);
    this.#basics = (pack.data as PocketData).basics;
    this.#model = model;
    this.#tokeniser = new Tokeniser(this.#basics.vocabulary);
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or does not run as its inputs say */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<PocketEngine> {
    const data = pack.data as PocketData;
    const { config } = data.basics;
    const sessions = await createSessions<string>(pack.name, data.files, means, { sharesWeights: true });
    const model =
      'five' in data
        ? new FiveGraphModel(sessions, config, data.five)
        : new OneGraphModel(sessions, data.one);
    const engine = new PocketEngine(pack, sessions, model);
    const [path] = Object.values(data.files).map((file) => file.path);
    return engine.ready(measured, `${path}: the models do not run`);
  }

  open(request: SegmentRequest): PocketSegment {
    const place = this.placeOf(request);
    return new PocketSegment(request, {
      config: this.#basics.config,
      model: this.#model,
      tokeniser: this.#tokeniser,
      promptState: () => this.#promptOf(place),
    });
  }

  protected async warmUp(): Promise<true> {
    await this.loudestOf(utteranceOf(this.voices[0]!.id, warmUpText, 0));
    return true;
  }

  #promptOf(place: number): Promise<PromptState> {
    const { id, prompt } = this.#basics.voices[place]!;
    const state = this.#prompts.use(id, () => this.#model.readPrompt(prompt));
    state.catch(() => this.#prompts.delete(id));
    return state;
  }
}
