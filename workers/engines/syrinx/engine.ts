/** The engine of our own voice packs. */
import { strict as assert } from 'node:assert';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { type Voice, type VoicePack, VoicePackError } from '../../../src/threads/voices.js';
import type { Engine, EngineMeans, StepResult } from '../engine.js';
import type { Batches } from '../batches.js';
import { firstLine } from '../entries.js';
import { clausesOf } from '../g2p/clauses.js';
import { Espeak } from '../g2p/espeak.js';
import { Pronouncer } from '../g2p/pronunciation.js';
import { createSessions, type Sessions } from '../onnx.js';
import { Graphs } from './graphs.js';
import { type GraphName, type Manifest, mixingOf, type Speaker, type SyrinxData } from './manifest.js';
import { PhoneSet } from './phones.js';
import { type Melody, Prosody } from './prosody.js';
import { Segment, StepLock } from './segment.js';
import { stepAll } from '../steps.js';
import { Timeline } from './timeline.js';
import { windowsOf } from './windows.js';
import { PhoneTrack, type TrackMeans } from './track.js';
import { settingsOf } from '../../../src/api/speech-settings.js';

/** Spoken at load, because the first runs take many times as long. Long enough for every window of every graph. */
const warmUpText = 'When the evening came we were all sitting near the window, and the rain began to fall.';

interface SpeakerMeans {
  readonly speaker: Speaker;
  readonly mix: Float32Array;
  readonly warp: Float32Array;
}

const meansOf = (speaker: Speaker): SpeakerMeans => {
  const weights = speaker.mix.reduce((sum, weight) => sum + weight, 0);
  return {
    speaker,
    mix: Float32Array.from(speaker.mix, (weight) => weight / weights),
    warp: Float32Array.of(speaker.warp),
  };
};

export class SyrinxEngine implements Engine {
  readonly voices: readonly Voice[];
  readonly executionProvider: Engine['executionProvider'];
  readonly release: Engine['release'];
  readonly measured = true;
  readonly #graphs: Graphs;
  readonly #batches: Batches | undefined;
  readonly #track: TrackMeans;
  readonly #melody: Melody;
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
    this.release = sessions.release;
    this.#batches = sessions.batches;
    this.#graphs = new Graphs(sessions, manifest);
    this.#track = track;
    const mixing = mixingOf(manifest.style.correlation);
    assert(mixing !== null);
    this.#melody = { logMean: manifest.trainingF0.logMean, mixing };
    this.#speakers = new Map(manifest.speakers.map((speaker) => [speaker.id, meansOf(speaker)]));
  }

  /** @throws {VoicePackError} when a graph cannot be loaded, or is not what the manifest says */
  static async load(pack: VoicePack, means: EngineMeans, measured?: unknown): Promise<SyrinxEngine> {
    const { manifest, manifestPath, graphs, copiesIn } = pack.data as SyrinxData;
    const { bounds } = means;
    const espeak = await Espeak.load(bounds);
    const sessions = await createSessions(pack.name, graphs, means, {
      windows: windowsOf(manifest),
      copiesIn,
      keepsBuffers: true,
    });
    const phones = new PhoneSet(manifest.phones);
    const pronouncer = new Pronouncer(espeak, phones, bounds);
    const track = { pronouncer, phones, bounds };
    const engine = new SyrinxEngine(pack.voices, manifest, sessions, track);
    if (measured === true) return engine;
    try {
      await engine.#warmUp();
      sessions.settle();
    } catch (error) {
      throw new VoicePackError(
        `${manifestPath}: the models do not run as the manifest says: ${firstLine(error)}`,
      );
    }
    return engine;
  }

  open(request: SegmentRequest): Segment {
    return this.openSegment(request, false);
  }

  get batchMax(): number {
    return this.#batches?.max ?? 1;
  }

  step(segments: readonly Segment[]): Promise<StepResult[]> {
    return this.#stepLock.hold(() => stepAll(segments, this.#batches));
  }

  /** As `open`. @param whole decode in one step, for measurements */
  openSegment(request: SegmentRequest, whole: boolean): Segment {
    const { voiceId } = request.settings;
    const means = this.#speakers.get(voiceId);
    if (means === undefined) throw new RangeError(`unknown voice "${voiceId}"`);
    const { speaker, mix, warp } = means;
    const { text, words, spoken = [] } = request;
    const clauses = clausesOf(text, words, spoken, request);
    const spokenWords = clauses.reduce((sum, { atoms }) => sum + atoms.length, 0);
    const prosody = new Prosody(request, speaker, this.#melody, spokenWords);
    return new Segment({
      engine: this,
      graphs: this.#graphs,
      timeline: new Timeline(
        new PhoneTrack(clauses, words.length, this.#track, spoken),
        this.#graphs,
        prosody,
      ),
      prosody,
      words: words.length,
      mix,
      warp,
      gain: speaker.gain,
      isFirst: request.isFirst === true,
      begins: request.begins ?? 'short',
      whole,
    });
  }

  async #warmUp(): Promise<void> {
    let isSilent = true;
    for (const begins of ['short', 'longest'] as const) {
      const segment = this.open({
        ...{ text: warmUpText, words: [], before: '', after: '', begins },
        ...{ settings: settingsOf({ voiceId: this.voices[0]!.id }), seed: 0, utteranceSeed: 0 },
      });
      for (let chunk = await segment.step(); chunk !== null; chunk = await segment.step())
        isSilent &&= chunk.pcm.every((sample) => sample === 0);
    }
    if (isSilent) throw new Error('they are silent');
  }
}
