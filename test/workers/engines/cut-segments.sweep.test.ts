/** What a segment is whose text was cut out of a longer one. */
import t from 'tap';
import { loadVoices, requestOf, speak } from '../../support/voices.js';

const engine = await loadVoices();
const milliseconds = (count: number) => (count * 24_000) / 1_000;

t.test('a cut clause has times to its end, and a repeated request the same samples', async (t) => {
  const request = { before: 'we sat down in the ', after: 'until it was dark', seed: 9 };
  const text = 'kitchen and talked about the journey ';
  const first = await speak(engine, text, request);
  const again = await speak(engine, text, request);
  t.strictSame(first.pcm, again.pcm);
  t.equal(first.words.length, 6);
  t.equal(first.words[0]!.startSample, 0);
  t.equal(first.words.at(-1)!.endSample, first.pcm.length);
  for (const [i, word] of first.words.entries()) {
    t.ok(word.endSample > word.startSample);
    t.equal(word.startSample, i === 0 ? 0 : first.words[i - 1]!.endSample);
  }
  // Two readings differ in length, so several are compared.
  const ratios: number[] = [];
  for (let seed = 0; seed < 8; seed++) {
    const { pcm } = await speak(engine, text, { ...request, seed });
    const { words } = await speak(engine, `we sat down in the ${text}until it was dark`, { seed });
    ratios.push(Math.log(pcm.length / (words[10]!.endSample - words[5]!.startSample)));
  }
  const ratio = Math.exp(ratios.reduce((sum, value) => sum + value, 0) / ratios.length);
  t.ok(ratio > 0.9 && ratio < 1.1, `as long as in the middle of the whole clause: ${ratio.toFixed(3)}`);
});

t.test('any text may be beside a segment', async (t) => {
  const beside = ['"', '…', '\ud800', '漢字', 'x'.repeat(32), '- and', 'a) b', '\u0000', ' ', 'and so, on'];
  for (const [i, before] of beside.entries())
    for (const text of ['Yes', '...', 'x'.repeat(80)]) {
      const after = beside[(3 * i + 1) % beside.length]!;
      const { pcm, words } = await speak(engine, text, { before, after });
      t.ok(pcm.length > milliseconds(100), JSON.stringify([before, text, after]));
      t.equal(words.length, requestOf(text).words.length);
      t.ok(words.every(({ endSample }) => endSample <= pcm.length));
    }
});

t.test('a segment without a sound, in it or beside it, is a short silence', async (t) => {
  for (const mark of ['\u0301', '\u200d', '\ufe0f', '\u0000', '.']) {
    const beside = { before: mark.repeat(32), after: mark.repeat(20) };
    const { pcm, words } = await speak(engine, mark.repeat(180), beside);
    t.ok(pcm.length > milliseconds(100), JSON.stringify(mark));
    t.ok(pcm.every((sample) => sample === 0));
    t.equal(words.length, 1);
  }
});
