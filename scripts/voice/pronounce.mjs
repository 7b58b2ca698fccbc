// Reads words (one a line), writes `word<TAB>pronunciation` with espeak-ng's phonemes: the same front end that the
// service speaks with, so that the teacher and the service agree on how a word sounds.
//
// A word is asked for inside a carrier sentence: alone, espeak-ng would stress every function word.

import { createInterface } from 'node:readline';
import Init from '@echogarden/espeak-ng-emscripten';

const CARRIER_WORDS = 1; // the word "say" before the word asked for

const module = await Init();
const worker = await new module.eSpeakNGWorker();
if (worker.set_voice('en-us') !== 0) throw new Error('espeak-ng has no voice "en-us"');

function phonemesOf(text) {
  const start = worker.convert_to_phonemes(text, true).ptr;
  return new TextDecoder().decode(module.HEAPU8.subarray(start, module.HEAPU8.indexOf(0, start)));
}

for await (const word of createInterface({ input: process.stdin })) {
  const groups = phonemesOf(`say ${word} twice`)
    .split(/\s+/)
    .filter((group) => group !== '');
  // Words that espeak-ng joins to a neighbour or splits keep the teacher's own pronunciation.
  if (groups.length === CARRIER_WORDS + 2) process.stdout.write(`${word}\t${groups[CARRIER_WORDS]}\n`);
}
