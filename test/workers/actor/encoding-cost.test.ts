/** What an actor thread measures of the cost of encodings. */
import t from 'tap';
import { encodingNames } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import { measureEncodings } from '../../../workers/actor/encoding-cost.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';

await loadEncoders(limits);

t.test(
  'every encoding has a figure, but for the one whose library is loaded when it is needed',
  async (t) => {
    const costs = await measureEncodings();
    t.same([...costs.keys()].sort(), encodingNames.filter((name) => name !== 'aac').sort());
    // Some systems count CPU time in ticks: what is done within one costs nothing.
    for (const [encoding, cpu] of costs) t.ok(cpu >= 0 && cpu < 1, `${encoding}: ${cpu}`);
  },
);

t.test('the dear encodings are dear: a codec costs more than samples as they are', async (t) => {
  const sums = { opus: 0, mp3: 0, pcm: 0 };
  for (let run = 0; run < 12; run++) {
    const costs = await measureEncodings();
    for (const name of ['opus', 'mp3', 'pcm'] as const) sums[name] += costs.get(name)!;
  }
  t.ok(sums.opus > sums.pcm && sums.mp3 > sums.pcm, JSON.stringify(sums));
});
