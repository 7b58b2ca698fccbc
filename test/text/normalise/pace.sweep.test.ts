/** How long normalisation takes for long texts, in CPU time: other processes of the machine count for little. */
import t from 'tap';
import { pronounced } from '../../../src/text/lexicon.js';
import { normalise } from '../../../src/text/normalise/normalise.js';
import { wordSpans } from '../../../src/text/words.js';

t.test('reading takes time proportional to the length', (t) => {
  const tokens = [
    ...[
      '1-',
      '2-in-',
      'a.b.',
      'https://a/',
      'x@',
      'code is ',
      '[1]',
      'blue[1',
      '1:1-',
      '&a=',
      'a-1-in-',
      '<b>5</',
      'a#$',
    ],
    ...['in 5 in ', 'is now is now ', '%41', '10s of ', 'John 3:'],
  ];
  const timeOf = (text: string): number => {
    const words = wordSpans(text);
    const start = process.cpuUsage();
    pronounced([], text, words, 'en');
    normalise(text, words, { normalisedTokenMax: text.length }, 'en');
    const { user, system } = process.cpuUsage(start);
    return user + system;
  };
  for (const token of tokens) {
    const [short, long] = [2 ** 12, 2 ** 13].map((units) => token.repeat(units / token.length));
    let [once, twice] = [Infinity, Infinity];
    // The least of many runs: other processes disturb some of them.
    for (let run = 0; run < 12 || (twice > 2.5 * once && run < 200); run++) {
      once = Math.min(once, timeOf(short!));
      twice = Math.min(twice, timeOf(long!));
    }
    t.ok(twice <= 2.5 * once, `${token}: ${once} and ${twice} µs`);
  }
  t.end();
});
