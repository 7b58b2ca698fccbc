/** What a character of text costs the front thread: by the kind of text, and what of it is reading the text. */
import { noSpeakingDefaults, settingsOf } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import { requestOf } from '../../src/speech/utterances.js';
import { Segmenter } from '../../src/text/segments.js';
import { exchange, speechRequest } from '../rig/http.js';
import { cpuTimeMs, cpuTimesOf } from '../rig/process-facts.js';
import type { Service } from '../rig/service.js';
import { sumOf } from '../rig/statistics.js';
import { repeatTo, minuteText } from '../rig/texts.js';
import { row, type Row } from './report.js';
import type { Target } from './streams.js';

const characters = 2_500;
const rounds = 8;
const readings = 2_000;
/** UTF-16 units, as the service cuts text. */
const sliceUnits = 512;

const kinds = {
  prose: minuteText,
  'chat with markup':
    'Sure, **happy to help**! Here is what you *need*:\n\n* Open the `settings` and choose _Voice_.\n* Say ~~no~~ YES, then wait.\n\n' +
    '1. First, read the guide [1].\n2. Then call NASA’s desk at 5:30 p.m. It is GOOD news 👍🏽!\n\n',
  addresses:
    'You can find the docs at https://example.com/docs/start?ref=chat and mail us at help@example.com. ' +
    'The version is 3.5.1, see Fig. 2. I think it is the best way to do it, or visit www.acme.org. ',
} as const;

const texts = Object.entries(kinds).map(([kind, text]) => ({ kind, text: repeatTo(text, characters) }));

/** Nanoseconds that this process needs for a character, to cut the text and to find what is spoken in place of its words. */
const readingNs = (text: string, voice: string, normalizeText: boolean): number => {
  const settings = settingsOf({ voiceId: voice, normalizeText }, noSpeakingDefaults);
  const read = (times: number): number => {
    const begunMs = cpuTimeMs();
    for (let time = 0; time < times; time++) {
      const segmenter = new Segmenter(limits, false, 'en-US');
      for (let at = 0; at < text.length; at += sliceUnits)
        for (const segment of segmenter.push(text.slice(at, at + sliceUnits)))
          requestOf(segment, settings, limits, 'en-US');
      for (const segment of segmenter.end()) requestOf(segment, settings, limits, 'en-US');
    }
    return cpuTimeMs() - begunMs;
  };
  read(readings / 4);
  return (read(readings) / readings / text.length) * 1e6;
};

/** Alternates between the texts, so that a slow moment of the machine affects all alike. */
export const measureText = async ({ keys, port, voice }: Target, service: Service): Promise<Row[]> => {
  const costs = new Map<string, number[]>(texts.map(({ kind }) => [kind, []]));
  for (let round = -1; round < rounds; round++)
    for (const { kind, text } of texts) {
      const before = cpuTimesOf(service.pid).front;
      const { status } = await exchange(port, speechRequest({ key: keys[0]!, voice, text }));
      if (status !== 200) throw new Error(`the service answered ${status}`);
      if (round >= 0) costs.get(kind)!.push(cpuTimesOf(service.pid).front - before);
    }
  return texts.map(({ kind, text }) => {
    const whole = costs.get(kind)!;
    const each = (sumOf(whole) / whole.length / text.length) * 1000;
    const [plain, normalised] = [false, true].map((isOn) => readingNs(text, voice, isOn));
    return row(
      `Front thread, time of a character: ${kind}`,
      `${each.toFixed(1)} µs with the sending of its audio; to read the text ${plain!.toFixed(0)} ns, ${normalised!.toFixed(0)} ns with normalize_text`,
    );
  });
};
