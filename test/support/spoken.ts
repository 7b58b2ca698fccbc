/** Runs sound through a context's actor, as an actor thread would: what a client gets of it. */
import type { AudioFormat } from '../../src/api/formats.js';
import type { Frame, Framing, WordTime } from '../../src/threads/messages.js';
import { PlaybackClock } from '../../src/threads/playback-clock.js';
import { ContextActor } from '../../workers/actor/context.js';
import { seededRandom } from '../../scripts/rig/random.js';

export interface ScriptedSegment {
  readonly pcm: Int16Array;
  readonly words?: readonly {
    readonly text: string;
    readonly startSample: number;
    readonly endSample: number;
  }[];
  /** A flush follows. */
  readonly flush?: boolean;
}

/** Wakes an actor whose thread has nothing else to do. */
export const workThrough = (actor: ContextActor): void => {
  while (actor.work() !== null);
};

export interface Spoken {
  readonly frames: readonly Frame[];
  /** Decoded from base64, one an audio record (`whole`: the one file). */
  readonly chunks: readonly Buffer[];
  readonly file: Buffer;
  readonly words: string[];
  readonly startSeconds: number[];
  readonly endSeconds: number[];
}

const textOf = (frame: { readonly bytes: Uint8Array }) => Buffer.from(frame.bytes).toString('latin1');

const chunksOf = (frames: readonly Frame[], framing: Framing): Buffer[] => {
  const audio = frames.filter((frame) => frame.type === 'audio');
  if (framing === 'whole') {
    const head = frames.filter((frame) => frame.type === 'head');
    return [Buffer.from([...head, ...audio].map(textOf).join(''), 'base64')];
  }
  return audio.map((frame) => {
    const record = JSON.parse(textOf(frame).slice('data: '.length)) as { audio_chunk: string };
    return Buffer.from(record.audio_chunk, 'base64');
  });
};

/** `loadEncoders` must have resolved. Chunks are cut at random, by the seed. */
export const speak = async (
  format: AudioFormat,
  framing: Framing,
  segments: readonly ScriptedSegment[],
  { engineSampleRateHz = 24_000, seed = 1, chunkSamplesMax = 6_000 } = {},
): Promise<Spoken> => {
  const random = seededRandom(seed);
  const frames: Frame[] = [];
  await new Promise<void>((resolve, reject) => {
    const actor = new ContextActor(
      { type: 'open', contextId: 1, format, framing, timestamps: true, engineSampleRateHz, clock: 0 },
      new PlaybackClock(),
      (frame) => {
        frames.push(frame);
        if (frame.type === 'closed') resolve();
        if (frame.type === 'failed') reject(new Error(frame.reason));
      },
      workThrough,
    );
    segments.forEach(({ pcm, words = [], flush = false }, segment) => {
      const texts = words.map(({ text }) => text);
      actor.announce({ type: 'segment', contextId: 1, segment, words: texts, tokenContinues: false });
      if (flush) actor.announce({ type: 'flush', contextId: 1, flushId: `after ${segment}` });
      for (let start = 0; start < pcm.length;) {
        const end = Math.min(pcm.length, start + 1 + Math.floor(random() * chunkSamplesMax));
        const times: WordTime[] = [];
        words.forEach(({ startSample, endSample }, word) => {
          if (endSample > start && endSample <= end) times.push({ word, startSample, endSample });
        });
        actor.chunk({
          type: 'chunk',
          contextId: 1,
          segment,
          startSample: start,
          pcm: pcm.slice(start, end),
          words: times,
        });
        start = end;
      }
      actor.chunk({ type: 'segment-done', contextId: 1, segment, samples: pcm.length });
    });
    actor.announce({ type: 'close', contextId: 1 });
  });
  const chunks = chunksOf(frames, framing);
  const timings = frames.filter((frame) => frame.type === 'timestamps').map((frame) => frame.timings);
  return {
    frames,
    chunks,
    file: Buffer.concat(chunks),
    words: timings.flatMap((timing) => timing.words),
    startSeconds: timings.flatMap((timing) => timing.start_seconds),
    endSeconds: timings.flatMap((timing) => timing.end_seconds),
  };
};
