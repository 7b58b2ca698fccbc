/** What an actor thread measures of the cost of encodings. */
import t from 'tap';
import { type Encoding, encodingNames } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import { monotonicMs } from '../../../src/monotonic.js';
import { measureEncodings } from '../../../workers/actor/encoding-cost.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';

await loadEncoders(limits);

t.test(
  'every encoding has a figure, but for the one whose library is loaded when it is needed',
  async (t) => {
    const costs = await measureEncodings();
    t.same([...costs.keys()].sort(), encodingNames.filter((name) => name !== 'aac').sort());
    for (const [encoding, cpu] of costs) t.ok(cpu > 0 && cpu < 1, `${encoding}: ${cpu}`);
  },
);

t.test('a codec costs more than samples as they are', async (t) => {
  // The least of several: other programs only add to a figure.
  const measured: ReadonlyMap<Encoding, number>[] = [];
  for (let times = 0; times < 8; times++) measured.push(await measureEncodings());
  const least = (name: Encoding) => Math.min(...measured.map((costs) => costs.get(name)!));
  for (const name of ['opus', 'mp3'] as const)
    t.ok(least(name) > 2 * least('pcm'), `${name}: ${least(name)}, pcm: ${least('pcm')}`);
});

t.test('programs that interrupt every chunk are no cost of an encoding', async (t) => {
  let awayMs = 0;
  const costs = await measureEncodings(() => monotonicMs() + (awayMs += 30));
  for (const [encoding, cpu] of costs) t.ok(cpu < 0.06, `${encoding}: ${cpu}, and 0.12 with the others`);
});
