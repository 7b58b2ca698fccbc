/** A search of the words of an account takes the turns of that account. */
import t from 'tap';
import { createCalls, type Caller, type CallsParts } from '../../src/console/calls.js';
import type { Waiting } from '../../src/front/turns.js';
import type { LexiconEntry } from '../../src/text/lexicon.js';

const entry = (index: number): LexiconEntry => ({
  written: `word${index}`,
  ...{ caseRule: 'smart', language: null, form: { spelling: `spoken${index}` } },
});

t.test('a search of many words waits for many turns of the account, and finds all', async (t) => {
  const all = Array.from({ length: 20_000 }, (_, index) => entry(index));
  const waiting: Waiting[] = [];
  const asked: unknown[] = [];
  const turns = {
    of: (member: unknown) => {
      asked.push(member);
      return { wait: (work: Waiting) => waiting.push(work) };
    },
  };
  const calls = createCalls({
    turns,
    administration: { words: () => Promise.resolve({ account: 'ada', own: [all[7]!] }) },
    lexicons: { wordsOf: () => all },
    wordBounds: { consoleWordsMax: 500, consoleWordsShownMax: 1_000 },
  } as unknown as CallsParts);
  const member = { session: { user: { userId: 1, accountId: 4 } } } as unknown as Caller;
  const answer = calls.words({ accountId: 4, search: 'SPOKEN7' }, member);
  await new Promise(setImmediate);
  t.strictSame(asked, [4]);
  const [work] = waiting;
  let pieces = 1;
  while (work!.piece()) pieces++;
  t.ok(pieces >= 40, `${pieces} pieces`);
  const { found, own, words } = await answer;
  t.match({ found, own }, { found: 1_111, own: 1 });
  t.equal(words.length, 1_000);
  t.match(words[0], { word: 'word7', spoken: 'spoken7', isOwn: true });

  const operator = { session: { user: { userId: 1, accountId: null } } } as unknown as Caller;
  void calls.words({ accountId: 4, search: '' }, operator);
  await new Promise(setImmediate);
  t.not(asked[1], 4, 'an operator does not use up the turns of the account');
});

/** @returns the words as the page lists them, and the longest time of one piece of the work */
const listed = async (words: readonly string[]) => {
  let longestMs = 0;
  const wait = (work: Waiting): void => {
    for (let isMore = true; isMore;) {
      const startMs = performance.now();
      isMore = work.piece();
      longestMs = Math.max(longestMs, performance.now() - startMs);
    }
  };
  const calls = createCalls({
    turns: { of: () => ({ wait }) },
    administration: { words: () => Promise.resolve({ account: 'ada', own: [] }) },
    lexicons: { wordsOf: () => words.map((written) => ({ ...entry(1), written })) },
    wordBounds: { consoleWordsMax: 500, consoleWordsShownMax: 1_000 },
  } as unknown as CallsParts);
  const member = { session: { user: { userId: 1, accountId: 4 } } } as unknown as Caller;
  const answer = await calls.words({ accountId: 4, search: '' }, member);
  return { words: answer.words.map(({ word }) => word), longestMs };
};

t.test('words are listed by their letters, whatever case and accents', async (t) => {
  const { words } = await listed(['zebra', 'Übung', 'apple', 'über', 'Zoo', 'Usus', 'éclair', 'Earl']);
  t.strictSame(words, ['apple', 'Earl', 'éclair', 'Usus', 'über', 'Übung', 'zebra', 'Zoo']);
});

t.test('a thousand words of combining marks are listed about as fast as others', async (t) => {
  const fastestMs = async (letters: readonly string[]): Promise<number> => {
    const words = Array.from({ length: 1_000 }, (_, index) =>
      Array.from(
        { length: 60 },
        (_letter, at) => letters[(((index + 7) * (at + 3)) % 101) % letters.length],
      ).join(''),
    );
    const times: number[] = [];
    for (let round = 0; round < 5; round++) times.push((await listed(words)).longestMs);
    return Math.min(...times);
  };
  const [plainMs, markedMs] = [
    await fastestMs(['ea', 'eb', 'ec', 'ed']),
    await fastestMs(['\u00e9\u0316', '\u00e8\u0316', '\u00ea\u0316', '\u00eb\u0316']),
  ];
  t.ok(markedMs < 40 * plainMs, `${markedMs.toFixed(1)} ms, and ${plainMs.toFixed(1)} ms without marks`);
});
