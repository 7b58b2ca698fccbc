/** Four utterances in one context of a WebSocket, and how they must sound. */
import type { Test } from 'tap';
import type { SocketClient } from './socket-client.js';

export const RATE_HZ = 24_000;
export const pcm24 = {
  voice_id: 'wren',
  timestamps: true,
  response_format: { encoding: 'pcm', sample_rate: RATE_HZ },
};
export const utterances = [
  'Good morning. The kettle is on, and the paper is at the door!',
  'It was 3.14 or so; Dr. Smith said "well" — and left.',
  'Yes.',
  'After all this, we walked along the river until the sun went down behind the hills, and then we went home.',
];
export const tokens = utterances.flatMap((utterance) => utterance.split(' '));
export const samplesOf = (pcm: Buffer) =>
  new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + (pcm.length & ~1)));

/** Speaks the utterances in one context, with a flush after each. */
export const converse = async (client: SocketClient, contextId: string, more: object, pieces: number) => {
  client.start(contextId, { voice_id: 'wren', timestamps: true, ...more });
  for (const [i, utterance] of utterances.entries()) {
    for (let at = 0; at < utterance.length; at += pieces)
      client.text(contextId, utterance.slice(at, at + pieces));
    client.flush(contextId, `flush ${i}`);
    // Half of the utterances overlap, half wait for the previous one.
    if (i % 2 === 1)
      await client.frame(({ flush_id, context_id }) => flush_id === `flush ${i}` && context_id === contextId);
  }
  client.closeContext(contextId);
  await client.frame(({ context_closed, context_id }) => context_closed === true && context_id === contextId);
};

/** The largest difference between neighbouring samples in a span of seconds. */
const roughness = (samples: Int16Array, rateHz: number, from: number, to: number): number => {
  let most = 0;
  for (let i = Math.max(1, Math.round(from * rateHz)); i < Math.min(samples.length, to * rateHz); i++)
    most = Math.max(most, Math.abs((samples[i] ?? 0) - (samples[i - 1] ?? 0)));
  return most;
};

/** Checks that the pauses between utterances have no click, a difference as large as those of speech. */
export const checkSeams = (
  t: Test,
  samples: Int16Array,
  rateHz: number,
  words: readonly { start: number; end: number }[],
) => {
  const speech = roughness(samples, rateHz, 0, Infinity);
  let count = 0;
  for (const utterance of utterances.slice(0, -1)) {
    count += utterance.split(' ').length;
    const from = words[count - 1]?.end ?? Number.NaN;
    const to = words[count]?.start ?? Number.NaN;
    t.ok(from <= to);
    const seam = roughness(samples, rateHz, from - 0.01, to + 0.01);
    t.comment(`differences of at most ${seam} at the seam, ${speech} in speech`);
    t.ok(seam < speech / 3, `${seam} at the seam after ${from} s, ${speech} in speech`);
  }
};
