/** Speaks with an export of Pocket TTS: a step is one frame of 80 ms. */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { type Voice, type VoicePack, VoicePackError } from '../../../src/threads/voices.js';
import type { Engine, EngineMeans, StepResult } from '../engine.js';
import { firstLine } from '../entries.js';
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
import { stepAll } from '../steps.js';
import { Tokeniser } from './tokeniser.js';
import { settingsOf } from '../../../src/api/speech-settings.js';

const warmUpText = 'Yes.';
const choices = { sharesWeights: true, keepsBuffers: true } as const;

/** The prompts of the last used voices, as the model has read them. */
class PromptStates {
  readonly #model: PocketModel;
  readonly #voices: PocketBasics['voices'];
  readonly #prompts = new Map<string, Promise<PromptState>>();

  constructor(model: PocketModel, { voices }: PocketBasics) {
    this.#model = model;
    this.#voices = voices;
  }

  get(voiceId: string): Promise<PromptState> {
    const { prompt } = this.#voices.find(({ id }) => id === voiceId)!;
    const state = this.#prompts.get(voiceId) ?? this.#model.readPrompt(prompt);
    // The last used voice is the last of the map.
    this.#prompts.delete(voiceId);
    this.#prompts.set(voiceId, state);
    const [oldest] = this.#prompts.keys();
    if (this.#prompts.size > voicesKeptMax && oldest !== undefined) this.#prompts.delete(oldest);
    state.catch(() => this.#prompts.delete(voiceId));
    return state;
  }
}

export class PocketEngine implements Engine {
  readonly voices: readonly Voice[];
  readonly executionProvider: Engine['executionProvider'];
  readonly segmentsMax = segmentsAtOnceMax;
  readonly release: Engine['release'];
  readonly measured = true;
  readonly #basics: PocketBasics;
  readonly #model: PocketModel;
  readonly #tokeniser: Tokeniser;
  readonly #prompts: PromptStates;

  private constructor(
    voices: readonly Voice[],
    { executionProvider, release }: Pick<Engine, 'executionProvider' | 'release'>,
    basics: PocketBasics,
    model: PocketModel,
  ) {
    this.voices = voices;
    this.executionProvider = executionProvider;
    this.release = release;
    this.#basics = basics;
    this.#model = model;
    this.#tokeniser = new Tokeniser(basics.vocabulary);
    this.#prompts = new PromptStates(model, basics);
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or does not run as its inputs say */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<PocketEngine> {
    const data = pack.data as PocketData;
    let model: PocketModel;
    let made: Pick<Sessions<string>, 'executionProvider' | 'release' | 'settle'>;
    if ('five' in data) {
      const sessions = await createSessions(pack.name, data.files, means, choices);
      made = sessions;
      model = new FiveGraphModel(sessions, data.basics, data.five);
    } else {
      const sessions = await createSessions(pack.name, data.files, means, choices);
      made = sessions;
      model = new OneGraphModel(sessions, data.basics, data.one);
    }
    const engine = new PocketEngine(pack.voices, made, data.basics, model);
    if (measured === true) return engine;
    try {
      await engine.#warmUp();
      made.settle();
    } catch (error) {
      const [path] = Object.values(data.files).map((file) => file.path);
      throw new VoicePackError(`${path}: the models do not run: ${firstLine(error)}`);
    }
    return engine;
  }

  open(request: SegmentRequest): PocketSegment {
    const { voiceId } = request.settings;
    if (!this.voices.some(({ id }) => id === voiceId)) throw new RangeError(`unknown voice "${voiceId}"`);
    return new PocketSegment(request, {
      engine: this,
      basics: this.#basics,
      model: this.#model,
      tokeniser: this.#tokeniser,
      promptState: () => this.#prompts.get(voiceId),
    });
  }

  step(segments: readonly PocketSegment[]): Promise<StepResult[]> {
    return stepAll(segments);
  }

  async #warmUp(): Promise<void> {
    const segment = this.open({
      ...{ text: warmUpText, words: [{ start: 0, end: warmUpText.length }], before: '', after: '' },
      settings: settingsOf({ voiceId: this.voices[0]!.id }),
      ...{ seed: 0, utteranceSeed: 0 },
    });
    for (let chunk = await segment.step(); chunk?.last === false;) chunk = await segment.step();
  }
}
