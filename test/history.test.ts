/** The past of the service, as the live page of the console draws it. */
import t from 'tap';
import { History } from '../src/history.js';

const bounds = {
  historyPointMs: 10_000,
  historyPointsMax: 6,
  historyLongPointMs: 30_000,
  historyLongPointsMax: 4,
};
const near = (value: number | null | undefined, wanted: number) =>
  Math.abs((value ?? Number.NaN) - wanted) <= wanted * 0.02;

t.test('a point has what happened in its period, and no more', (t) => {
  const history = new History(bounds);
  for (let ms = 1; ms <= 100; ms++) history.firstAudio(ms);
  for (let index = 0; index < 20; index++) history.refused('slotsExhausted');
  history.failed();
  history.sample(3, 0.42, 1_000);
  history.sample(0, 0, 11_000);
  const { atMs, streams, capacityRatio, p50Ms, p95Ms, p99Ms, refusals, failures } = history.view('hour');
  t.strictSame(
    [atMs, streams, capacityRatio],
    [
      [1_000, 11_000],
      [3, 0],
      [0.42, 0],
    ],
  );
  t.ok(near(p50Ms[0], 50) && near(p95Ms[0], 95) && near(p99Ms[0], 99), JSON.stringify([p50Ms, p95Ms, p99Ms]));
  t.strictSame([p50Ms[1], p95Ms[1], p99Ms[1]], [null, null, null], 'without a request');
  t.strictSame(
    [refusals, failures],
    [
      [2, 0],
      [0.1, 0],
    ],
    'in a second',
  );
  t.strictSame(history.refusals, { slotsExhausted: 20 });
  t.match(history.last, { hour: { atMs: 11_000 }, days: null });
  t.end();
});

t.test('both ranges keep so many points, and the coarse one has the most of its samples', (t) => {
  const history = new History(bounds);
  for (let index = 1; index <= 21; index++) {
    history.firstAudio(index);
    history.sample(index, 0, index * 10_000);
  }
  t.strictSame(history.view('hour').streams, [16, 17, 18, 19, 20, 21]);
  t.strictSame(history.view('hour').atMs.at(0), 160_000);
  t.strictSame(history.view('days').streams, [12, 15, 18, 21]);
  t.ok(near(history.view('days').p50Ms.at(-1), 20), 'of all its requests');
  t.match(history.last.days, { atMs: 210_000, streams: 21 });
  t.end();
});

t.test('first audio of the last minutes is that of this coarse point and the one before', (t) => {
  const history = new History(bounds);
  t.equal(history.firstAudioMs, null);
  history.firstAudio(4.2);
  t.ok(near(history.firstAudioMs?.p50, 4.2));
  for (let index = 1; index <= 3; index++) history.sample(0, 0, index);
  for (let index = 0; index < 9; index++) history.firstAudio(400);
  t.ok(near(history.firstAudioMs?.p50, 400), 'both count');
  for (let index = 1; index <= 3; index++) history.sample(0, 0, index);
  t.ok(near(history.firstAudioMs?.p50, 400), 'the older one is forgotten');
  for (let index = 1; index <= 3; index++) history.sample(0, 0, index);
  t.equal(history.firstAudioMs, null);
  history.firstAudio(1e9);
  t.ok((history.firstAudioMs?.p99 ?? Infinity) <= 610_000, 'a time without an end counts as the longest');
  t.end();
});
