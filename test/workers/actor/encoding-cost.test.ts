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
    for (const [encoding, cpu] of costs) t.ok(cpu > 0 && cpu < 1, `${encoding}: ${cpu}`);
  },
);

t.test('a codec costs more than samples as they are', async (t) => {
  const costs = await measureEncodings();
  for (const name of ['opus', 'mp3'] as const)
    t.ok(costs.get(name)! > 2 * costs.get('pcm')!, `${name}: ${costs.get(name)}, pcm: ${costs.get('pcm')}`);
});
