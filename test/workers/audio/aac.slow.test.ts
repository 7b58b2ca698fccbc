import t from 'tap';
import { ENCODERS_MAX, LibavcodecAac, loadAac } from '../../../workers/audio/aac.js';

await loadAac();
const blocks = Array.from({ length: 6 }, (_, block) =>
  Int16Array.from({ length: 1_024 }, (_, i) => 8_000 * Math.sin((block * 1_024 + i) * 0.1)),
);

t.test('encoders that take turns, in one memory and in two, make what one alone makes', (t) => {
  const open = () => LibavcodecAac.open(24_000, 96);
  const alone = open();
  const expected = blocks.map((block) => alone.encode(block));
  alone.close();
  alone.close();
  t.throws(() => alone.encode(blocks[0]!), /the encoder was closed/);
  const encoders = Array.from({ length: ENCODERS_MAX + 2 }, open);
  const made = blocks.map((block) => encoders.map((encoder) => encoder.encode(block)));
  for (const [place, packet] of expected.entries())
    t.ok(
      made[place]!.every((other) => Buffer.compare(other, packet) === 0),
      `block ${place}`,
    );
  t.ok(expected.at(-1)!.length > 100, 'the last packet has sound');
  for (const encoder of encoders) encoder.close();
  t.end();
});

t.test('an encoder opens in the memory where another one was closed', (t) => {
  const { Instance } = WebAssembly;
  let memories = 0;
  WebAssembly.Instance = new Proxy(Instance, {
    construct(target, parameters: ConstructorParameters<typeof Instance>) {
      memories++;
      return new target(...parameters);
    },
  });
  t.teardown(() => (WebAssembly.Instance = Instance));
  for (let count = 0; count < 3; count++) LibavcodecAac.open(24_000, 96).close();
  t.ok(memories <= 1, `${memories} memories`);
  t.end();
});

t.test('a format that FFmpeg refuses fails its context, and the next one is served', (t) => {
  t.throws(() => LibavcodecAac.open(-1, 96), /FFmpeg could not begin AAC of 96 kbps at -1 Hz/);
  const encoder = LibavcodecAac.open(24_000, 96);
  t.equal(encoder.encode(blocks[0]!).length, 0, 'the first block only fills the encoder');
  t.ok(encoder.encode(blocks[1]!).length > 0);
  encoder.close();
  t.end();
});
