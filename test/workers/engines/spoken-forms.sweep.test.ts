import t from 'tap';
import { limits } from '../../../src/limits.js';
import { normalise } from '../../../src/text/normalise/normalise.js';
import { wordSpans } from '../../../src/text/words.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';
import { cases } from '../../text/normalise/cases.js';
import { type RequestParts, type Spoken, loadVoices, speak } from '../../support/voices.js';

const engine = await loadVoices();

/** Speaks with `normalize_text`. */
const speakNormalised = (text: string, more: RequestParts = {}): Promise<Spoken> =>
  speak(engine, text, { spoken: normalise(text, wordSpans(text), limits), ...more });

const timesOf = ({ words }: Spoken) => words.map(({ startSample, endSample }) => [startSample, endSample]);

/** Atoms with the index of their token, and `/` with the terminal after each clause. */
const atomsOf = (text: string): string => {
  const words = wordSpans(text);
  return clausesOf(text, words, normalise(text, words, limits))
    .map(
      ({ atoms, terminal }) =>
        `${atoms.map(({ spoken, word }) => `${word}:${spoken}`).join(' ')} /${terminal}`,
    )
    .join(' ');
};

t.test('replacements belong to the tokens that they replace, punctuation included', (t) => {
  t.equal(atomsOf('I paid $5, OK?'), '0:I 1:paid 2:five 2:dollars /0 3:O.K. /2');
  t.equal(atomsOf('On Jan. 5, 2024.'), '0:On 1:January 2:fifth /0 3:twenty 3:twenty 3:four /1');
  t.equal(atomsOf('At 3:05pm Monday'), '0:At 1:three 1:oh 1:five 1:p.m 2:Monday /1');
  t.equal(atomsOf('Call 555-1234!'), '0:Call 1:five 1:five 1:five /0 1:one 1:two 1:three 1:four /3');
  t.equal(atomsOf('pay 1 000 000 now'), '0:pay 1:one 1:million 4:now /1');
  t.equal(atomsOf('Dr. Lee etc. left'), '0:Doctor 1:Lee 2:et 2:cetera 3:left /1');
  t.end();
});

t.test('an expanded token is spoken and timed as if its words had been written', async (t) => {
  const pairs = [
    ['I paid $5.50 for two.', 'I paid five dollars and fifty cents for two.', [1, 1, 5, 1, 1]],
    ['On 1/5/2024, we met.', 'On January fifth twenty twenty four, we met.', [1, 5, 1, 1]],
    ['Meet Dr. Lee at 3pm today!', 'Meet Doctor Lee at three p.m today!', [1, 1, 1, 1, 2, 1]],
    ['Call 555-1234 now.', 'Call five five five, one two three four now.', [1, 7, 1]],
  ] as const;
  for (const [written, spoken, counts] of pairs)
    for (const seed of [1, 2]) {
      const normalised = await speakNormalised(written, { seed });
      const reference = await speak(engine, spoken, { seed });
      t.strictSame(normalised.pcm, reference.pcm, written);
      let word = 0;
      const expected = counts.map((count) => {
        const { startSample } = reference.words[word]!;
        word += count;
        return [startSample, reference.words[word - 1]!.endSample];
      });
      t.strictSame(
        timesOf(normalised),
        expected,
        'from the first of its words to the last; its neighbours are unchanged',
      );
    }
});

t.test('tokens that are spoken as one share its time, in order', async (t) => {
  const normalised = await speakNormalised('It is 1 000 000 now.');
  const reference = await speak(engine, 'It is one million now.');
  t.strictSame(normalised.pcm, reference.pcm);
  const times = timesOf(normalised);
  const heard = timesOf(reference);
  t.strictSame(
    [...times.slice(0, 2), times[5]],
    [...heard.slice(0, 2), heard[4]],
    'the other words are unchanged',
  );
  const [one, two, three] = times.slice(2, 5) as [number[], number[], number[]];
  t.strictSame([one[0], three[1]], [heard[2]![0], heard[3]![1]]);
  t.strictSame([one[1], two[1]], [two[0], three[0]]);
  const lengths = [one, two, three].map(([start = 0, end = 0]) => end - start);
  t.ok(Math.max(...lengths) - Math.min(...lengths) <= 240, 'a third each, to a frame');
});

t.test('every token has a time, in order, also beside expanded tokens', async (t) => {
  const groups = Object.values(cases).map((rows) =>
    rows
      .slice(0, 8)
      .map(([written]) => written)
      .join(' '),
  );
  for (const text of groups) {
    const { pcm, words, spans } = await speakNormalised(text.slice(0, 200).trimEnd(), { speed: 2 });
    t.strictSame(
      words.map(({ word }) => word),
      spans.map((_, word) => word),
      text,
    );
    let end = 0;
    for (const { startSample, endSample } of words) {
      if (startSample < end || endSample < startSample)
        t.fail(`${startSample} to ${endSample} after ${end}: ${text}`);
      end = endSample;
    }
    t.ok(end <= pcm.length);
  }
});
