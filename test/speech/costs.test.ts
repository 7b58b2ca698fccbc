/** What speech costs: measured at the load, kept from run to run, and measured as it is made. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Costs } from '../../src/speech/costs.js';
import type { Effort } from '../../src/threads/effort.js';
import { temporaryFolder } from '../store/support.js';

const effort = (given: Partial<Effort> = {}): Effort => ({
  ...{ cpuMs: 10, speechMs: 1_000, begun: 0, beginMs: 0 },
  ...given,
});

/** A second of speech of the voice `ada`. */
const speak = (costs: Costs, given: Partial<Effort> = {}, seconds = 1) => {
  for (let second = 0; second < seconds; second++) {
    costs.voices.add('ada', effort(given));
    costs.encodings.add('mp3', effort({ cpuMs: 2 }));
  }
};

const near = (value: number, expected: number) => Math.abs(value - expected) < 0.02 * expected;

t.test('what the load measured counts before the first request, for each voice and encoding', (t) => {
  const costs = new Costs();
  const unknown = costs.voices.of('ada');
  t.ok(unknown.cpu > 0 && unknown.beginMs > 0, 'something is assumed of the others');
  costs.voices.measured('ada', { cpu: 0.3, beginMs: 40 });
  costs.encodings.measured('opus', { cpu: 0.01, beginMs: 0 });
  t.same(costs.voices.of('ada'), { cpu: 0.3, beginMs: 40 });
  t.equal(costs.encodings.of('opus').cpu, 0.01);
  t.same(costs.voices.of('bela'), unknown);
  t.not(costs.encodings.of('mp3').cpu, 0.01);
  t.end();
});

t.test('first sentences, which run cold code, change little; steady work decides in the end', (t) => {
  const costs = new Costs();
  costs.voices.measured('ada', { cpu: 0.01, beginMs: 5 });
  speak(costs, { cpuMs: 60, begun: 1, beginMs: 50 });
  t.ok(costs.voices.of('ada').cpu < 0.013, 'a sentence six times as dear');
  t.ok(costs.voices.of('ada').beginMs < 8);
  speak(costs, { cpuMs: 60, begun: 1, beginMs: 50 }, 200);
  t.ok(near(costs.voices.of('ada').cpu, 0.06), `${costs.voices.of('ada').cpu}`);
  t.ok(near(costs.voices.of('ada').beginMs, 50), `${costs.voices.of('ada').beginMs}`);
  speak(costs, { cpuMs: 10 }, 200);
  t.ok(near(costs.voices.of('ada').cpu, 0.01), 'and in the other direction');
  t.end();
});

t.test('a figure counts speech, not time: what was made one by one or at once counts the same', (t) => {
  const [one, many] = [new Costs(), new Costs()];
  for (const costs of [one, many]) costs.voices.measured('ada', { cpu: 0.01, beginMs: 5 });
  speak(one, { cpuMs: 300, speechMs: 10_000 });
  speak(many, { cpuMs: 30 }, 10);
  t.ok(Math.abs(one.voices.of('ada').cpu - many.voices.of('ada').cpu) < 0.001);
  for (let i = 0; i < 1_000; i++) one.voices.add('ada', effort({ cpuMs: 5, speechMs: 0 }));
  t.ok(one.voices.of('ada').cpu < 0.02, 'work without speech is no figure');
  t.end();
});

t.test('what a thread does around its steps is a part of the cost', (t) => {
  const costs = new Costs();
  speak(costs, { cpuMs: 20 }, 200);
  t.ok(near(costs.voices.of('ada').cpu, 0.02));
  t.ok(near(costs.encodings.of('mp3').cpu, 0.002));
  t.end();
});

t.test('the figures of the last run are there after a start, those that nobody used are not', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'costs.json');
  const before = await Costs.read(file);
  before.voices.measured('bela', { cpu: 0.2, beginMs: 30 });
  before.encodings.measured('flac', { cpu: 0.003, beginMs: 0 });
  speak(before, { cpuMs: 40, begun: 1, beginMs: 20 }, 200);
  before.voices.add('silent', effort({ speechMs: 0 }));
  await before.keep();
  t.same(readdirSync(folder), ['costs.json'], 'nothing else is left');
  const after = await Costs.read(file);
  t.same(after.voices.of('ada'), before.voices.of('ada'));
  t.same(after.voices.of('bela'), { cpu: 0.2, beginMs: 30 });
  t.equal(after.encodings.of('flac').cpu, 0.003);
  t.equal(after.encodings.of('mp3').cpu, before.encodings.of('mp3').cpu);
  const kept = JSON.parse(readFileSync(file, 'utf8')) as { voices: object };
  t.same(Object.keys(kept.voices).sort(), ['ada', 'bela']);
});

t.test('what real work showed goes before a measurement, unless they differ much', async (t) => {
  const file = join(temporaryFolder(t), 'costs.json');
  const before = await Costs.read(file);
  before.voices.measured('ada', { cpu: 0.01, beginMs: 5 });
  before.encodings.measured('mp3', { cpu: 0.004, beginMs: 0 });
  await before.keep();
  const after = await Costs.read(file);
  after.voices.measured('ada', { cpu: 0.018, beginMs: 9 });
  after.encodings.measured('mp3', { cpu: 0.0021, beginMs: 0 });
  t.same(after.voices.of('ada'), { cpu: 0.01, beginMs: 5 }, 'less than twice as much');
  t.equal(after.encodings.of('mp3').cpu, 0.004);
  after.voices.measured('ada', { cpu: 0.021, beginMs: 9 });
  t.same(after.voices.of('ada'), { cpu: 0.021, beginMs: 9 }, 'another voice, or another machine');
  after.voices.measured('ada', { cpu: 0.01, beginMs: 4 });
  t.same(after.voices.of('ada'), { cpu: 0.01, beginMs: 4 }, 'less than half');
});

t.test('a measurement that is no number changes nothing', (t) => {
  const costs = new Costs();
  costs.voices.measured('ada', { cpu: 0.03, beginMs: 5 });
  for (const cpu of [NaN, Infinity, -1, 0]) costs.voices.measured('ada', { cpu, beginMs: 5 });
  costs.voices.measured('ada', { cpu: 0.3, beginMs: NaN });
  t.same(costs.voices.of('ada'), { cpu: 0.03, beginMs: 5 });
  t.end();
});

t.test('a broken file, or a broken part of one, counts as absent', async (t) => {
  const file = join(temporaryFolder(t), 'costs.json');
  const unknown = new Costs().voices.of('ada');
  for (const text of ['', '{', 'null', '[]', '{"voices":7}', '{"voices":{"ada":null}}', '\0\0']) {
    writeFileSync(file, text);
    t.same((await Costs.read(file)).voices.of('ada'), unknown, JSON.stringify(text));
  }
  writeFileSync(
    file,
    JSON.stringify({
      voices: {
        ada: { cpu: 'much', beginMs: 5 },
        bela: { cpu: -1, beginMs: 5 },
        carl: { cpu: 0.5 },
        dora: { cpu: 0.5, beginMs: 7 },
      },
    }),
  );
  const costs = await Costs.read(file);
  for (const voice of ['ada', 'bela', 'carl']) t.same(costs.voices.of(voice), unknown, voice);
  t.same(costs.voices.of('dora'), { cpu: 0.5, beginMs: 7 });
  await costs.keep();
  t.same((await Costs.read(file)).voices.of('dora'), { cpu: 0.5, beginMs: 7 }, 'it is written anew');
});

t.test('costs that are not kept write nothing; a folder that is gone is reported', async (t) => {
  await new Costs().keep();
  const costs = await Costs.read(join(temporaryFolder(t), 'gone', 'costs.json'));
  speak(costs);
  await t.rejects(costs.keep(), { code: 'ENOENT' });
});
