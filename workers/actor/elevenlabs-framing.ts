/**
 * Frames as the clients of the ElevenLabs API read them: each has audio, and the times of the characters that are final.
 *
 * - `elevenlabs`: messages of a WebSocket. Times count from the last time of the message before. Clients that do not ask
 *   for `sync` add them up.
 * - `elevenlabs-sync`: the same, and times count from the start of the context.
 * - `elevenlabs-lines`: a line of JSON each; times count from the start of the response.
 */
import type { WordTimings } from '../../src/threads/messages.js';
import { NOTHING, type Encoder } from '../audio/encoder.js';

/** Clients subtract the first time above 0 from all others. The space at the front starts here, so they subtract nothing else. */
const FIRST_MS = 1;

interface Alignment {
  readonly characters: readonly string[];
  readonly startsMs: readonly number[];
  readonly endsMs: readonly number[];
}

const shifted = ({ words, start_seconds, end_seconds }: WordTimings, zeroMs: number): Alignment => {
  const toMs = (seconds: number) => Math.round(seconds * 1000) - zeroMs;
  return { characters: words, startsMs: start_seconds.map(toMs), endsMs: end_seconds.map(toMs) };
};

const withSpace = ({ characters, startsMs, endsMs }: Alignment): Alignment => {
  // A soft sound may begin before its first sample: its word then starts at 0.
  const notZero = (timesMs: readonly number[]) => timesMs.map((ms) => Math.max(FIRST_MS, ms));
  const [starts, ends] = [notZero(startsMs), notZero(endsMs)];
  return {
    characters: [' ', ...characters],
    startsMs: [FIRST_MS, ...starts],
    endsMs: [starts[0] ?? FIRST_MS, ...ends],
  };
};

const messageAlignment = ({ characters, startsMs, endsMs }: Alignment): string =>
  JSON.stringify({
    chars: characters,
    charStartTimesMs: startsMs,
    charDurationsMs: startsMs.map((startMs, index) => endsMs[index]! - startMs),
  });

const lineAlignment = ({ characters, startsMs, endsMs }: Alignment): string =>
  JSON.stringify({
    characters,
    character_start_times_seconds: startsMs.map((ms) => ms / 1000),
    character_end_times_seconds: endsMs.map((ms) => ms / 1000),
  });

/** The names of the members of one kind of frame. */
interface Shape {
  readonly open: string;
  alignments(timings: WordTimings | undefined): string;
}

const socketShape = (clientContextId: string | undefined, isSync: boolean): Shape => {
  const context = clientContextId === undefined ? '' : `,"contextId":${JSON.stringify(clientContextId)}`;
  let zeroMs = 0;
  let isFirst = true;
  return {
    open: '{"audio":"',
    alignments(timings) {
      if (timings === undefined)
        return `","isFinal":null,"normalizedAlignment":null,"alignment":null${context}}`;
      const alignment = shifted(timings, zeroMs);
      const normalized = isFirst ? withSpace(alignment) : alignment;
      isFirst = false;
      if (!isSync) zeroMs += alignment.endsMs.at(-1) ?? 0;
      return (
        `","isFinal":null,"normalizedAlignment":${messageAlignment(normalized)}` +
        `,"alignment":${messageAlignment(alignment)}${context}}`
      );
    },
  };
};

const lineShape: Shape = {
  open: '{"audio_base64":"',
  alignments(timings) {
    const text = timings === undefined ? 'null' : lineAlignment(shifted(timings, 0));
    return `","alignment":${text},"normalized_alignment":${text}}\n`;
  },
};

/** Builds frames that have audio and times together. */
export class AlignedFramer {
  readonly carriesTimes = true;
  readonly #encoder: Encoder;
  readonly #shape: Shape;
  #begun = false;

  constructor(
    framing: 'elevenlabs' | 'elevenlabs-sync' | 'elevenlabs-lines',
    encoder: Encoder,
    clientContextId: string | undefined,
  ) {
    this.#encoder = encoder;
    this.#shape =
      framing === 'elevenlabs-lines'
        ? lineShape
        : socketShape(clientContextId, framing === 'elevenlabs-sync');
  }

  audio(payload: Uint8Array, timings: WordTimings | undefined): Uint8Array {
    const header = this.#encoder.chunkHeader(payload.length, !this.#begun);
    this.#begun = true;
    return this.#frame(Buffer.concat([header, payload]).toString('base64'), timings);
  }

  /** Times that came after their audio. */
  timestamps(timings: WordTimings): Uint8Array {
    return this.#frame('', timings);
  }

  end(payload: Uint8Array, timings: WordTimings | undefined): { tail: Uint8Array; head: Uint8Array } {
    if (payload.length > 0) return { tail: this.audio(payload, timings), head: NOTHING };
    return { tail: timings === undefined ? NOTHING : this.timestamps(timings), head: NOTHING };
  }

  #frame(audio: string, timings: WordTimings | undefined): Uint8Array {
    return Buffer.from(this.#shape.open + audio + this.#shape.alignments(timings));
  }
}
