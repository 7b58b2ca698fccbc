/**
 * A second voice format, to prove the seam: a pack is one file NAME.tones.json, its voices are NAME-SPEAKER, they speak
 * French at 16 kHz, and every letter is a tone of 50 ms.
 */
import type { SegmentRequest, WordTime } from '../../../../src/threads/messages.js';
import { type Voice, VoicePackError } from '../../../../src/threads/voices.js';
import type {
  Engine,
  EngineChunk,
  SegmentSynthesis,
  VoiceFormat,
} from '../../../../workers/engines/engine.js';

const suffix = '.tones.json';
const sampleRateHz = 16_000;
const letterMs = 50;
const lettersPerStep = 5;

/** Hz by speaker. */
type Speakers = Readonly<Record<string, number>>;

class TonesSegment implements SegmentSynthesis {
  readonly engine: Engine;
  readonly sampleRateHz = sampleRateHz;
  readonly #request: SegmentRequest;
  readonly #hz: number;
  readonly #letterSamples: number;
  #letter = 0;
  #word = 0;

  constructor(engine: Engine, request: SegmentRequest, hz: number) {
    this.engine = engine;
    this.#request = request;
    this.#hz = hz;
    this.#letterSamples = (letterMs * sampleRateHz) / 1_000 / (request.settings.speed ?? 1);
  }

  next(): EngineChunk | null {
    const { text, words } = this.#request;
    const from = this.#letter;
    if (from === text.length) return null;
    this.#letter = Math.min(text.length, from + lettersPerStep);
    const pcm = new Int16Array((this.#letter - from) * this.#letterSamples);
    for (let i = 0; i < pcm.length; i++)
      pcm[i] = 10_000 * Math.sin((2 * Math.PI * this.#hz * (from * this.#letterSamples + i)) / sampleRateHz);
    const ended: WordTime[] = [];
    for (; this.#word < words.length && words[this.#word]!.end <= this.#letter; this.#word++) {
      const { start, end } = words[this.#word]!;
      ended.push({
        word: this.#word,
        startSample: start * this.#letterSamples,
        endSample: end * this.#letterSamples,
      });
    }
    return { pcm, words: ended, last: this.#letter === text.length };
  }
}

class TonesEngine implements Engine {
  readonly executionProvider = 'cpu';
  readonly voices: readonly Voice[];
  readonly #hz: Speakers;

  constructor(voices: readonly Voice[], hz: Speakers) {
    this.voices = voices;
    this.#hz = hz;
  }

  open(request: SegmentRequest): TonesSegment {
    const hz = this.#hz[request.settings.voiceId];
    if (hz === undefined) throw new RangeError(`unknown voice "${request.settings.voiceId}"`);
    return new TonesSegment(this, request, hz);
  }

  step(segments: readonly TonesSegment[]): Promise<(EngineChunk | null)[]> {
    return Promise.resolve(segments.map((segment) => segment.next()));
  }
}

export const tones: VoiceFormat = {
  name: 'tones',
  looksFor: `NAME${suffix}`,
  recognises: ({ files }) => files.some((name) => name.endsWith(suffix)),

  async read(folder) {
    const file = folder.files.find((name) => name.endsWith(suffix))!;
    const name = file.slice(0, -suffix.length);
    const speakers = Object.entries((await folder.json(file)) as Speakers).map(
      ([speaker, hz]) => [`${name}-${speaker}`, hz] as const,
    );
    if (speakers.length === 0) throw new VoicePackError(`${folder.pathOf(file)}: it has no speakers`);
    return {
      voices: speakers.map(([id]) => ({ id, sampleRateHz, language: 'fr' })),
      modelBytes: (await folder.hold(file)).bytes,
      data: Object.fromEntries(speakers),
    };
  },

  load: ({ voices, data }) => Promise.resolve(new TonesEngine(voices, data as Speakers)),
};
