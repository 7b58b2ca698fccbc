/** The engine of Piper's voices. */
import { spellingsOf } from '../../../src/text/replacements.js';
import { wordSpans } from '../../../src/text/words.js';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { type Voice, type VoicePack, VoicePackError } from '../../../src/threads/voices.js';
import type { Batches } from '../batches.js';
import type { Engine, EngineMeans, StepResult } from '../engine.js';
import { firstLine } from '../entries.js';
import { Espeak } from '../g2p/espeak.js';
import { type Phonemiser, type PhonemicWord, createPhonemiser, phonemicWords } from '../g2p/speech.js';
import { type Sessions, createSessions } from '../onnx.js';
import type { HeldFile } from '../pack.js';
import { type PiperConfig, isText, languageOf } from './config.js';
import { type PartName, PiperGraphs, type PiperPlan, segmentsAtOnceMax } from './graphs.js';
import { IdMaker, type Sentence } from './ids.js';
import { type StreamSizes, runWindows, sizesOf, windowsOf } from './pieces.js';
import { SentenceReading, type ReadingStyle } from './reading.js';
import { PiperSegment } from './segment.js';
import { stepAll } from '../steps.js';
import { settingsOf } from '../../../src/api/speech-settings.js';

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
): PhonemicWord[] =>
  phonemicWords(phonemiser, request, config.espeak?.voice ?? languageOf(config), { rawPhonemes: true });

export class PiperEngine implements Engine {
  readonly voices: readonly Voice[];
  readonly executionProvider: Engine['executionProvider'];
  readonly #data: PiperData;
  readonly segmentsMax = segmentsAtOnceMax;
  readonly release: Engine['release'];
  readonly #graphs: PiperGraphs;
  readonly #batches: Batches | undefined;
  readonly #ids: IdMaker;
  readonly #phonemiser: Phonemiser;
  readonly #warmUpText: string;
  readonly #stepWork: number;
  readonly #sizes: StreamSizes;
  #gain = 1;

  private constructor(
    { voices, data, sample = warmUpText }: VoicePack,
    graphs: PiperGraphs,
    { executionProvider, release, batches }: Sessions<PartName>,
    phonemiser: Phonemiser,
    stepWork: number,
  ) {
    this.voices = voices;
    this.executionProvider = executionProvider;
    this.release = release;
    this.#batches = batches;
    this.#data = data as PiperData;
    this.#graphs = graphs;
    this.#ids = new IdMaker(this.#data.config);
    this.#phonemiser = phonemiser;
    this.#warmUpText = sample;
    this.#stepWork = stepWork;
    this.#sizes = sizesOf(graphs.plan, stepWork);
  }

  /** @throws {VoicePackError} when a part cannot be loaded, or speaks no sound */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<PiperEngine> {
    const { modelPath, parts, plan } = pack.data as PiperData;
    const { bounds } = means;
    const phonemiser = createPhonemiser(await Espeak.load(bounds), bounds);
    const stepWork = bounds.stepComputeMsTarget * workPerMs;
    const sizes = sizesOf(plan, stepWork);
    const sessions = await createSessions(pack.name, parts, means, {
      sharesWeights: true,
      keepsBuffers: true,
      windows: windowsOf(plan, sizes),
    });
    const graphs = new PiperGraphs(sessions, plan);
    const engine = new PiperEngine(pack, graphs, sessions, phonemiser, stepWork);
    if (typeof measured === 'number') {
      engine.#gain = measured;
      return engine;
    }
    try {
      await engine.#warmUp();
      if (sessions.batches !== undefined) await runWindows(graphs, sizes, engine.#data.speakers[0]!);
      sessions.settle();
    } catch (error) {
      throw new VoicePackError(
        `${modelPath}: the model does not speak as a Piper voice: ${firstLine(error)}`,
      );
    }
    return engine;
  }

  /** The gain that brings the voice to the usual level. */
  get measured(): number {
    return this.#gain;
  }

  open(given: SegmentRequest): PiperSegment {
    const { voiceId, temperature, speed = 1 } = given.settings;
    const voice = this.voices.findIndex(({ id }) => id === voiceId);
    if (voice < 0) throw new RangeError(`unknown voice "${voiceId}"`);
    const { config, speakers } = this.#data;
    const request = isText(config) ? { ...given, spoken: spellingsOf(given.spoken) } : given;
    const {
      noise_scale: noise = 0.667,
      length_scale: length = 1,
      noise_w: durationNoise = 0.8,
    } = config.inference ?? {};
    const style: ReadingStyle = {
      speaker: speakers[voice]!,
      noiseScale: noise * temperature,
      lengthScale: length / speed,
      durationNoiseScale: durationNoise * temperature,
    };
    const stepWork = this.#stepWork;
    return new PiperSegment({
      engine: this,
      sampleRateHz: config.audio.sample_rate,
      request,
      gain: this.#gain,
      stepWork,
      sentences: () => this.#sentences(request),
      read: (sentence, place) =>
        new SentenceReading(this.#graphs, sentence, style, { seed: request.seed, place, sizes: this.#sizes }),
    });
  }

  get batchMax(): number {
    return this.#batches?.max ?? 1;
  }

  step(segments: readonly PiperSegment[]): Promise<StepResult[]> {
    return stepAll(segments, this.#batches);
  }

  #sentences(request: SegmentRequest): Sentence[] {
    const { config } = this.#data;
    if (isText(config)) return this.#ids.ofText(request);
    return this.#ids.ofPhonemes(pronouncedBy(config, this.#phonemiser, request));
  }

  async #warmUp(): Promise<void> {
    const settings = settingsOf({ voiceId: this.voices[0]!.id });
    const request = {
      text: this.#warmUpText,
      words: wordSpans(this.#warmUpText),
      before: '',
      after: '',
      settings,
      seed: 0,
      utteranceSeed: 0,
    };
    const segment = this.open(request);
    let peak = 0;
    for (let chunk = await segment.step(); chunk !== null; chunk = await segment.step())
      for (const sample of chunk.pcm) peak = Math.max(peak, Math.abs(sample) / 32_767);
    if (peak === 0) throw new Error('it makes only silence');
    this.#gain = Math.max(gainRange[0], Math.min(gainRange[1], peakLevel / peak));
  }
}
