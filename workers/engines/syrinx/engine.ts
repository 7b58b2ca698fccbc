/** The engine of our own voice packs. */
import { strict as assert } from 'node:assert';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { VoicePack } from '../../../src/threads/voices.js';
import type { EngineMeans } from '../engine.js';
import { clausesOf } from '../g2p/clauses.js';
import { Espeak } from '../g2p/espeak.js';
import { Pronouncer } from '../g2p/pronunciation.js';
import { ModelEngine } from '../model-engine.js';
import { createSessions, type Sessions } from '../onnx.js';
import { Graphs } from './graphs.js';
import { type GraphName, mixingOf, type Speaker, type SyrinxData } from './manifest.js';
import { PhoneSet } from './phones.js';
import { type Melody, Prosody } from './prosody.js';
import { Segment, type SpeakerMeans } from './segment.js';
import { utteranceOf } from '../steps.js';
import { Timeline } from './timeline.js';
import { windowsOf } from './windows.js';
import { PhoneTrack, type TrackMeans } from './track.js';

/** Spoken at load, because the first runs take many times as long. Long enough for every window of every graph. */
const warmUpText = 'When the evening came we were all sitting near the window, and the rain began to fall.';

const meansOf = (speaker: Speaker): SpeakerMeans => {
  const weights = speaker.mix.reduce((sum, weight) => sum + weight, 0);
  return {
    speaker,
    mix: Float32Array.from(speaker.mix, (weight) => weight / weights),
    warp: Float32Array.of(speaker.warp),
  };
};

export class SyrinxEngine extends ModelEngine {
  readonly #graphs: Graphs;
  readonly #track: TrackMeans;
  readonly #melody: Melody;
  /** In the order of the voices. */
  readonly #speakers: readonly SpeakerMeans[];

  private constructor(pack: VoicePack, sessions: Sessions<GraphName>, track: TrackMeans) {
    super(pack, sessions);
    const { manifest } = pack.data as SyrinxData;
    this.#graphs = new Graphs(sessions, manifest);
    this.#track = track;
    const mixing = mixingOf(manifest.style.correlation);
    assert(mixing !== null);
    this.#melody = { logMean: manifest.trainingF0.logMean, mixing };
    this.#speakers = manifest.speakers.map(meansOf);
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or is not what the manifest says */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<SyrinxEngine> {
    const { manifest, manifestPath, graphs, copiesIn } = pack.data as SyrinxData;
    const { bounds } = means;
    const espeak = await Espeak.load(bounds);
    const sessions = await createSessions(pack.name, graphs, means, {
      windows: windowsOf(manifest),
      copiesIn,
    });
    const phones = new PhoneSet(manifest.phones);
    const track = { pronouncer: new Pronouncer(espeak, phones, bounds), phones, bounds };
    const engine = new SyrinxEngine(pack, sessions, track);
    return engine.ready(measured, `${manifestPath}: the models do not run as the manifest says`);
  }

  open(request: SegmentRequest): Segment {
    const means = this.#speakers[this.placeOf(request)]!;
    const { text, words, spoken = [] } = request;
    const clauses = clausesOf(text, words, spoken, request);
    const spokenWords = clauses.reduce((sum, { atoms }) => sum + atoms.length, 0);
    const prosody = new Prosody(request, means.speaker, this.#melody, spokenWords);
    const track = new PhoneTrack(clauses, words.length, this.#track);
    const timeline = new Timeline(track, this.#graphs, prosody, request.begins ?? 'short');
    return new Segment({ ...means, graphs: this.#graphs, timeline, prosody, request });
  }

  protected async warmUp(): Promise<true> {
    const request = utteranceOf(this.voices[0]!.id, warmUpText, 0);
    const short = await this.loudestOf(request);
    const long = await this.loudestOf({ ...request, begins: 'longest' });
    if (short === 0 && long === 0) throw new Error('they are silent');
    return true;
  }
}
