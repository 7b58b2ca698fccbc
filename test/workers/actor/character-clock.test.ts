import fc from 'fast-check';
import t from 'tap';
import { CharacterClock } from '../../../workers/actor/character-clock.js';
import type { WordTimings } from '../../../src/threads/messages.js';
import { check } from '../../fuzz/check.js';

const RATE = 24_000;

const join = (parts: readonly (WordTimings | undefined)[]): WordTimings => {
  const known = parts.filter((part) => part !== undefined);
  return {
    words: known.flatMap(({ words }) => words),
    start_seconds: known.flatMap(({ start_seconds }) => start_seconds),
    end_seconds: known.flatMap(({ end_seconds }) => end_seconds),
  };
};

const segment = (gaps: readonly string[], words: readonly string[]) => ({
  type: 'segment' as const,
  contextId: 1,
  segment: 0,
  words,
  gaps,
  tokenContinues: false,
});

t.test('the time of a word is divided among its characters; white space fills what is between', (t) => {
  const clock = new CharacterClock(RATE, true);
  clock.beginSegment(segment(['', ' ', ''], ['ab', '👋c']));
  clock.add({ word: 0, startSample: 1_200, endSample: 3_600 });
  clock.add({ word: 1, startSample: 4_800, endSample: 7_200 });
  t.strictSame(clock.take(), {
    words: ['a', 'b', ' ', '👋', 'c'],
    start_seconds: [0.05, 0.1, 0.15, 0.2, 0.25],
    end_seconds: [0.1, 0.15, 0.2, 0.25, 0.3],
  });
  clock.endSegment(9_600);
  clock.finish();
  t.strictSame(clock.take(), { words: [' '], start_seconds: [0.3], end_seconds: [0.4] }, 'the missing space');
  t.equal(clock.take(), undefined);
  t.end();
});

t.test('a word that is reported alone has its space with it', (t) => {
  const clock = new CharacterClock(RATE, true);
  clock.beginSegment(segment(['', '\n ', ' '], ['a', 'b']));
  clock.add({ word: 0, startSample: 0, endSample: 2_400 });
  t.strictSame(clock.take(), {
    words: ['a', '\n', ' '],
    start_seconds: [0, 0.1, 0.1],
    end_seconds: [0.1, 0.1, 0.1],
  });
  clock.add({ word: 1, startSample: 4_800, endSample: 7_200 });
  t.strictSame(clock.take()?.start_seconds, [0.2, 0.3], 'its silence is not heard as a character');
  t.end();
});

const blank = fc.stringMatching(/^[ \n\u3000]{0,3}$/);
const word = fc.oneof(fc.stringMatching(/^[a-z.,!]{1,8}$/), fc.constantFrom('👋', '\ud800', 'é', '世界'));
const segments = fc.array(
  fc.record({
    words: fc.array(word, { maxLength: 5 }),
    gaps: fc.array(blank, { minLength: 6, maxLength: 6 }),
    samples: fc.array(fc.nat(5_000), { minLength: 11, maxLength: 11 }),
    takes: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
  }),
  { maxLength: 5 },
);

t.test('any text is rebuilt exactly, and times never fall', async (t) => {
  await check(
    t,
    fc.property(segments, blank, (parts, last) => {
      const clock = new CharacterClock(RATE, false);
      const taken: (WordTimings | undefined)[] = [];
      let text = '';
      let totalSamples = 0;
      for (const { words, gaps, samples, takes } of parts) {
        clock.beginSegment(segment(gaps.slice(0, words.length + 1), words));
        text += gaps[0]! + words.map((each, index) => each + gaps[index + 1]!).join('');
        let at = 0;
        words.forEach((_, index) => {
          const startSample = (at += samples[2 * index]!);
          const endSample = (at += samples[2 * index + 1]!);
          clock.add({ word: index, startSample, endSample });
          if (takes[index] === true) taken.push(clock.take());
        });
        at += samples.at(-1)!;
        totalSamples += at;
        clock.endSegment(at);
      }
      clock.finish(last);
      const { words, start_seconds, end_seconds } = join([...taken, clock.take()]);
      if (words.join('') !== text + last) return false;
      let end = 0;
      for (const [index, start] of start_seconds.entries()) {
        if (start < end || end_seconds[index]! < start) return false;
        end = end_seconds[index]!;
      }
      return end <= Math.round(totalSamples / 24) / 1000;
    }),
    100,
  );
});
