/** The engine of Kokoro and KittenTTS: one graph from ids and a style to all samples of a piece. */
import type { LongStep, VoicePack } from '../../../src/threads/voices.js';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { primaryLanguage } from '../../../src/text/language.js';
import { sampleSentence } from '../../../src/text/sample-sentences.js';
import type { EngineMeans } from '../engine.js';
import { createPhonemiser, phonemicWords, type Phonemiser } from '../g2p/speech.js';
import { ModelEngine } from '../model-engine.js';
import { createSessions, type Sessions } from '../onnx.js';
import type { HeldFile } from '../pack.js';
import { families, type FamilyName } from './families.js';
import { feedsOf, type GraphShape } from './graph.js';
import { idsOfPiece, type Piece, pieceIdsMax, piecesOf, tokensOf } from './pieces.js';
import { sampleRateHz, Segment, type SegmentMeans, type Sound, soundOf } from './segment.js';
import { utteranceOf } from '../steps.js';
import { floatsIn } from '../tensors.js';
import type { Vocabulary } from './symbols.js';
import { styleSize } from './tables.js';

/** One voice of a pack, in the order of `VoicePack.voices`. */
export interface Speaker {
  /** Its first row in the styles of all voices. */
  readonly firstRow: number;
  readonly rows: number;
  /** The factor of its pace. */
  readonly speedPrior: number;
}

/** `VoicePack.data` of this format. */
export interface KokoroData {
  readonly family: FamilyName;
  readonly model: HeldFile;
  readonly shape: GraphShape;
  readonly vocabulary: Vocabulary;
  /** Ids that follow those of every text. */
  readonly ending: readonly number[];
  readonly speakers: readonly Speaker[];
  /** The tables of all speakers, as floats. All threads share it. */
  readonly styles: SharedArrayBuffer;
}

/** A step of up to this many times the target is not long: no thread needs to be kept free of it. */
const longStepFactor = 2;

/** A sound lasts a second at most, at normal pace: more samples would keep the thread for long. */
const idSamplesMax = sampleRateHz;

type NumberArray = Float32Array | Float64Array | BigInt64Array | Int32Array;

export class KokoroEngine extends ModelEngine<LongStep> {
  readonly #data: KokoroData;
  readonly #model: Sessions<'model'>['run']['model'];
  readonly #phonemiser: Phonemiser;
  readonly #styles: Float32Array;
  readonly #segmentMeans: SegmentMeans;

  private constructor(pack: VoicePack, sessions: Sessions<'model'>, phonemiser: Phonemiser) {
    super(pack, sessions);
    this.#data = pack.data as KokoroData;
    this.#model = sessions.run.model;
    this.#phonemiser = phonemiser;
    this.#styles = new Float32Array(this.#data.styles);
    this.#segmentMeans = {
      cut: (request) => this.#cut(request),
      run: (piece, request) => this.#run(piece, request),
    };
  }

  /** @throws {VoicePackError} when the model cannot be loaded, or does not speak */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<KokoroEngine> {
    const { model } = pack.data as KokoroData;
    const phonemiser = await createPhonemiser(means.bounds);
    const sessions = await createSessions(pack.name, { model }, means, {
      sharesWeights: true,
      keepsBuffers: false,
    });
    const engine = new KokoroEngine(pack, sessions, phonemiser);
    const { measured: longStep } = await engine.ready(measured, `${model.path}: the model does not speak`);
    if (longStep!.ms > longStepFactor * means.bounds.stepComputeMsTarget)
      engine.voices = pack.voices.map((voice) => ({ ...voice, longStep: longStep! }));
    return engine;
  }

  open(request: SegmentRequest): Segment {
    this.placeOf(request);
    return new Segment(this.#segmentMeans, request);
  }

  #cut(request: SegmentRequest): Piece[] {
    const { language } = this.voices[this.placeOf(request)]!;
    const { spell } = families[this.#data.family];
    const words = phonemicWords(this.#phonemiser, request, language);
    const tokens = tokensOf(words, language, spell, this.#data.vocabulary);
    if (tokens.every(({ sounds }) => sounds.length === 0)) return [];
    return piecesOf(tokens, request.isFirst === true, { ...request, code: primaryLanguage(language) });
  }

  async #run(piece: Piece, request: SegmentRequest): Promise<Sound> {
    const { shape, ending, family, vocabulary } = this.#data;
    const { closing, rowOf, trimmedSamples } = families[family];
    const speaker = this.#data.speakers[this.placeOf(request)]!;
    const pieceIds = idsOfPiece(piece, vocabulary, closing);
    const row = Math.min(rowOf(pieceIds.ids.length, piece.textUnits), speaker.rows - 1);
    const at = (speaker.firstRow + row) * styleSize;
    const style = this.#styles.slice(at, at + styleSize);
    const speed = (request.settings.speed ?? 1) * speaker.speedPrior;
    const made = await this.#model(feedsOf(shape, pieceIds.ids, ending, style, speed));
    const raw = floatsIn(made, shape.audio);
    const count = 1 + pieceIds.ids.length + ending.length;
    if (raw.length * speed > count * idSamplesMax)
      throw new Error(`it makes ${raw.length} samples for ${count} sounds, more than a second for each`);
    if (!raw.every(Number.isFinite))
      throw new Error(
        'it makes values that are not numbers, as some fp16 exports do: use the fp32 or a quantised one',
      );
    const values = shape.durations === null ? undefined : (made[shape.durations]?.data as NumberArray);
    const durations = values?.length === count ? Array.from(values, Number) : null;
    const isUsable =
      durations?.every((duration) => duration >= 0 && duration < Infinity) === true &&
      durations.some(Boolean);
    return soundOf(raw, trimmedSamples, pieceIds, isUsable ? durations : null);
  }

  /**
   * Speaks twice, because the first run takes many times as long.
   * @returns the longest step, estimated from the second run: the time grows with the ids, or faster for few ids
   */
  protected async warmUp(): Promise<LongStep> {
    const { id, language } = this.voices[0]!;
    const request = { ...utteranceOf(id, sampleSentence(language), 0), isFirst: true };
    const [piece] = this.#cut(request);
    if (piece === undefined) throw new Error('it knows none of the sounds of its language');
    await this.#run(piece, request);
    this.settle();
    const startMs = performance.now();
    const { pcm } = await this.#run(piece, request);
    if (pcm.every((sample) => sample === 0)) throw new Error('it makes only silence');
    const { ids } = idsOfPiece(piece, this.#data.vocabulary, '');
    const factor = pieceIdsMax / ids.length;
    return {
      ms: (performance.now() - startMs) * factor,
      speechMs: (pcm.length * 1_000 * factor) / sampleRateHz,
    };
  }
}
