/**
 * Turns texts into the phones that the service would speak, for the training of the voice.
 *
 * The first line on standard output is `{"phones", "vowels"}`: the names of all phones in id order, and which of them are
 * vowels. Then each line of standard input, a text as a JSON string, is answered by one line with the parallel arrays
 * `{"ids", "stress", "wordStart", "terminal"}`: a pause, then clauses with a pause after each.
 */
import { createInterface } from 'node:readline';
import { limits } from '../../src/limits.js';
import { wordSpans } from '../../src/text/words.js';
import { clausesOf } from '../../workers/engines/g2p/clauses.js';
import { Espeak } from '../../workers/engines/g2p/espeak.js';
import { Pronouncer } from '../../workers/engines/g2p/pronunciation.js';
import { consonantNames, pauseName, vowelNames } from '../../workers/engines/syrinx/ipa.js';
import { PhoneSet } from '../../workers/engines/syrinx/phones.js';
import { PhoneTrack } from '../../workers/engines/syrinx/track.js';

const names = [pauseName, ...vowelNames, ...consonantNames];
const phones = new PhoneSet(names);
const pronouncer = new Pronouncer(await Espeak.load(limits), phones, limits);

const write = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);

write({ phones: names, vowels: vowelNames });
for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line) as string;
  const words = wordSpans(text);
  const means = { pronouncer, phones, bounds: limits };
  const track = new PhoneTrack(clausesOf(text, words), words.length, means);
  while (!track.complete) track.advance();
  const { ids, stress, wordStart, terminal } = track;
  write({ ids, stress, wordStart, terminal });
}
