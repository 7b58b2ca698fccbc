import t from 'tap';
import { ENCODERS_MAX, LibavcodecAac } from '../../../workers/audio/aac.js';

const blocks = Array.from({ length: 6 }, (_, block) =>
  Int16Array.from({ length: 1_024 }, (_, i) => 8_000 * Math.sin((block * 1_024 + i) * 0.1)),
);

t.test('encoders that take turns, in one memory and in two, make what one alone makes', async (t) => {
  const open = () => LibavcodecAac.open(24_000, 96);
  const alone = await open();
  const expected = blocks.map((block) => alone.encode(block));
  alone.close();
  alone.close();
  t.throws(() => alone.encode(blocks[0]!), /the encoder was closed/);
  const encoders = await Promise.all(Array.from({ length: ENCODERS_MAX + 2 }, open));
  const made = blocks.map((block) => encoders.map((encoder) => encoder.encode(block)));
  for (const [place, packet] of expected.entries())
    t.ok(
      made[place]!.every((other) => Buffer.compare(other, packet) === 0),
      `block ${place}`,
    );
  t.ok(expected.at(-1)!.length > 100, 'the last packet has sound');
  for (const encoder of encoders) encoder.close();
});

t.test('a format that FFmpeg refuses fails its context, and the next one is served', async (t) => {
  await t.rejects(LibavcodecAac.open(-1, 96), /FFmpeg could not begin AAC of 96 kbps at -1 Hz/);
  const encoder = await LibavcodecAac.open(24_000, 96);
  t.equal(encoder.encode(blocks[0]!).length, 0, 'the first block only fills the encoder');
  t.ok(encoder.encode(blocks[1]!).length > 0);
  encoder.close();
});
