/**
 * Plays audio as it arrives, without gap or overlap, and knows which sample is heard now.
 *
 * Each block of samples becomes a source that starts at the very frame at which the one before it ends. The context runs at
 * the rate of the samples, so nothing is resampled block by block, and a source that starts on a frame plays its samples
 * as they are. Unlike an AudioWorklet, this also works where the page came over plain HTTP.
 */

import type { AudioFormat } from '../../../api/formats.js';
import { decodedRateHz, openDecoder, type Decoder } from './decoder.js';

/** How far ahead sources are scheduled. Their ends schedule more, also in a tab in the background, whose timers sleep. */
const aheadSeconds = 10;
/** From now to the first sample: the audio thread learns of a new source in time. */
const leadSeconds = 0.03;
/** Audio that must have arrived before it sounds, at the start and after a gap: the next block may be late. */
const startSeconds = 0.08;
/** A block that is due sooner than this comes too late for the audio thread. */
const marginSeconds = 0.012;
/** Down to silence without a click. */
const fadeSeconds = 0.005;
/** -50 dBFS, as in the service's own metrics. */
const audibleMin = 10 ** (-50 / 20);

/** Of one value of `Track.peaks`. */
const peakSeconds = 0.01;

interface Block {
  readonly start: number;
  readonly samples: Float32Array<ArrayBuffer>;
}

/** From this frame of the context on, the samples from `sample` on are played. */
interface Anchor {
  readonly frame: number;
  readonly sample: number;
}

/** What is scheduled between two jumps or stops. */
interface Run {
  readonly gain: GainNode;
  readonly sources: Set<AudioBufferSourceNode>;
  readonly anchors: Anchor[];
  /** The next sample to schedule, and the frame at which it is due. */
  nextSample: number;
  dueFrame: number;
}

export type TrackState = 'waiting' | 'playing' | 'stopped' | 'finished';

export class Track {
  readonly #context: AudioContext;
  readonly #decoder: Decoder;
  readonly #onChange: () => void;
  readonly #blocks: Block[] = [];
  /** The loudest sample of each hundredth of a second, from 0 to 1. */
  readonly peaks: number[] = [];
  #received = 0;
  #isComplete = false;
  #isSettled = false;
  #run: Run | null;
  /** Where a stopped track stood. */
  #stoppedAt = 0;
  #audibleSample: number | null = null;
  /** When the first audible sample left the loudspeaker, as `performance.now()` counts. */
  audibleAtMs: number | null = null;
  /** How often the audio arrived too late. */
  gaps = 0;

  /** @param onChange called when the state or the amount of audio may have changed */
  constructor(format: AudioFormat, output: AudioOutput, onChange: () => void) {
    this.#context = output.open(decodedRateHz(format));
    this.#decoder = openDecoder(format, this.#context, (samples) => this.#append(samples));
    this.#onChange = onChange;
    this.#run = this.#newRun(0);
    this.#context.addEventListener('statechange', this.#pump);
  }

  get state(): TrackState {
    if (this.#run === null) return 'stopped';
    if (this.#run.sources.size > 0) return 'playing';
    return this.#isComplete && this.#run.nextSample === this.#received ? 'finished' : 'waiting';
  }

  get receivedSeconds(): number {
    return this.#received / this.#context.sampleRate;
  }

  /** @param bytes of one record of a stream, or of one frame of a WebSocket */
  push(bytes: Uint8Array<ArrayBuffer>): void {
    this.#decoder.push(bytes);
  }

  #append(samples: Float32Array<ArrayBuffer>): void {
    if (samples.length === 0) return;
    if (this.#audibleSample === null) {
      const index = samples.findIndex((sample) => Math.abs(sample) > audibleMin);
      if (index >= 0) this.#audibleSample = this.#received + index;
    }
    const perPeak = peakSeconds * this.#context.sampleRate;
    samples.forEach((sample, index) => {
      const at = Math.floor((this.#received + index) / perPeak);
      this.peaks[at] = Math.max(this.peaks[at] ?? 0, Math.abs(sample));
    });
    this.#blocks.push({ start: this.#received, samples });
    this.#received += samples.length;
    this.#isSettled = false;
    this.#pump();
    this.#onChange();
  }

  /** No more bytes arrive for now: plays the rest, however short it is. */
  settle(): void {
    this.#isSettled = true;
    this.#pump();
  }

  /** No more bytes arrive. Rejects if those that came are not audio of the format. */
  async complete(): Promise<void> {
    try {
      await this.#decoder.finish();
    } finally {
      this.cut();
      this.#isComplete = true;
      this.settle();
      this.#onChange();
    }
  }

  /** Forgets what is not decoded yet. Idempotent. */
  cut(): void {
    this.#decoder.close();
  }

  /** Plays from a moment on, also after a stop or the end. */
  playFrom(seconds: number): void {
    this.#silence();
    const sample = Math.round(seconds * this.#context.sampleRate);
    this.#run = this.#newRun(Math.max(0, Math.min(sample, this.#received)));
    this.#pump();
    this.#onChange();
  }

  /** Falls silent at once. The received samples stay. Idempotent. */
  stop(): void {
    if (this.#run === null || this.state === 'finished') return;
    this.#stoppedAt = this.heardSeconds ?? 0;
    this.#silence();
    this.#onChange();
  }

  /** Stops for good. Idempotent. */
  close(): void {
    this.cut();
    this.#context.removeEventListener('statechange', this.#pump);
    this.#silence();
  }

  /** The moment of the audio that is heard now; `null` before the first. */
  get heardSeconds(): number | null {
    const { sampleRate } = this.#context;
    if (this.#run === null) return this.#stoppedAt;
    // The last samples are still on their way to the ear, but nothing is drawn after this state.
    if (this.state === 'finished') return this.receivedSeconds;
    const { anchors, nextSample } = this.#run;
    const frame = (this.#context.currentTime - this.#latencySeconds) * sampleRate;
    const index = anchors.findLastIndex((anchor) => anchor.frame <= frame);
    const anchor = anchors[index];
    if (anchor === undefined) return null;
    const end = anchors[index + 1]?.sample ?? nextSample;
    return Math.min(anchor.sample + frame - anchor.frame, end) / sampleRate;
  }

  /** From the context to the ear, as far as the browser knows. */
  get #latencySeconds(): number {
    // Some browsers say nothing.
    return this.#context.outputLatency || this.#context.baseLatency || 0;
  }

  #newRun(sample: number): Run {
    const gain = this.#context.createGain();
    gain.connect(this.#context.destination);
    return { gain, sources: new Set(), anchors: [], nextSample: sample, dueFrame: 0 };
  }

  readonly #pump = (): void => {
    const run = this.#run;
    if (run === null || this.#context.state !== 'running') return;
    const { currentTime, sampleRate } = this.#context;
    const now = Math.ceil(currentTime * sampleRate);
    let block = this.#blockAt(run.nextSample);
    while (block !== undefined && run.dueFrame < now + aheadSeconds * sampleRate) {
      if (run.dueFrame < now + marginSeconds * sampleRate) {
        const waiting = this.#received - run.nextSample;
        if (!this.#isSettled && waiting < startSeconds * sampleRate) return;
        if (run.anchors.length > 0) this.gaps += 1;
        run.dueFrame = now + Math.ceil(leadSeconds * sampleRate);
        run.anchors.push({ frame: run.dueFrame, sample: run.nextSample });
      }
      this.#schedule(run, block);
      block = this.#blockAt(run.nextSample);
    }
  };

  #schedule(run: Run, block: Block): void {
    const context = this.#context;
    const { currentTime, sampleRate } = context;
    const samples = block.samples.subarray(run.nextSample - block.start);
    const buffer = context.createBuffer(1, samples.length, sampleRate);
    buffer.copyToChannel(samples, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(run.gain);
    source.addEventListener('ended', () => {
      run.sources.delete(source);
      source.disconnect();
      this.#pump();
      if (run.sources.size === 0) this.#onChange();
    });
    source.start(run.dueFrame / sampleRate);
    run.sources.add(source);
    const audible = this.#audibleSample;
    if (this.audibleAtMs === null && audible !== null && audible < run.nextSample + samples.length) {
      const frame = run.dueFrame + Math.max(0, audible - run.nextSample);
      const inSeconds = frame / sampleRate - currentTime + this.#latencySeconds;
      this.audibleAtMs = performance.now() + inSeconds * 1_000;
    }
    run.nextSample += samples.length;
    run.dueFrame += samples.length;
  }

  /** @returns the block that has a sample, if it has come */
  #blockAt(sample: number): Block | undefined {
    // From the newest: it is that one, unless one jumped back.
    return sample < this.#received ? this.#blocks.findLast(({ start }) => start <= sample) : undefined;
  }

  #silence(): void {
    const run = this.#run;
    if (run === null) return;
    this.#run = null;
    const { currentTime } = this.#context;
    run.gain.gain.setValueAtTime(1, currentTime);
    run.gain.gain.linearRampToValueAtTime(0, currentTime + fadeSeconds);
    const sources = [...run.sources];
    run.sources.clear();
    for (const source of sources) source.stop(currentTime + 2 * fadeSeconds);
    const last = sources.at(-1);
    if (last === undefined) run.gain.disconnect();
    else last.addEventListener('ended', () => run.gain.disconnect());
  }
}

/** The audio device, once for each rate of what is played: the formats have eight. */
export class AudioOutput {
  readonly #contexts = new Map<number, AudioContext>();

  /** To be called while a click or a key press is handled: browsers let a page sound only then. */
  open(sampleRateHz: number): AudioContext {
    let context = this.#contexts.get(sampleRateHz);
    if (context === undefined) {
      context = new AudioContext({ sampleRate: sampleRateHz, latencyHint: 'interactive' });
      this.#contexts.set(sampleRateHz, context);
    }
    // Without permission it stays silent; its tracks go on when it runs.
    void context.resume().catch(() => undefined);
    return context;
  }

  /** Idempotent. */
  close(): void {
    for (const context of this.#contexts.values()) void context.close();
    this.#contexts.clear();
  }
}
