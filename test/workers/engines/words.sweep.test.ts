import fc from 'fast-check';
import t from 'tap';
import { check } from '../../fuzz/check.js';
import { type Spoken, levelDb, loadVoices, speak } from '../../support/voices.js';

const engine = await loadVoices();
const voiceIds = engine.voices.map(({ id }) => id);

/** Checks what holds for the words of any text. @returns the first fault */
const faultOf = ({ pcm, words, spans, chunks, wordsOfChunks }: Spoken): string | null => {
  if (words.length !== spans.length) return `${words.length} times for ${spans.length} words`;
  let previousEnd = 0;
  for (const [i, { word, startSample, endSample }] of words.entries()) {
    if (word !== i) return `word ${word} is reported as number ${i}`;
    if (startSample < previousEnd) return `word ${i} starts at ${startSample}, before ${previousEnd}`;
    if (endSample < startSample) return `word ${i} ends before it starts`;
    previousEnd = endSample;
  }
  if (previousEnd > pcm.length) return `the last word ends at ${previousEnd} of ${pcm.length} samples`;
  let from = 0;
  for (const [i, chunk] of chunks.entries()) {
    if (chunk.length === 0) return 'an empty chunk';
    const to = from + chunk.length;
    for (const { word, endSample } of wordsOfChunks[i]!)
      if (endSample > to) return `word ${word} ends at ${endSample}, its chunk at ${to}`;
    from = to;
  }
  return null;
};

t.test('every token has a time, in order, reported with the chunk that it ends in', async (t) => {
  const texts = [
    'It was a dark and stormy night, out of the blue.',
    'In 1984 it cost $5.99, didn’t it? Well-known — isn’t it!',
    'See https://example.com/a?b=1 or mail me@example.com :-) 😀 … "quoted"',
    '你好，世界。我是中国人。',
    'مرحبا بالعالم ٢٠٢٣ hello Привет мир',
    'a b c d e f g',
    'one ... two -- three',
    '<speak>was a</speak> &amp; [[h@loU]]',
    'supercalifragilisticexpialidocious'.repeat(5),
  ];
  for (const text of texts)
    for (const [voiceId, speed] of [
      [voiceIds[0]!, 1],
      [voiceIds.at(-1)!, 2],
    ] as const) {
      const spoken = await speak(engine, text, { voiceId, speed });
      t.equal(faultOf(spoken), null, text);
      // Times are on the grid of frames, shifted by the silence that is left out at the start.
      const { words } = spoken;
      const phase = words.find(({ startSample }) => startSample > 0)?.startSample ?? 0;
      for (const { endSample } of words.slice(1)) t.equal((endSample - phase) % 240, 0);
    }
});

t.test('words sound at their times', async (t) => {
  const { pcm, words } = await speak(engine, 'Apples, oranges, lemons.');
  t.equal(words.length, 3);
  for (const { startSample, endSample } of words)
    t.ok(levelDb(pcm, startSample, endSample) > -30, `${startSample} to ${endSample}`);
  for (const [i, { endSample }] of words.slice(0, -1).entries()) {
    const pause = words[i + 1]!.startSample;
    t.ok(pause - endSample >= 2_400, 'a comma makes a pause that belongs to no word');
    t.ok(levelDb(pcm, endSample + 1_200, pause - 480) < -45, 'the pause is silent');
  }
});

t.test('punctuation between spaces has a time without length, after the word before it', async (t) => {
  const { words } = await speak(engine, 'one — two');
  t.equal(words.length, 3);
  t.equal(words[1]!.startSample, words[0]!.endSample);
  t.equal(words[1]!.endSample, words[0]!.endSample);
  t.ok(words[2]!.startSample > words[1]!.endSample);
});

t.test('any text can be spoken', async (t) => {
  const glyphs = fc.string({ unit: 'binary', maxLength: 10 });
  const fragments = fc.constantFrom(
    '<b>',
    '&lt;',
    '[[',
    '$5',
    'was a ',
    '\u0000',
    '😀',
    '好',
    'مرحبا ',
    ' ',
    '\n',
    '?',
    '—',
    'Ж',
    '\ud83d',
  );
  const text = fc.array(fc.oneof(glyphs, fragments), { maxLength: 5 }).map((parts) => parts.join(''));
  const temperature = fc.constantFrom(0.5, 1, 3);
  const voiceId = fc.constantFrom(...voiceIds);
  const property = fc.asyncProperty(text, fc.nat(), temperature, voiceId, async (any, seed, heat, voice) => {
    const spoken = await speak(engine, any, { seed, temperature: heat, voiceId: voice });
    const fault = faultOf(spoken);
    if (fault !== null) throw new Error(fault);
    return spoken.pcm.length > 1_000 && spoken.pcm.at(-1) === 0;
  });
  await check(t, property, 40);
});
