/**
 * A second voice format, to prove the seam: a pack is one file NAME.tones.json, its voices are NAME-SPEAKER, they speak
 * French at 16 kHz, and every letter is a tone of 50 ms. A voice may be silent for a while before each segment.
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

interface Speaker {
  readonly hz: number;
  /** Before the first letter. */
  readonly silenceMs: number;
}

/** In the file, a speaker may be given by Hz alone. */
type Speakers = Readonly<Record<string, number | Speaker>>;

const speakerOf = (given: number | Speaker): Speaker =>
  typeof given === 'number' ? { hz: given, silenceMs: 0 } : given;

class TonesSegment implements SegmentSynthesis {
  readonly sampleRateHz = sampleRateHz;
  readonly #request: SegmentRequest;
  readonly #hz: number;
  readonly #letterSamples: number;
  readonly #silenceSamples: number;
  #letter = 0;
  #word = 0;

  constructor(request: SegmentRequest, { hz, silenceMs }: Speaker) {
    this.#request = request;
    this.#hz = hz;
    this.#letterSamples = (letterMs * sampleRateHz) / 1_000 / (request.settings.speed ?? 1);
    this.#silenceSamples = (silenceMs * sampleRateHz) / 1_000;
  }

  step(): Promise<EngineChunk | null> {
    return Promise.resolve(this.#next());
  }

  #next(): EngineChunk | null {
    const { text, words } = this.#request;
    const from = this.#letter;
    if (from === text.length) return null;
    this.#letter = Math.min(text.length, from + lettersPerStep);
    const before = from === 0 ? this.#silenceSamples : 0;
    const pcm = new Int16Array(before + (this.#letter - from) * this.#letterSamples);
    for (let i = before; i < pcm.length; i++) {
      const at = from * this.#letterSamples + i - before;
      pcm[i] = 10_000 * Math.sin((2 * Math.PI * this.#hz * at) / sampleRateHz);
    }
    const ended: WordTime[] = [];
    for (; this.#word < words.length && words[this.#word]!.end <= this.#letter; this.#word++) {
      const { start, end } = words[this.#word]!;
      ended.push({
        word: this.#word,
        startSample: this.#silenceSamples + start * this.#letterSamples,
        endSample: this.#silenceSamples + end * this.#letterSamples,
      });
    }
    return { pcm, words: ended, last: this.#letter === text.length };
  }
}

class TonesEngine implements Engine {
  readonly executionProvider = 'cpu';
  readonly voices: readonly Voice[];
  readonly #speakers: Speakers;

  constructor(voices: readonly Voice[], speakers: Speakers) {
    this.voices = voices;
    this.#speakers = speakers;
  }

  open(request: SegmentRequest): TonesSegment {
    const speaker = this.#speakers[request.settings.voiceId];
    if (speaker === undefined) throw new RangeError(`unknown voice "${request.settings.voiceId}"`);
    return new TonesSegment(request, speakerOf(speaker));
  }

  release(): Promise<void> {
    return Promise.resolve();
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
      ([speaker, given]) => [`${name}-${speaker}`, given] as const,
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
