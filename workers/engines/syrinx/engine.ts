/** The engine of our own voice packs. */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { type Voice, type VoicePack, VoicePackError } from '../../../src/threads/voices.js';
import type { Engine, EngineChunk, EngineMeans } from '../engine.js';
import { clausesOf } from '../g2p/clauses.js';
import { Espeak } from '../g2p/espeak.js';
import { Pronouncer } from '../g2p/pronunciation.js';
import { type Sessions, createSessions } from '../onnx.js';
import { Graphs } from './graphs.js';
import type { GraphName, Manifest, Speaker, SyrinxData } from './manifest.js';
import { PhoneSet } from './phones.js';
import { Prosody } from './prosody.js';
import { Segment, StepLock } from './segment.js';
import { Timeline } from './timeline.js';
import { PhoneTrack, type TrackMeans } from './track.js';

/** Spoken at load, because the first runs take many times as long. Long enough for every chunk size of the grid. */
const warmUpText = 'When the evening came we were all sitting near the window.';

interface SpeakerMeans {
  readonly speaker: Speaker;
  readonly mix: Float32Array;
  readonly warp: Float32Array;
  /** Natural logarithm of the mean F0, in Hz, before the speaker's own pitch. */
  readonly pitchMean: number;
}

const meansOf = (speaker: Speaker, { logMean }: Manifest['trainingF0']): SpeakerMeans => {
  const weights = speaker.mix.reduce((sum, weight) => sum + weight, 0);
  return {
    speaker,
    mix: Float32Array.from(speaker.mix),
    warp: Float32Array.of(speaker.warp),
    pitchMean: speaker.mix.reduce((sum, weight, i) => sum + (weight / weights) * logMean[i]!, 0),
  };
};

export class SyrinxEngine implements Engine {
  readonly voices: readonly Voice[];
  readonly executionProvider: Engine['executionProvider'];
  readonly #manifest: Manifest;
  readonly #graphs: Graphs;
  readonly #track: TrackMeans;
  readonly #speakers: ReadonlyMap<string, SpeakerMeans>;
  readonly #stepLock = new StepLock();

  private constructor(
    voices: readonly Voice[],
    manifest: Manifest,
    sessions: Sessions<GraphName>,
    track: TrackMeans,
  ) {
    this.voices = voices;
    this.executionProvider = sessions.executionProvider;
    this.#manifest = manifest;
    this.#graphs = new Graphs(sessions, manifest);
    this.#track = track;
    this.#speakers = new Map(
      manifest.speakers.map((speaker) => [speaker.id, meansOf(speaker, manifest.trainingF0)]),
    );
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or is not what the manifest says */
  static async load(pack: VoicePack, means: EngineMeans): Promise<SyrinxEngine> {
    const { manifest, manifestPath, graphs } = pack.data as SyrinxData;
    const { bounds } = means;
    const espeak = await Espeak.load(bounds);
    const sessions = await createSessions(pack.name, graphs, means);
    const phones = new PhoneSet(manifest.phones);
    const pronouncer = new Pronouncer(espeak, phones, bounds);
    const track = { pronouncer, pausePhone: phones.pause, bounds };
    const engine = new SyrinxEngine(pack.voices, manifest, sessions, track);
    try {
      await engine.#warmUp();
    } catch (error) {
      const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
      throw new VoicePackError(`${manifestPath}: the models do not run as the manifest says: ${reason}`);
    }
    return engine;
  }

  open(request: SegmentRequest): Segment {
    return this.openSegment(request, false);
  }

  async step(segments: readonly Segment[]): Promise<(EngineChunk | null)[]> {
    const chunks: (EngineChunk | null)[] = [];
    for (const segment of segments) chunks.push(await segment.step());
    return chunks;
  }

  /** As `open`. @param whole decode in one step, for measurements */
  openSegment(request: SegmentRequest, whole: boolean): Segment {
    const { voiceId } = request.settings;
    const means = this.#speakers.get(voiceId);
    if (means === undefined) throw new RangeError(`unknown voice "${voiceId}"`);
    const { speaker, mix, warp, pitchMean } = means;
    const prosody = new Prosody(request, speaker, pitchMean);
    return new Segment({
      engine: this,
      graphs: this.#graphs,
      timeline: this.#timeline(request, prosody, mix),
      prosody,
      words: request.words.length,
      warp,
      gain: speaker.gain,
      pitchMeanHz: Math.exp(pitchMean),
      marginFrames: this.#manifest.margins.frames,
      whole,
      stepLock: this.#stepLock,
    });
  }

  #timeline(request: SegmentRequest, prosody: Prosody, mix: Float32Array): Timeline {
    const { text, words, spoken = [] } = request;
    const clauses = clausesOf(text, words, spoken, request);
    const track = new PhoneTrack(clauses, words.length, this.#track, spoken);
    return new Timeline(track, this.#graphs, prosody, mix, this.#manifest.margins.phones);
  }

  async #warmUp(): Promise<void> {
    const segment = this.open({
      text: warmUpText,
      words: [],
      before: '',
      after: '',
      settings: { voiceId: this.voices[0]!.id, temperature: 1, normalizeText: false },
      seed: 0,
      utteranceSeed: 0,
    });
    let isSilent = true;
    for (let chunk = await segment.step(); chunk !== null; chunk = await segment.step())
      isSilent &&= chunk.pcm.every((sample) => sample === 0);
    if (isSilent) throw new Error('they are silent');
  }
}
