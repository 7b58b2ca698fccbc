/**
 * Frames as the clients of the ElevenLabs API read them: each has audio, and the times of the characters that are final.
 *
 * - `elevenlabs`: messages of a WebSocket. Times count from the last time of the message before. Clients that do not ask
 *   for `sync` add them up.
 * - `elevenlabs-sync`: the same, and times count from the start of the context.
 * - `elevenlabs-lines`: a line of JSON each; times count from the start of the response.
 */
import type { WordTimings } from '../../src/threads/messages.js';

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

/** @returns a frame with this base64 and these times */
type Frames = (audio: string, timings: WordTimings | undefined) => string;

const socketFrames = (clientContextId: string | undefined, isSync: boolean): Frames => {
  const context = clientContextId === undefined ? '' : `,"contextId":${JSON.stringify(clientContextId)}`;
  let zeroMs = 0;
  let isFirst = true;
  return (audio, timings) => {
    const start = `{"audio":"${audio}","isFinal":null,"normalizedAlignment":`;
    if (timings === undefined) return `${start}null,"alignment":null${context}}`;
    const alignment = shifted(timings, zeroMs);
    const normalized = isFirst ? withSpace(alignment) : alignment;
    isFirst = false;
    if (!isSync) zeroMs += alignment.endsMs.at(-1) ?? 0;
    return `${start}${messageAlignment(normalized)},"alignment":${messageAlignment(alignment)}${context}}`;
  };
};

const lineFrames: Frames = (audio, timings) => {
  const text = timings === undefined ? 'null' : lineAlignment(shifted(timings, 0));
  return `{"audio_base64":"${audio}","alignment":${text},"normalized_alignment":${text}}\n`;
};

/** Frames that have audio and times together. */
export const alignedEnvelope = (
  framing: 'elevenlabs' | 'elevenlabs-sync' | 'elevenlabs-lines',
  clientContextId: string | undefined,
) => {
  const isSync = framing === 'elevenlabs-sync';
  const frame = framing === 'elevenlabs-lines' ? lineFrames : socketFrames(clientContextId, isSync);
  return {
    carriesTimes: true,
    audio: (bytes: Uint8Array, timings: WordTimings | undefined) =>
      Buffer.from(
        frame(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'), timings),
      ),
    // Times that came after their audio.
    timestamps: (timings: WordTimings) => Buffer.from(frame('', timings)),
  };
};
