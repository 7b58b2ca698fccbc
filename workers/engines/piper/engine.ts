/** The engine of Piper's voices. */
import { spellingsOf } from '../../../src/text/replacements.js';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { VoicePack } from '../../../src/threads/voices.js';
import type { EngineMeans } from '../engine.js';
import { type Phonemiser, type PhonemicWord, createPhonemiser, phonemicWords } from '../g2p/speech.js';
import { ModelEngine } from '../model-engine.js';
import { type Sessions, createSessions } from '../onnx.js';
import type { HeldFile } from '../pack.js';
import { type PiperConfig, isText, languageOf } from './config.js';
import type { PartName, PiperPlan } from './cut.js';
import { PiperGraphs, type ReadingStyle, segmentsAtOnceMax } from './graphs.js';
import { IdMaker, type Sentence } from './ids.js';
import { type StreamSizes, runWindows, sizesOf, windowsOf } from './pieces.js';
import { SentenceReading } from './reading.js';
import { PiperSegment } from './segment.js';
import { utteranceOf } from '../steps.js';

/** `VoicePack.data` of this format. */
export interface PiperData {
  readonly config: PiperConfig;
  readonly modelPath: string;
  readonly parts: Readonly<Record<PartName, HeldFile>>;
  readonly plan: PiperPlan;
  /** The id of each voice in the graph, in the order of the voices. */
  readonly speakers: readonly number[];
}

/** Multiplications of these graphs that one core of a small machine does in a millisecond: 22 to 28 million were measured. */
const workPerMs = 25_000_000;

/** The level that the peak of a sentence is brought to; louder sentences of the voice are compressed. */
const peakLevel = 0.8;
const gainRange = [0.25, 8] as const;

/** Spoken at load, if the voice knows its letters: the first runs take many times as long, and its peak shows the level. */
const warmUpText = 'The evening was calm, and nobody spoke.';

/** The words as a voice that was trained on phonemes says them. */
export const pronouncedBy = (
  config: PiperConfig,
  phonemiser: Phonemiser,
  request: Pick<SegmentRequest, 'text' | 'words' | 'spoken'>,
): PhonemicWord[] => phonemicWords(phonemiser, request, config.espeak?.voice ?? languageOf(config), true);

/** Its load measures the gain that brings the voice to the usual level. */
export class PiperEngine extends ModelEngine<number> {
  readonly segmentsMax = segmentsAtOnceMax;
  readonly #data: PiperData;
  readonly #graphs: PiperGraphs;
  readonly #ids: IdMaker;
  readonly #phonemiser: Phonemiser;
  readonly #warmUpText: string;
  readonly #stepWork: number;
  readonly #sizes: StreamSizes;

  private constructor(
    pack: VoicePack,
    sessions: Sessions,
    phonemiser: Phonemiser,
    stepWork: number,
    sizes: StreamSizes,
  ) {
    super(pack, sessions);
    this.#data = pack.data as PiperData;
    this.#graphs = new PiperGraphs(sessions, this.#data.plan);
    this.#ids = new IdMaker(this.#data.config);
    this.#phonemiser = phonemiser;
    this.#warmUpText = pack.sample ?? warmUpText;
    this.#stepWork = stepWork;
    this.#sizes = sizes;
  }

  /** @throws {VoicePackError} when a part cannot be loaded, or speaks no sound */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<PiperEngine> {
    const { modelPath, parts, plan } = pack.data as PiperData;
    const { bounds } = means;
    const phonemiser = await createPhonemiser(bounds);
    const stepWork = bounds.stepComputeMsTarget * workPerMs;
    const sizes = sizesOf(plan, stepWork);
    const sessions = await createSessions(pack.name, parts, means, {
      sharesWeights: true,
      windows: windowsOf(plan, sizes),
    });
    const engine = new PiperEngine(pack, sessions, phonemiser, stepWork, sizes);
    return engine.ready(measured, `${modelPath}: the model does not speak as a Piper voice`);
  }

  open(given: SegmentRequest): PiperSegment {
    const speaker = this.#data.speakers[this.placeOf(given)]!;
    const { temperature, speed = 1 } = given.settings;
    const { config } = this.#data;
    const request = isText(config) ? { ...given, spoken: spellingsOf(given.spoken) } : given;
    const {
      noise_scale: noise = 0.667,
      length_scale: length = 1,
      noise_w: durationNoise = 0.8,
    } = config.inference ?? {};
    const style: ReadingStyle = {
      speaker,
      noiseScale: noise * temperature,
      lengthScale: length / speed,
      durationNoiseScale: durationNoise * temperature,
    };
    return new PiperSegment({
      sampleRateHz: config.audio.sample_rate,
      request,
      gain: this.measured ?? 1,
      stepWork: this.#stepWork,
      sentences: () => this.#sentences(request),
      read: (sentence, place) =>
        new SentenceReading(this.#graphs, sentence, style, { seed: request.seed, place, sizes: this.#sizes }),
    });
  }

  #sentences(request: SegmentRequest): Sentence[] {
    const { config } = this.#data;
    if (isText(config)) return this.#ids.ofText(request);
    return this.#ids.ofPhonemes(pronouncedBy(config, this.#phonemiser, request));
  }

  protected async warmUp(): Promise<number> {
    const loudest = await this.loudestOf(utteranceOf(this.voices[0]!.id, this.#warmUpText, 0));
    if (loudest === 0) throw new Error('it makes only silence');
    if (this.batches !== undefined) await runWindows(this.#graphs, this.#sizes, this.#data.speakers[0]!);
    const [least, most] = gainRange;
    return Math.max(least, Math.min(most, peakLevel / (loudest / 32_767)));
  }
}
