import t from 'tap';
import { limits } from '../../../src/limits.js';
import { EffortTable } from '../../../src/threads/effort.js';
import { Segmenter } from '../../../src/text/segments.js';
import { wordSpans } from '../../../src/text/words.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import { Pronouncer } from '../../../workers/engines/g2p/pronunciation.js';
import { PhoneTrack, placeMax } from '../../../workers/engines/syrinx/track.js';
import { loadPhones } from '../../support/voices.js';

const { phones } = await loadPhones();
const espeak = await Espeak.load(limits);
const pronouncer = new Pronouncer(espeak, phones, limits);
/** Phones of the first encoder window, its margin included. */
const firstWindow = 16;

const trackOf = (text: string, before = '', after = '', beforeIsWhole = false): PhoneTrack => {
  const words = wordSpans(text);
  return new PhoneTrack(clausesOf(text, words, [], { before, after, beforeIsWhole }), words.length, {
    pronouncer,
    phones,
    bounds: limits,
  });
};
const complete = (track: PhoneTrack): PhoneTrack => {
  while (!track.complete) track.advance();
  return track;
};

t.test('first audio of a text without marks needs one call of espeak-ng', (t) => {
  for (const text of [
    'the first thing that we did when we came home was to open all of the windows and then we sat down '.repeat(
      9,
    ),
    'a b c d e f g h i j k l m n o p q r s t u v w x y z '.repeat(20),
    'incomprehensibilities notwithstanding '.repeat(20),
  ]) {
    const [first] = new Segmenter(limits).push(text);
    const track = trackOf(first!.text, first!.before, first!.after);
    track.advance();
    t.ok(track.ready >= firstWindow, `${track.ready} phones are ready`);
  }
  const marked = trackOf(
    'The first thing that we did when we came home was to open all the windows, and rest.',
  );
  marked.advance();
  t.ok(marked.ready < marked.length, 'with a mark ahead, phones wait until its place is known');
  t.end();
});

t.test('a text of many scripts changes the voice of espeak-ng once for each and sounds the same', (t) => {
  const asked: string[] = [];
  t.intercept(espeak, 'groups', {
    value: (text: string, voice: string) => {
      asked.push(voice);
      return Espeak.prototype.groups.call(espeak, text, voice);
    },
  });
  // None has a piece of another: what was said is kept for a second.
  for (const text of ['ıಲя€ı '.repeat(12), 'д, ಮ, e, '.repeat(12), 'жж oಕಕ u '.repeat(12)]) {
    const ids: number[] = [];
    for (const { atoms } of clausesOf(text, wordSpans(text)))
      for (const atom of atoms) ids.push(...new Pronouncer(espeak, phones, limits).pronounce([atom])[0]!.ids);
    asked.length = 0;
    const track = complete(trackOf(text));
    t.ok(asked.length >= 3);
    t.equal(asked.filter((voice, at) => voice !== asked[at - 1]).length, 3, text);
    t.strictSame(
      track.ids.filter((_, phone) => track.pause[phone] === null),
      ids,
    );
  }
  t.end();
});

t.test('phones of a clause that other segments speak surround those of this one', (t) => {
  const whole = complete(trackOf('we sat down in the kitchen and talked about it'));
  const part = complete(trackOf('the kitchen and ', 'we sat down in ', 'talked about it'));
  t.ok(part.first > 0 && part.end < part.length);
  // The same phones, except for the pauses at the ends of the whole.
  t.strictSame(part.ids, whole.ids.slice(1, -1));
  t.strictSame(
    part.aside.map((aside, phone) => aside === (phone < part.first || phone >= part.end)),
    part.ids.map(() => true),
  );
  for (let phone = part.first; phone < part.end; phone++) {
    t.ok(phone - part.clauseStart[phone]! >= placeMax, 'the clause began long before');
    t.equal(part.phonesToEnd(phone), placeMax, 'and ends long after');
  }
  t.equal(part.wordFirst[0], part.first);
  t.equal(part.wordLast[2], part.end - 1);

  const sentence = complete(trackOf('we sat down in the kitchen.'));
  const second = complete(trackOf('the kitchen.', 'we sat down in ', '', true));
  t.strictSame(
    [second.ids, second.clauseStart],
    [sentence.ids, sentence.clauseStart],
    'after the whole start of a clause each phone has its true place',
  );

  const toEnd = Array.from({ length: second.length - 1 }, (_, phone) => second.phonesToEnd(phone));
  t.equal(toEnd[0], 0, 'a pause is a clause of its own');
  t.ok(
    toEnd.slice(1, second.first + 1).every((phones) => phones === placeMax),
    'as far as the first segment could see, the clause went on',
  );
  t.equal(toEnd.at(-1), 0);
  const steps = toEnd.slice(second.first).map((phones, i, all) => (i === 0 ? 0 : all[i - 1]! - phones));
  t.ok(Math.max(...steps) - Math.min(...steps.slice(1)) < 1e-9, 'it comes to the true distance step by step');
  t.strictSame(
    [sentence.phonesToEnd(1), sentence.phonesToEnd(sentence.length - 2)],
    [sentence.length - 3, 0],
    'a clause in one segment has true distances',
  );

  const last = complete(trackOf('the kitchen.', 'so. we sat down in ', ''));
  t.equal(last.pause[0], 'lead', 'the beginning of a clause is known');
  t.equal(last.clauseStart[last.first], 1);
  t.equal(last.end, last.length);
  t.equal(last.pause.at(-1), 'sentence');

  const alone = complete(trackOf('Yes.'));
  t.strictSame([alone.first, alone.end], [0, alone.length]);
  const nothing = complete(trackOf('"', 'we sat ', 'down'));
  t.equal(nothing.first, -1);
  t.end();
});

t.test('a change of language is no cost of the voice', (t) => {
  const asideMs = (voices: readonly string[]): number => {
    espeak.groups('one', voices[0]!);
    const end = new EffortTable(1).begin();
    // The clock of a thread may advance by milliseconds.
    for (let change = 0; change < 200; change++) espeak.groups('one', voices[change % voices.length]!);
    return end(0).asideMs;
  };
  t.equal(asideMs(['en-us']), 0);
  t.ok(asideMs(['en-us', 'de']) > 0);
  t.end();
});
