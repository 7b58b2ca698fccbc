/** What the service sends, as the playground reads it: word times, base64, and the records of a stream. */
import type { StreamRecord, Timestamps } from '../../../api/responses.js';

/** A word as written; seconds count from the first sample. */
export interface Word {
  readonly text: string;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** @returns the index of the word that is spoken then, or -1 */
export const wordAt = (words: readonly Word[], seconds: number): number =>
  words.findLastIndex((word) => word.startSeconds <= seconds && seconds < word.endSeconds);

export const wordsOf = ({ words, start_seconds: starts, end_seconds: ends }: Timestamps): readonly Word[] =>
  words.map((text, index) => ({ text, startSeconds: starts[index]!, endSeconds: ends[index]! }));

export const decodeBase64 = (text: string): Uint8Array<ArrayBuffer> => {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
};

const prefix = 'data: ';

/** The records of a body of `POST /v1/tts/stream`. @throws if the body ends inside a record, or is not a stream of records */
export async function* recordsOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<StreamRecord> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const records = (pending + value).split('\n\n');
    pending = records.pop() ?? '';
    for (const record of records) {
      if (!record.startsWith(prefix)) throw new Error('the stream has a line that is not a record');
      yield JSON.parse(record.slice(prefix.length)) as StreamRecord;
    }
  }
  if (pending !== '') throw new Error('the stream ended inside a record');
}
