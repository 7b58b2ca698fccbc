/** Segments of one text sound like one reading, by statistics over many of them. */
import t from 'tap';
import { limits } from '../../../src/limits.js';
import { Segmenter } from '../../../src/text/segments.js';
import { isNight } from '../../fuzz/check.js';
import {
  joinPcm,
  levelDb,
  loadVoices,
  median,
  pitchTrack,
  speak,
  type RequestParts,
} from '../../support/voices.js';

const engine = await loadVoices();
const sampleRateHz = 24_000;
const milliseconds = (count: number) => (count * sampleRateHz) / 1_000;

const texts = [
  'the first thing that we did when we came home was to open all of the windows and then we sat down in the kitchen ' +
    'and talked about the journey until it was dark and nobody wanted to be the one who would get up and light the ' +
    'lamp so we went on talking in the dark about the people that we had met and the places that we would like to see',
  'you can take the road along the river and then walk over the bridge where the mill was when we were young or you ' +
    'can go by the wood and come down to the village from above which is longer but there are no cars and you will ' +
    'see a lot of birds and maybe even the old deer that lives near the well and is not afraid of anybody',
];

interface Join {
  readonly pcm: Int16Array;
  readonly at: number;
}

/** Speaks a text in segments, as the service does. @returns the speech, and where each segment but the first begins */
const speakCut = async (text: string, voiceId: string, more: RequestParts = {}) => {
  const segmenter = new Segmenter(limits);
  const parts: Int16Array[] = [];
  const seams: number[] = [];
  /** Index of each word that begins a segment. */
  const words: number[] = [];
  let samples = 0;
  let count = 0;
  for (const [i, segment] of [...segmenter.push(text), ...segmenter.end()].entries()) {
    if (i > 0) {
      seams.push(samples);
      words.push(count);
    }
    const { before, after } = segment;
    const request = { voiceId, before, after, seed: 100 + i, utteranceSeed: 7, ...more };
    const { pcm } = await speak(engine, segment.text, request);
    parts.push(pcm);
    samples += pcm.length;
    count += segment.words.length;
  }
  return { pcm: joinPcm(parts), seams, words };
};

/** Semitones between the last 50 voiced ms before a place and the first after it. */
const pitchStep = ({ pcm, at }: Join): number => {
  const voiced = (from: number, to: number) => pitchTrack(pcm.subarray(from, to)).filter((hz) => hz > 0);
  const before = voiced(Math.max(0, at - milliseconds(350)), at).slice(-5);
  const after = voiced(at, at + milliseconds(350)).slice(0, 5);
  return Math.abs(12 * Math.log2(median(after) / median(before)));
};

/** dB between the 30 ms before a place and the 30 ms after it. */
const levelStep = ({ pcm, at }: Join): number =>
  Math.abs(levelDb(pcm, at, at + milliseconds(30)) - levelDb(pcm, at - milliseconds(30), at));

t.test('pitch and level change no more at a cut in a clause than without one', async (t) => {
  const seams: Join[] = [];
  const apart: Join[] = [];
  const uncut: Join[] = [];
  for (const voiceId of isNight ? ['wren', 'lark_conv', 'rook'] : ['wren'])
    for (const text of texts)
      for (const utteranceSeed of [7, 8]) {
        const cut = await speakCut(text, voiceId, { utteranceSeed });
        const alone = await speakCut(text, voiceId, { utteranceSeed, before: '', after: '' });
        const whole = await speak(engine, text, { voiceId, seed: 3, utteranceSeed });
        seams.push(...cut.seams.map((at) => ({ pcm: cut.pcm, at })));
        apart.push(...alone.seams.map((at) => ({ pcm: alone.pcm, at })));
        uncut.push(...cut.words.map((word) => ({ pcm: whole.pcm, at: whole.words[word]!.startSample })));
      }
  t.ok(seams.length >= (isNight ? 24 : 8), `${seams.length} seams`);
  const steps = (joins: readonly Join[], step: (join: Join) => number) =>
    median(joins.map(step).filter(Number.isFinite));
  const [pitch, pitchApart, pitchUncut] = [seams, apart, uncut].map((joins) => steps(joins, pitchStep));
  t.comment(`semitones: ${pitch} cut, ${pitchUncut} uncut, ${pitchApart} without the text beside it`);
  t.ok(pitch! < pitchUncut! + 0.5);
  t.ok(pitch! < pitchApart! - 1, 'the text beside it makes the difference');
  const [level, levelApart, levelUncut] = [seams, apart, uncut].map((joins) => steps(joins, levelStep));
  t.comment(`dB: ${level} cut, ${levelUncut} uncut, ${levelApart} without the text beside it`);
  t.ok(level! < levelUncut! + 3);

  // No pause, and no click: neighbouring samples differ no more than within the words.
  for (const { pcm, at } of seams) {
    let quiet = 0;
    for (let i = at - milliseconds(40); i < at + milliseconds(40); i++) if (Math.abs(pcm[i]!) < 33) quiet++;
    t.ok(quiet < milliseconds(45), `${(1_000 * quiet) / sampleRateHz} ms of silence`);
    t.ok(Math.abs(pcm[at]! - pcm[at - 1]!) < 100);
  }
});

t.test('segments have one pace, within an utterance and between utterances', async (t) => {
  const text =
    'We were all in the garden when the news came over the wall. It was late in the evening, and nobody knew what to say.';
  /** Standard deviation of the logarithm of the length. */
  const variety = async (utteranceSeed: (seed: number) => number) => {
    const lengths: number[] = [];
    for (let seed = 0; seed < 12; seed++) {
      const request = { seed, utteranceSeed: utteranceSeed(seed), temperature: 2 };
      lengths.push(Math.log((await speak(engine, text, request)).words.at(-1)!.endSample));
    }
    const mean = lengths.reduce((sum, value) => sum + value, 0) / lengths.length;
    return Math.sqrt(lengths.reduce((sum, value) => sum + (value - mean) ** 2, 0) / lengths.length);
  };
  const [same, other] = [await variety(() => 5), await variety((seed) => seed)];
  t.comment(`lengths vary by ${same} within an utterance, by ${other} between utterances`);
  t.ok(same < 0.05 && other < 0.06, 'at a temperature of 2');
  t.ok(same > 0, 'yet no two readings are the same');
});
