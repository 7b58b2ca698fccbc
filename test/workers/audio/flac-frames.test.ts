/** The heads of FLAC frames, without a decoder: a long text has more of them than a test decodes. */
import t from 'tap';
import { FlacEncoder } from '../../../workers/audio/flac.js';

/** Before the number: the sync code, the code of the block's size, and that of its samples. */
const NUMBER_AT = 4;

t.test('frames are numbered like characters in UTF-8, also after more than a minute and a half', (t) => {
  const encoder = new FlacEncoder(24_000);
  // One sample that fills no block: each call makes a frame of it, and counts.
  encoder.encode(new Int16Array(1));
  const wrong: number[] = [];
  for (let number = 0; number <= 0x1_0000; number++) {
    const frame = Buffer.from(encoder.finish());
    // No characters.
    if (number >= 0xd800 && number < 0xe000) continue;
    const coded = Buffer.from(String.fromCodePoint(number));
    if (!frame.subarray(NUMBER_AT, NUMBER_AT + coded.length).equals(coded)) wrong.push(number);
  }
  t.strictSame(wrong.slice(0, 3), []);
  t.end();
});
