import t from 'tap';
import { terminals } from '../../../workers/engines/g2p/lexer.js';
import { mixingOf, type Speaker } from '../../../workers/engines/syrinx/manifest.js';
import { Prosody } from '../../../workers/engines/syrinx/prosody.js';

const correlation = [
  [1, 0.4, -0.1, 0.2],
  [0.4, 1, 0, 0.3],
  [-0.1, 0, 1, -0.2],
  [0.2, 0.3, -0.2, 1],
];
const mixing = mixingOf(correlation)!;
const speaker: Speaker = {
  id: 'someone',
  description: '',
  mix: [1],
  pitch: 1,
  warp: 1,
  rate: 1,
  fine: 1,
  liveliness: 1,
  gain: 1,
};

interface Parts {
  readonly seed?: number;
  readonly utteranceSeed?: number;
  readonly temperature?: number;
  readonly wordCount?: number;
}

const prosodyOf = ({ seed = 1, utteranceSeed = seed, temperature = 1, wordCount = 8 }: Parts): Prosody =>
  new Prosody(
    { seed, utteranceSeed, settings: { voiceId: 'someone', temperature, normalizeText: false } },
    speaker,
    {
      logMean: 5,
      mixing,
    },
    wordCount,
  );

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const covariance = (a: readonly number[], b: readonly number[]) =>
  mean(a.map((value, i) => (value - mean(a)) * (b[i]! - mean(b))));
const correlationOf = (a: readonly number[], b: readonly number[]) =>
  covariance(a, b) / Math.sqrt(covariance(a, a) * covariance(b, b));
const readings = Array.from({ length: 3_000 }, (_, seed) => seed);

t.test('styles are correlated as the manifest says', (t) => {
  const styles = readings.map((seed) => prosodyOf({ seed }).styleOf(0, terminals.period).values);
  const column = (at: number) => styles.map((values) => values[at]!);
  const drawn = [0, 1, 3];
  for (const i of drawn)
    for (const j of drawn) {
      const wanted = correlation[i]![j]!;
      const found = correlationOf(column(i), column(j));
      t.ok(Math.abs(found - wanted) < 0.08, `${i}, ${j}: ${found.toFixed(3)}, not ${wanted}`);
    }
  const deviations = drawn.map((at) => Math.sqrt(covariance(column(at), column(at))));
  t.ok(
    deviations.every((deviation) => deviation > 0.4 && deviation < 1.05),
    deviations.join(', '),
  );
  t.ok(styles.every((values) => values.every((value) => Math.abs(value) <= 2.5)));
  t.end();
});

t.test('clauses of an utterance share a mood, and each has a style of its own', (t) => {
  const [one, other, elsewhere] = [0, 1, 2].map((clause) =>
    readings.map((utteranceSeed) => {
      const seed = utteranceSeed + (clause === 2 ? 5_000 : 10_000);
      return prosodyOf({ seed, utteranceSeed }).styleOf(clause, terminals.period).values;
    }),
  );
  const alike = (a: typeof one, b: typeof one, at: number) =>
    correlationOf(
      a!.map((values) => values[at]!),
      b!.map((values) => values[at]!),
    );
  t.ok(alike(one, other, 0) > 0.4, 'the height is much that of the utterance');
  t.ok(alike(one, elsewhere, 0) > 0.4, 'in another segment, too');
  t.ok(alike(one, other, 3) < 0.4, 'the tune is that of the clause');
  t.end();
});

t.test('no request has a pace of its own', (t) => {
  for (const terminal of [terminals.continuing, terminals.period, terminals.question, terminals.exclamation])
    for (const seed of readings.slice(0, 100))
      t.equal(prosodyOf({ seed, temperature: 3 }).styleOf(0, terminal).values[2], 0);
  t.end();
});

t.test(
  'a text of one word has less variety than a sentence; a clause that other segments share has all',
  (t) => {
    const spreadOf = (clause: number | null, wordCount: number): number => {
      const tunes = readings.map(
        (seed) => prosodyOf({ seed, wordCount }).styleOf(clause, terminals.period).values[3]!,
      );
      return Math.sqrt(covariance(tunes, tunes));
    };
    const [one, sentence] = [spreadOf(0, 1), spreadOf(0, 8)];
    t.ok(one > 0.2 * sentence && one < 0.3 * sentence, `${one} of ${sentence}`);
    t.equal(spreadOf(null, 1), spreadOf(null, 8));
    t.end();
  },
);

t.test('sounds differ in length, and the next ones give back what they take', (t) => {
  const sounds = 30;
  const read = (seed: number) => {
    const prosody = prosodyOf({ seed });
    return Array.from({ length: sounds }, (_, phone) => prosody.soundFrames(phone, phone % 2 === 0, 8, 0.4));
  };
  const all = readings.slice(0, 1_000).map(read);
  const deviation = (values: readonly number[]) => Math.sqrt(covariance(values, values));
  const one = deviation(all.map((frames) => frames[7]!));
  const whole = deviation(all.map((frames) => frames.reduce((sum, length) => sum + length, 0)));
  t.ok(one > 0.9, `a sound: ${one.toFixed(2)} frames`);
  t.ok(
    whole < 2.5 * one,
    `all: ${whole.toFixed(2)} frames, ${(Math.sqrt(sounds) * one).toFixed(2)} if independent`,
  );
  t.end();
});

t.test('all parts of a clause that is cut have one style', (t) => {
  const style = (seed: number, utteranceSeed: number) =>
    prosodyOf({ seed, utteranceSeed }).styleOf(null, terminals.period);
  t.strictSame(style(1, 9), style(2, 9));
  t.notSame(style(1, 9), style(1, 10));
  t.end();
});

t.test('questions rise, exclamations have a wider range, temperature spreads styles', (t) => {
  const tunes = (terminal: 1 | 2 | 3, at: number, temperature = 1) =>
    readings.slice(0, 500).map((seed) => prosodyOf({ seed, temperature }).styleOf(0, terminal).values[at]!);
  t.ok(Math.min(...tunes(terminals.question, 3)) > 1);
  t.ok(mean(tunes(terminals.exclamation, 1)) > mean(tunes(terminals.period, 1)) + 0.5);
  const [cool, usual, hot] = [0.5, 1, 2].map((temperature) => {
    const values = tunes(terminals.period, 0, temperature);
    return covariance(values, values);
  });
  t.ok(cool! < 0.6 * usual! && usual! < 0.8 * hot!);
  t.end();
});

t.test('lengths vary about the usual one, within limits, and lose nothing in rounding', (t) => {
  const count = 2_000;
  for (const temperature of [0.5, 1, 3]) {
    const prosody = prosodyOf({ temperature });
    const frames = Array.from({ length: count }, (_, phone) => prosody.soundFrames(phone, true, 8, 0.3));
    t.ok(
      Math.min(...frames) >= 4 && Math.max(...frames) <= 17,
      `${Math.min(...frames)} to ${Math.max(...frames)}`,
    );
    t.ok(Math.abs(mean(frames) - 8) < 0.3, `${mean(frames)} frames`);
  }
  t.end();
});

t.test('consonants have a least length, and the lengths of vowels are stretched', (t) => {
  const meanFrames = (isVowel: boolean, usual: number) => {
    const prosody = prosodyOf({ temperature: 0.5 });
    return mean(Array.from({ length: 2_000 }, (_, phone) => prosody.soundFrames(phone, isVowel, usual, 0)));
  };
  t.ok(Math.abs(meanFrames(false, 1.4) - 3.5) < 0.01, 'with the rounding error carried on');
  t.ok(Math.abs(meanFrames(false, 8.3) - 8.3) < 0.01);
  t.ok(meanFrames(true, 1.4) < 1.35 && meanFrames(true, 20) > 20.5);
  t.end();
});

t.test('the noise of a frame does not depend on the window', (t) => {
  const frames = 40;
  const noise = (first: number, count: number) => {
    const values = new Float32Array(4 * count);
    prosodyOf({}).fillNoise(values, first, count);
    return (channel: number, frame: number) => values[channel * count + frame - first]!;
  };
  const [wide, narrow] = [noise(0, frames), noise(13, 9)];
  for (let channel = 0; channel < 4; channel++)
    for (let frame = 13; frame < 22; frame++) t.equal(narrow(channel, frame), wide(channel, frame));
  const all = new Float32Array(4 * 5_000);
  prosodyOf({}).fillNoise(all, 0, 5_000);
  t.ok(
    Math.abs(mean([...all])) < 0.03 && Math.abs(covariance([...all], [...all]) - 1) < 0.04,
    'standard normal',
  );
  t.end();
});
