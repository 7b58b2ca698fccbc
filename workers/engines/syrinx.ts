/** The engine of our own voice packs (format syrinx-1). */
import type { ExecutionProvider } from '../../src/config.js';
import { clausesOf } from './clauses.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import type { Espeak } from './espeak.js';
import { Graphs } from './graphs.js';
import { type Manifest, type Speaker, type VoicePack, VoicePackError } from './manifest.js';
import { PhoneSet } from './phones.js';
import { Pronouncer } from './pronunciation.js';
import { Prosody } from './prosody.js';
import { type EngineLog, createSessions } from './sessions.js';
import { Timeline } from './timeline.js';
import { PhoneTrack } from './track.js';
import { Segment, Turn } from './voice.js';

/** Spoken at load: first runs take many times as long as later ones. Long enough for every chunk of the grid. */
const warmUpText = 'When the evening came we were all sitting near the window.';
/** Spoken by each voice at load, to bring them to one level. */
const levelText = 'Near the old window.';
/** Root mean square of that sentence: -20 dB of full scale, which leaves room for the loudest vowels. */
const levelTarget = 0.1;
const gainMax = 2;

interface Voice {
  readonly speaker: Speaker;
  readonly mix: Float32Array;
  readonly warp: Float32Array;
  /** Natural logarithm of the mean F0, in Hz, before the speaker's own pitch. */
  readonly pitchMean: number;
  /** Brings all voices to one level. */
  readonly gain: number;
}

export class SyrinxEngine implements Engine {
  readonly sampleRateHz: number;
  readonly voiceIds: readonly string[];
  readonly #manifest: Manifest;
  readonly #graphs: Graphs;
  readonly #pronouncer: Pronouncer;
  readonly #voices = new Map<string, Voice>();
  readonly #turn = new Turn();

  private constructor(manifest: Manifest, graphs: Graphs, pronouncer: Pronouncer) {
    this.#manifest = manifest;
    this.#graphs = graphs;
    this.#pronouncer = pronouncer;
    this.sampleRateHz = manifest.sampleRateHz;
    this.voiceIds = manifest.speakers.map(({ id }) => id);
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or is not what the manifest says */
  static async load(
    pack: VoicePack,
    provider: ExecutionProvider,
    espeak: Espeak,
    log: EngineLog,
  ): Promise<SyrinxEngine> {
    const { manifest } = pack;
    const sessions = await createSessions(pack, provider, log);
    const pronouncer = new Pronouncer(espeak, new PhoneSet(manifest.phones));
    const engine = new SyrinxEngine(manifest, new Graphs(sessions, manifest), pronouncer);
    try {
      for (const speaker of manifest.speakers) await engine.#addVoice(speaker);
      await engine.#speak(warmUpText, engine.voiceIds[0]!);
    } catch (error) {
      const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
      throw new VoicePackError(`${pack.manifestPath}: the models do not run as the manifest says: ${reason}`);
    }
    return engine;
  }

  open(request: SegmentRequest): SegmentSynthesis {
    return this.openSegment(request, false);
  }

  /** As `open`. @param whole decodes in one step, for measurements */
  openSegment(request: SegmentRequest, whole: boolean): Segment {
    const voice = this.#voices.get(request.voiceId);
    if (voice === undefined) throw new RangeError(`unknown voice "${request.voiceId}"`);
    const prosody = new Prosody(request, voice.speaker, voice.pitchMean);
    return new Segment({
      graphs: this.#graphs,
      timeline: this.#timeline(request, prosody, voice.mix),
      prosody,
      words: request.words.length,
      warp: voice.warp,
      gain: voice.gain,
      pitchMeanHz: Math.exp(voice.pitchMean),
      marginFrames: this.#manifest.margins.frames,
      whole,
      turn: this.#turn,
    });
  }

  #timeline(request: SegmentRequest, prosody: Prosody, mix: Float32Array): Timeline {
    const { text, words, spoken = [] } = request;
    const clauses = clausesOf(text, words, spoken, request);
    const track = new PhoneTrack(clauses, words.length, this.#pronouncer, spoken);
    return new Timeline(track, this.#graphs, prosody, mix, this.#manifest.margins.phones);
  }

  async #addVoice(speaker: Speaker): Promise<void> {
    const { logMean } = this.#manifest.trainingF0;
    const weights = speaker.mix.reduce((sum, weight) => sum + weight, 0);
    const voice = {
      speaker,
      mix: Float32Array.from(speaker.mix),
      warp: Float32Array.of(speaker.warp),
      pitchMean: speaker.mix.reduce((sum, weight, i) => sum + (weight / weights) * logMean[i]!, 0),
    };
    // A livelier or faster reading is no louder.
    const same = [...this.#voices.values()].find(
      (other) =>
        other.speaker.warp === speaker.warp && other.mix.every((weight, i) => weight === voice.mix[i]),
    );
    this.#voices.set(speaker.id, { ...voice, gain: same?.gain ?? 1 });
    if (same !== undefined) return;
    const level = await this.#speak(levelText, speaker.id);
    if (!(level > 0)) throw new Error(`voice "${speaker.id}" is silent`);
    const gain = Math.min(gainMax, Math.max(1 / gainMax, levelTarget / level));
    this.#voices.set(speaker.id, { ...voice, gain });
  }

  /** Speaks to nobody. @returns root mean square of the sound, the silence at its end left out; full scale is 1 */
  async #speak(text: string, voiceId: string): Promise<number> {
    const request = { text, words: [], before: '', after: '', voiceId, temperature: 1 };
    const segment = this.openSegment({ ...request, seed: 0, utteranceSeed: 0 }, false);
    let power = 0;
    let samples = 0;
    for (;;) {
      const chunk = await segment.stepFloat();
      if (chunk === null) return Math.sqrt(power / samples);
      for (const value of chunk.pcm)
        if (value !== 0) {
          power += value * value;
          samples++;
        }
    }
  }
}
