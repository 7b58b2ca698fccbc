import t from 'tap';
import { FirstAudio } from '../../src/speech/first-audio.js';
import type { Onset } from '../../src/threads/messages.js';

/** A reply from 1,000 ms on, and the figures that it reported, in order. */
const begin = (fromSegment = 0) => {
  const figures: [string, number][] = [];
  const reply = new FirstAudio(1_000, fromSegment, (figure, ms) => figures.push([figure, ms]));
  const handed = (nowMs: number, onset?: Onset, segment = fromSegment) =>
    reply.handed(nowMs, onset === undefined ? { segment } : { segment, onset });
  return { reply, figures, handed };
};

t.test('all at once: silence at the start counts in full', (t) => {
  const { figures, handed, reply } = begin();
  handed(1_010, { decodedMs: 700, firstMs: 0, audibleMs: 200 });
  handed(1_400);
  t.strictSame(figures, [
    ['byte', 10],
    ['decoded', 10],
    ['audible', 210],
  ]);
  t.strictSame(reply.fields(), { firstAudioMs: 10, firstDecodedMs: 10, firstAudibleMs: 210 });
  t.strictSame(reply.fields(990), { firstAudioMs: 20, firstDecodedMs: 20, firstAudibleMs: 220 });
  t.end();
});

t.test('a listener plays from the first sample that its decoder makes', (t) => {
  const { figures, handed } = begin();
  handed(1_010, { decodedMs: 20 });
  handed(1_015, { decodedMs: 100, firstMs: 15 });
  handed(1_020, { decodedMs: 200, audibleMs: 80 });
  t.strictSame(figures, [
    ['byte', 10],
    ['decoded', 15],
    ['audible', 10 + 20 + 100 + 80],
  ]);
  t.end();
});

t.test('silence that comes late delays what follows it', (t) => {
  const { figures, handed } = begin();
  handed(1_000, { decodedMs: 100, firstMs: 0 });
  handed(1_250, { decodedMs: 100 });
  handed(1_260, { decodedMs: 100, audibleMs: 30 });
  t.strictSame(figures.at(-1), ['audible', 250 + 100 + 30]);
  t.end();
});

t.test('a silent segment is heard through; the rest of an earlier reply does not count', (t) => {
  const { figures, handed } = begin(3);
  handed(1_005, { decodedMs: 60, audibleMs: 10 }, 2);
  t.strictSame(figures, []);
  handed(1_010, { decodedMs: 50, firstMs: 0 }, 3);
  handed(1_020, { decodedMs: 100, firstMs: 0, audibleMs: 5 }, 4);
  handed(1_030, { decodedMs: 100, firstMs: 0, audibleMs: 5 }, 5);
  t.strictSame(figures, [
    ['byte', 10],
    ['decoded', 10],
    ['audible', 10 + 50 + 5],
  ]);
  t.end();
});

t.test('silence alone has no audible sample', (t) => {
  const { figures, handed, reply } = begin();
  handed(1_010, { decodedMs: 50, firstMs: 0 });
  handed(1_020, { decodedMs: 50 });
  t.strictSame(
    figures.map(([figure]) => figure),
    ['byte', 'decoded'],
  );
  t.equal(reply.fields().firstAudibleMs, undefined);
  t.end();
});

t.test('of an answer that is used whole, its end counts', (t) => {
  const { figures, reply } = begin();
  const inFile = new FirstAudio(0, 0);
  inFile.handed(0, { segment: 0, onset: { decodedMs: 150, firstMs: 0 } });
  inFile.handed(0, { segment: 0, onset: { decodedMs: 150, audibleMs: 50 } });
  reply.reached('byte', 1_040);
  reply.handedWhole(1_060, inFile);
  t.strictSame(figures, [
    ['byte', 40],
    ['decoded', 60],
    ['audible', 60 + 200],
  ]);
  t.end();
});
