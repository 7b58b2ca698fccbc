/** The engine of our own voice packs (format syrinx-1). */
import { clausesOf } from './clauses.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import type { Espeak } from './espeak.js';
import { Graphs } from './graphs.js';
import { type VoicePack, VoicePackError } from '../../src/threads/voices.js';
import type { Manifest, Speaker, SyrinxPack } from './voice-pack.js';
import { PhoneSet } from './phones.js';
import { Pronouncer } from './pronunciation.js';
import { Prosody } from './prosody.js';
import { type EngineMeans, type Sessions, createSessions } from './sessions.js';
import { Timeline } from './timeline.js';
import { PhoneTrack } from './track.js';
import { Segment, Turn } from './voice.js';

/** Spoken at load: first runs take many times as long as later ones. Long enough for every chunk of the grid. */
const warmUpText = 'When the evening came we were all sitting near the window.';

interface Voice {
  readonly speaker: Speaker;
  readonly mix: Float32Array;
  readonly warp: Float32Array;
  /** Natural logarithm of the mean F0, in Hz, before the speaker's own pitch. */
  readonly pitchMean: number;
}

const voiceOf = (speaker: Speaker, { logMean }: Manifest['trainingF0']): Voice => {
  const weights = speaker.mix.reduce((sum, weight) => sum + weight, 0);
  return {
    speaker,
    mix: Float32Array.from(speaker.mix),
    warp: Float32Array.of(speaker.warp),
    pitchMean: speaker.mix.reduce((sum, weight, i) => sum + (weight / weights) * logMean[i]!, 0),
  };
};

export class SyrinxEngine implements Engine {
  readonly sampleRateHz: number;
  readonly voiceIds: readonly string[];
  readonly executionProvider: Sessions['executionProvider'];
  readonly #manifest: Manifest;
  readonly #graphs: Graphs;
  readonly #pronouncer: Pronouncer;
  readonly #voices: ReadonlyMap<string, Voice>;
  readonly #turn = new Turn();

  private constructor(manifest: Manifest, sessions: Sessions, pronouncer: Pronouncer) {
    this.#manifest = manifest;
    this.#graphs = new Graphs(sessions, manifest);
    this.executionProvider = sessions.executionProvider;
    this.#pronouncer = pronouncer;
    this.sampleRateHz = manifest.sampleRateHz;
    this.#voices = new Map(
      manifest.speakers.map((speaker) => [speaker.id, voiceOf(speaker, manifest.trainingF0)]),
    );
    this.voiceIds = [...this.#voices.keys()];
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or is not what the manifest says */
  static async load(pack: VoicePack, espeak: Espeak, means: EngineMeans): Promise<SyrinxEngine> {
    const data = pack.data as SyrinxPack;
    const { manifest } = data;
    const sessions = await createSessions(data, means);
    const pronouncer = new Pronouncer(espeak, new PhoneSet(manifest.phones));
    const engine = new SyrinxEngine(manifest, sessions, pronouncer);
    try {
      await engine.#warmUp();
    } catch (error) {
      const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
      throw new VoicePackError(`${data.manifestPath}: the models do not run as the manifest says: ${reason}`);
    }
    return engine;
  }

  open(request: SegmentRequest): SegmentSynthesis {
    return this.openSegment(request, false);
  }

  /** As `open`. @param whole decodes in one step, for measurements */
  openSegment(request: SegmentRequest, whole: boolean): Segment {
    const { voiceId } = request.settings;
    const voice = this.#voices.get(voiceId);
    if (voice === undefined) throw new RangeError(`unknown voice "${voiceId}"`);
    const prosody = new Prosody(request, voice.speaker, voice.pitchMean);
    return new Segment({
      graphs: this.#graphs,
      timeline: this.#timeline(request, prosody, voice.mix),
      prosody,
      words: request.words.length,
      warp: voice.warp,
      gain: voice.speaker.gain,
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

  async #warmUp(): Promise<void> {
    const segment = this.open({
      text: warmUpText,
      words: [],
      before: '',
      after: '',
      settings: { voiceId: this.voiceIds[0]!, temperature: 1, normalizeText: false },
      seed: 0,
      utteranceSeed: 0,
    });
    let isSilent = true;
    for (let chunk = await segment.step(); chunk !== null; chunk = await segment.step())
      isSilent &&= chunk.pcm.every((sample) => sample === 0);
    if (isSilent) throw new Error('they are silent');
  }
}
