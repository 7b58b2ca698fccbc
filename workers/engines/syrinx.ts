/** The engine of our own voice packs (format syrinx-1). */
import type { ExecutionProvider } from '../../src/config.js';
import type { Log } from '../../src/log.js';
import { clausesOf } from './clauses.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import type { Espeak } from './espeak.js';
import { Graphs } from './graphs.js';
import { type Manifest, type Speaker, type VoicePack, VoicePackError } from './manifest.js';
import { PhoneSet } from './phones.js';
import { Pronouncer } from './pronunciation.js';
import { Prosody } from './prosody.js';
import { createSessions } from './sessions.js';
import { Timeline } from './timeline.js';
import { PhoneTrack } from './track.js';
import { Segment, Turn, chunkGrid } from './voice.js';

/** Spoken to each speaker at load: long enough for every chunk of the grid, and for a mean of F0. */
const warmUpText = 'When the evening came we were all sitting near the window, and nobody remembered who had called.';

interface Voice {
  readonly speaker: Speaker;
  readonly mix: Float32Array;
  readonly warp: Float32Array;
  /** Natural logarithm of the mean F0, in Hz, before the speaker's own pitch. */
  readonly pitchMean: number;
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
    log: Pick<Log, 'info' | 'warn'>,
  ): Promise<SyrinxEngine> {
    const { manifest } = pack;
    const sessions = await createSessions(pack, provider, log);
    const pronouncer = new Pronouncer(espeak, new PhoneSet(manifest.phones));
    const engine = new SyrinxEngine(manifest, new Graphs(sessions, manifest), pronouncer);
    try {
      for (const speaker of manifest.speakers) await engine.#addVoice(speaker);
      await engine.#warmUp();
    } catch (error) {
      const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
      throw new VoicePackError(`${pack.manifestPath}: the models do not run as the manifest says: ${reason}`);
    }
    return engine;
  }

  open(request: SegmentRequest): SegmentSynthesis {
    return this.openOnGrid(request, chunkGrid);
  }

  /** As `open`, decoding in chunks of these many frames (the last is repeated). The samples do not depend on them. */
  openOnGrid(request: SegmentRequest, grid: readonly number[]): Segment {
    const voice = this.#voices.get(request.voiceId);
    if (voice === undefined) throw new RangeError(`unknown voice "${request.voiceId}"`);
    const prosody = new Prosody(request.seed, request.temperature, voice.speaker, voice.pitchMean);
    return new Segment({
      graphs: this.#graphs,
      timeline: this.#timeline(request, prosody, voice.mix),
      prosody,
      words: request.words.length,
      warp: voice.warp,
      gain: 1,
      pitchMeanHz: Math.exp(voice.pitchMean),
      marginFrames: this.#manifest.margins.frames,
      grid,
      turn: this.#turn,
    });
  }

  #timeline({ text, words }: Pick<SegmentRequest, 'text' | 'words'>, prosody: Prosody, mix: Float32Array): Timeline {
    const track = new PhoneTrack(clausesOf(text, words), words.length, this.#pronouncer);
    return new Timeline(track, this.#graphs, prosody, mix, this.#manifest.margins.phones);
  }

  async #addVoice(speaker: Speaker): Promise<void> {
    const mix = Float32Array.from(speaker.mix);
    const same = [...this.#voices.values()].find((voice) => voice.mix.every((weight, i) => weight === mix[i]));
    const pitchMean = same?.pitchMean ?? (await this.#measurePitch(speaker, mix));
    this.#voices.set(speaker.id, { speaker, mix, warp: Float32Array.of(speaker.warp), pitchMean });
  }

  /** Mean of the logarithm of F0 over the voiced frames of a sentence, as the nets give it to a mix of speakers. */
  async #measurePitch(speaker: Speaker, mix: Float32Array): Promise<number> {
    const timeline = this.#timeline({ text: warmUpText, words: [] }, new Prosody(0, 1, speaker, 0), mix);
    await timeline.extend(Number.POSITIVE_INFINITY);
    const { f0, voicing } = await this.#graphs.frames(timeline.feeds(0, timeline.frames));
    let sum = 0;
    let weight = 0;
    for (let i = 0; i < f0.length; i++) {
      sum += voicing[i]! * Math.log(f0[i]!);
      weight += voicing[i]!;
    }
    const mean = sum / weight;
    if (!Number.isFinite(mean)) throw new Error(`no F0 for voice "${speaker.id}"`);
    return mean;
  }

  /** First runs of each shape take many times as long as later ones. */
  async #warmUp(): Promise<void> {
    const request = { text: warmUpText, words: [], voiceId: this.voiceIds[0]!, temperature: 1, seed: 0 };
    const segment = this.openOnGrid(request, chunkGrid);
    for (;;) if ((await segment.stepFloat()) === null) return;
  }
}
