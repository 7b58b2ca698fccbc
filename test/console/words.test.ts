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
