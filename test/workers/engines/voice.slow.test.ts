import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import t from 'tap';
import { joinFloats } from '../../../workers/engines/pcm.js';
import { partOfToday, seedOfRun } from '../../fuzz/check.js';
import {
  type Spoken,
  joinPcm,
  levelDb,
  loadDefaultPack,
  loadVoices,
  median,
  modelsDir,
  pitchOf,
  requestOf,
  speak,
} from '../../support/voices.js';

const engine = await loadVoices();
const voiceIds = engine.voices.map(({ id }) => id);
/** A third of the voices, others each day; all of them by night. */
const someIds = partOfToday(voiceIds, 3);
t.comment(`seed ${seedOfRun()}: ${someIds.join(', ')}`);
const sampleRateHz = 24_000;
const milliseconds = (count: number) => (count * sampleRateHz) / 1_000;
const sentence =
  'It was a dark and stormy night, and everybody ran home to see whether the lamps were burning.';

const sameSamples = (a: Int16Array, b: Int16Array) =>
  a.length === b.length && a.every((value, i) => value === b[i]);
const isSilent = (pcm: Int16Array) => pcm.every((value) => value === 0);
const span = (values: readonly number[]) => Math.max(...values) - Math.min(...values);

/** -52 dB of full scale: the faintest sample that counts as sound. */
const soundMin = 32_768 * 10 ** (-52 / 20);

/** Samples until the signal is first within 35 dB of its own level. */
const leadingSilence = (pcm: Int16Array): number => {
  const step = milliseconds(2.5);
  const bar = levelDb(pcm) - 35;
  for (let at = 0; at + step <= pcm.length; at += step) if (levelDb(pcm, at, at + step) > bar) return at;
  return pcm.length;
};

t.test('decoding in chunks of any size gives the same samples', async (t) => {
  const pack = await loadDefaultPack();
  for (const [seed, voiceId] of someIds.entries()) {
    const samples = async (begins: 'short' | 'medium' | 'long' | 'longest') => {
      const text = 'It was a dark and stormy night, and everybody ran home.';
      const segment = pack.open({ ...requestOf(text, { voiceId, seed }), begins });
      const parts: Float32Array[] = [];
      for (;;) {
        const chunk = await segment.stepFloat();
        if (chunk === null) break;
        parts.push(chunk.pcm);
      }
      return { pcm: joinFloats(parts), steps: parts.length };
    };
    const longest = await samples('longest');
    const counts: number[] = [];
    for (const begins of ['short', 'medium', 'long'] as const) {
      const { pcm, steps } = await samples(begins);
      counts.push(steps);
      t.equal(pcm.length, longest.pcm.length);
      const worst = pcm.reduce((most, value, i) => Math.max(most, Math.abs(value - longest.pcm[i]!)), 0);
      t.ok(worst <= 1e-5, `${voiceId}, ${begins}: they differ by ${worst} at most`);
    }
    counts.push(longest.steps);
    t.strictSame(
      counts,
      counts.toSorted((a, b) => b - a),
      'longer chunks are no more',
    );
    t.ok(counts[0]! > counts.at(-1)! && counts.at(-1)! > 1, `${voiceId}: ${counts.join()} chunks`);
  }
});

t.test('a window of frames gives the rows that all frames together give', async (t) => {
  const session = await InferenceSession.create(join(modelsDir, 'syrinx-en', 'frames.onnx'), {
    intraOpNumThreads: 1,
  });
  const [frames, phones, margin] = [90, 15, 20];
  const wave = (rows: number, from: number, to: number) =>
    Float32Array.from({ length: rows * (to - from) }, (_, i) => {
      const frame = from + (i % (to - from));
      return Math.sin(frame * frame + Math.floor(i / (to - from)));
    });
  const rowsOf = async (from: number, to: number) => {
    const feed = (rows: number) => new Tensor('float32', wave(rows, from, to), [rows, to - from]);
    const index = BigInt64Array.from({ length: to - from }, (_, i) => BigInt(Math.floor((from + i) / 6)));
    const edges = BigInt64Array.of(from === 0 ? 1n : 0n, to === frames ? 1n : 0n);
    const made = await session.run({
      hidden: new Tensor('float32', wave(192, 0, phones), [1, 192, phones]),
      index: new Tensor('int64', index, [to - from]),
      position: feed(4),
      noise: feed(4),
      speaker: new Tensor('float32', [0.6, 0.4, 0, 0], [1, 4]),
      edges: new Tensor('int64', edges, [2]),
    });
    return ['f0', 'voicing', 'bands'].map((name) => made[name]!.data as Float32Array);
  };
  const whole = await rowsOf(0, frames);
  for (const [from, to] of [
    [0, 32],
    [7, 60],
    [31, frames],
  ] as const) {
    const [first, last] = [from === 0 ? 0 : from + margin, to === frames ? frames : to - margin];
    const window = await rowsOf(from, to);
    for (const [place, width] of [2, 2, 320].entries()) {
      const expected = whole[place]!.subarray(first * width, last * width);
      t.equal(window[place]!.length, expected.length, `frames ${first} to ${last}`);
      const worst = window[place]!.reduce((most, value, i) => {
        return Math.max(most, Math.abs(value / expected[i]! - 1));
      }, 0);
      t.ok(worst <= 1e-4, `they differ by a factor of 1 + ${worst} at most`);
    }
  }
  await session.release();
});

t.test('a resonance that still rings where the response of a row ends does not click there', async (t) => {
  const session = await InferenceSession.create(join(modelsDir, 'syrinx-en', 'decoder.onnx'), {
    intraOpNumThreads: 1,
  });
  const [rows, context, width, hop, response] = [24, 4, 80, 120, 720];
  const loud = 6;
  const input = rows + 2 * context;
  const bands = new Float32Array(input * width).fill(-16);
  const start = (context + loud) * width;
  bands.fill(-8, start, start + width).fill(0, start + 8, start + 10);
  const floats = (values: Float32Array, dims = [values.length]) => new Tensor('float32', values, dims);
  const { pcm } = await session.run({
    f0: floats(new Float32Array(input).fill(100)),
    voicing: floats(new Float32Array(input).fill(1)),
    bands: floats(bands, [input, width]),
    phase: floats(new Float32Array(1)),
    pulses: floats(new Float32Array(hop)),
    noise: floats(new Float32Array(hop)),
    tail: floats(new Float32Array(response - hop)),
    frameIndex: new Tensor('int64', [0n]),
    warp: floats(Float32Array.of(1)),
  });
  const samples = pcm!.data as Float32Array;
  const peak = samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  t.ok(peak > 0.1, `the peak is ${peak}`);
  for (const at of [loud * hop, loud * hop + response - 1]) {
    const jump = Math.abs(samples[at]!) / peak;
    t.ok(jump < 1e-3, `sample ${at} is ${jump} of the peak`);
  }
  await session.release();
});

t.test('the same seed gives the same samples, another seed another reading', async (t) => {
  const first = await speak(engine, sentence, { seed: 7 });
  await speak(engine, 'Привет! 你好。 Something quite different in between: <b>1984</b>.', { seed: 8 });
  const again = await speak(engine, sentence, { seed: 7 });
  t.ok(sameSamples(first.pcm, again.pcm));
  t.strictSame(first.words, again.words);
  const lengths = new Set<number>();
  for (let seed = 0; seed < 8; seed++)
    lengths.add((await speak(engine, 'Good morning.', { seed })).pcm.length);
  t.ok(lengths.size >= 7, `8 readings have ${lengths.size} lengths`);
});

t.test('segments that step at the same time have the samples that each has alone', async (t) => {
  const texts = [
    sentence,
    'Yes.',
    'Привет, мир!',
    'A second voice speaks here, slowly, and goes on for a while.',
  ];
  const alone: Spoken[] = [];
  for (const [i, text] of texts.entries())
    alone.push(await speak(engine, text, { seed: i, voiceId: voiceIds[i]! }));
  const open = texts.map((text, i) => ({
    i,
    segment: engine.open(requestOf(text, { seed: i, voiceId: voiceIds[i]! })),
    chunks: [] as Int16Array[],
  }));
  for (let isOver = false; !isOver;) {
    const made = await Promise.all(open.map(({ segment }) => segment.step()));
    for (const [i, chunk] of made.entries()) if (chunk !== null) open[i]!.chunks.push(chunk.pcm);
    isOver = made.every((chunk) => chunk === null);
  }
  for (const { i, chunks } of open) t.ok(sameSamples(joinPcm(chunks), alone[i]!.pcm), texts[i]!);
});

t.test('readings of a sentence have one pace, and differ in length and melody', async (t) => {
  const texts = [
    'Sure, I can help you with that.',
    'What time does the next train to the city leave?',
    'The weather will be fine tomorrow, so we can walk to the lake.',
  ];
  const readings = Array.from({ length: 8 }, (_, seed) => seed);
  for (const voiceId of someIds) {
    const text = texts[Math.floor(voiceIds.indexOf(voiceId) / 3) % texts.length]!;
    const lengths: number[] = [];
    const heights: number[] = [];
    for (const seed of readings) {
      const { pcm } = await speak(engine, text, { voiceId, seed });
      lengths.push(pcm.length);
      heights.push(12 * Math.log2(median(pitchOf(pcm))));
    }
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    const variance = lengths.reduce((sum, length) => sum + (length / mean - 1) ** 2, 0) / lengths.length;
    const worst = Math.max(
      ...lengths.slice(1).map((length, i) => Math.exp(Math.abs(Math.log(length / lengths[i]!)))),
    );
    const figures = `${(100 * Math.sqrt(variance)).toFixed(1)} %, neighbours ${worst.toFixed(2)}`;
    t.ok(Math.sqrt(variance) <= 0.04 && worst <= 1.15, `${voiceId}: ${figures}`);
    t.ok(new Set(lengths).size >= 7, `${voiceId}: ${new Set(lengths).size} lengths`);
    t.ok(span(heights) > 1, `${voiceId}: heights over ${span(heights).toFixed(1)} semitones`);
  }
});

t.test('temperature widens the range of F0 and the variety of durations', async (t) => {
  const readings = async (temperature: number) => {
    const ranges: number[] = [];
    const lengths: number[] = [];
    for (let seed = 0; seed < 4; seed++) {
      const { pcm, words } = await speak(engine, sentence, { temperature, seed });
      const pitch = pitchOf(pcm).sort((x, y) => x - y);
      t.ok(pitch.length > 80, 'there is voice to measure');
      ranges.push(
        12 * Math.log2(pitch[Math.floor(0.9 * pitch.length)]! / pitch[Math.floor(0.1 * pitch.length)]!),
      );
      lengths.push(words.at(-1)!.endSample / sampleRateHz);
    }
    return { range: ranges.reduce((sum, value) => sum + value, 0) / ranges.length, spread: span(lengths) };
  };
  const [cool, usual, hot] = [await readings(0.5), await readings(1), await readings(3)];
  t.comment(`semitones: ${[cool, usual, hot].map(({ range }) => range.toFixed(1)).join(', ')}`);
  t.ok(cool.range + 0.5 < usual.range && usual.range + 1 < hot.range, 'F0');
  t.ok(cool.spread < usual.spread && usual.spread < hot.spread, 'durations');
  t.ok(cool.spread > 0);
});

t.test('speed changes the length of sounds and pauses, and not the pitch', async (t) => {
  const text = 'We were all in the garden, when the news came over the wall. Nobody knew what to say.';
  const readings = async (speed?: number): Promise<Spoken[]> => {
    const spoken: Spoken[] = [];
    for (const seed of [1, 2])
      spoken.push(await speak(engine, text, { seed, ...(speed !== undefined && { speed }) }));
    return spoken;
  };
  const usual = await readings();
  const same = await speak(engine, text, { seed: 1, speed: 1 });
  t.ok(sameSamples(usual[0]!.pcm, same.pcm), 'speed 1 changes no sample');
  t.strictSame(usual[0]!.words, same.words);
  const pitch = (spoken: readonly Spoken[]) => median(spoken.flatMap(({ pcm }) => pitchOf(pcm)));
  /** Samples between two sentences. */
  const pause = ({ words }: Spoken) => words[13]!.startSample - words[12]!.endSample;
  for (const speed of [0.5, 2]) {
    const others = await readings(speed);
    for (const [i, other] of others.entries()) {
      const ratio = (length: (spoken: Spoken) => number) => (speed * length(other)) / length(usual[i]!);
      const [whole, spoken, pauses] = [
        ratio(({ pcm }) => pcm.length),
        ratio(({ words }) => words.at(-1)!.endSample),
        ratio(pause),
      ];
      t.ok(Math.abs(whole - 1) < 0.05, `speed ${speed}: ${whole.toFixed(3)} of the wanted length`);
      t.ok(Math.abs(spoken - 1) < 0.05, 'the times of the words follow');
      t.ok(Math.abs(pauses - 1) < 0.1, `pauses follow: ${pauses.toFixed(3)}`);
    }
    const shift = pitch(others) / pitch(usual);
    t.ok(Math.abs(shift - 1) < 0.06, `speed ${speed}: the pitch is ${shift.toFixed(3)} of what it was`);
  }
});

t.test('speech begins at once, and ends with a pause that fits its punctuation', async (t) => {
  const starts = [
    'It is.',
    'Please come.',
    'Cats sleep.',
    'Thin ice.',
    'Hello.',
    'Some of us.',
    'A',
    'Fish.',
    'Best.',
  ];
  for (const [seed, text] of starts.entries())
    for (const voiceId of someIds) {
      const { pcm } = await speak(engine, text, { voiceId, seed });
      const lead = leadingSilence(pcm);
      t.ok(lead <= milliseconds(30), `${voiceId}, "${text}": ${(1000 * lead) / sampleRateHz} ms of silence`);
      t.ok(Math.abs(pcm[0]!) <= 33, 'the first sample is near zero');
      const awaited = (await speak(engine, text, { voiceId, seed, isFirst: true })).pcm;
      const at = awaited.findIndex((sample) => Math.abs(sample) > soundMin);
      t.ok(at <= milliseconds(1.5), `"${text}": a listener who waits hears a sound after ${at} samples`);
    }
  const pauses: readonly [text: string, min: number, max: number][] = [
    ['We saw it.', 200, 300],
    ['Did we see it?', 200, 300],
    ['We saw it', 200, 300],
    ['We saw it,', 95, 150],
  ];
  for (const [text, min, max] of pauses)
    for (let seed = 0; seed < 4; seed++) {
      const { pcm, words } = await speak(engine, text, { seed });
      const pause = ((pcm.length - words.at(-1)!.endSample) * 1_000) / sampleRateHz;
      t.ok(pause >= min && pause <= max, `"${text.slice(0, 20)}": ${pause.toFixed(1)} ms`);
      t.ok(isSilent(pcm.subarray(-milliseconds(8))), 'fully decayed');
    }
});

t.test('segments join without a step', async (t) => {
  const texts = [
    'Come in,',
    'sit down by the fire',
    'and tell us all about it.',
    'Who was there?',
    '你好。',
    'End!',
  ];
  for (const voiceId of someIds) {
    const parts: Int16Array[] = [];
    for (const [seed, text] of texts.entries())
      parts.push((await speak(engine, text, { voiceId, seed })).pcm);
    const joined = joinPcm(parts);
    let seam = 0;
    for (const part of parts.slice(0, -1)) {
      seam += part.length;
      t.equal(joined[seam - 1], 0);
      t.ok(Math.abs(joined[seam]!) <= 33, `a step of ${joined[seam]} of 32768`);
      t.ok(levelDb(joined, seam - 240, seam) < -70, 'silence before');
      // A step in energy is a large difference between two neighbouring samples.
      let jump = 0;
      for (let i = seam - 24; i < seam + 24; i++)
        jump = Math.max(jump, Math.abs(joined[i + 1]! - joined[i]!));
      t.ok(jump <= 330, `samples differ by ${jump} at most around the seam`);
    }
  }
});

t.test('the last sound is complete', async (t) => {
  for (const text of ['This is for you.', 'We are far away.', 'There was nothing but ice.', 'See the sea'])
    for (const voiceId of someIds) {
      const { pcm, words } = await speak(engine, text, { voiceId });
      const end = words.at(-1)!.endSample;
      t.ok(end <= pcm.length - milliseconds(100), 'a pause follows');
      const last = levelDb(pcm, end - milliseconds(100), end);
      t.ok(last > levelDb(pcm) - 22, `${voiceId}, "${text}": the last 100 ms are at ${last.toFixed(1)} dB`);
    }
});

t.test('no voice clips, and all are equally loud', async (t) => {
  const levels: number[] = [];
  for (const voiceId of voiceIds) {
    const { pcm } = await speak(engine, sentence, { voiceId, temperature: 3 });
    const peak = pcm.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    t.ok(peak < 32_000 && peak > 6_000, `${voiceId}: peak ${peak}`);
    levels.push(levelDb(pcm));
  }
  t.ok(span(levels) < 2.5, `levels differ by ${span(levels).toFixed(1)} dB`);
});

t.test('first audio costs the same for texts of any length', async (t) => {
  const long = `${'word after word and never a stop '.repeat(40)}.`;
  for (const text of ['Yes.', sentence, long]) {
    const segment = engine.open(requestOf(text));
    const first = await segment.step();
    t.ok(
      first!.pcm.length > milliseconds(60) && first!.pcm.length <= milliseconds(120),
      `${first!.pcm.length} samples`,
    );
  }
});

t.test('a text without a sound is a short silence, and its words have no length', async (t) => {
  for (const text of ['', '   ', '...', '\u0000\u0001', '— — "" ()', '\ud800']) {
    const { pcm, words, spans, chunks } = await speak(engine, text);
    t.equal(chunks.length, 1);
    t.ok(isSilent(pcm));
    t.ok(pcm.length > milliseconds(200) && pcm.length < milliseconds(400), `${pcm.length} samples`);
    t.equal(words.length, spans.length);
    for (const { startSample, endSample } of words) t.strictSame([startSample, endSample], [0, 0]);
  }
});
