/** What happened lately, as the live view of the console shows it. */
import t from 'tap';
import { RecentRefusals, RecentTimes } from '../src/recent.js';

const MINUTE = 60_000;

t.test('percentiles are those of the last minutes', (t) => {
  const times = new RecentTimes();
  t.equal(times.percentiles(0), null);
  for (let ms = 1; ms <= 100; ms++) times.record(ms, 10 * MINUTE);
  const near = (value: number, wanted: number) => Math.abs(value - wanted) <= wanted * 0.02;
  const shown = times.percentiles(10 * MINUTE)!;
  t.ok(near(shown.p50, 50) && near(shown.p95, 95) && near(shown.p99, 99), JSON.stringify(shown));
  for (let i = 0; i < 1_000; i++) times.record(400, 12 * MINUTE);
  t.ok(near(times.percentiles(12 * MINUTE)!.p50, 400));
  t.ok(near(times.percentiles(14.9 * MINUTE)!.p50, 400), 'both minutes count');
  t.ok(near(times.percentiles(15 * MINUTE)!.p50, 400), 'the older one is forgotten');
  t.equal(times.percentiles(17 * MINUTE), null);
  times.record(1e9, 20 * MINUTE);
  times.record(0.01, 20 * MINUTE);
  t.ok(times.percentiles(20 * MINUTE)!.p99 <= 610_000, 'a time without an end counts as the longest');
  t.end();
});

t.test('a hundred refusals are shown, all are counted', (t) => {
  const refusals = new RecentRefusals();
  for (let atMs = 0; atMs < 250; atMs++)
    refusals.add({ atMs, reason: atMs % 2 === 0 ? 'slotsExhausted' : 'keyUnknown', route: '/v1/tts' });
  t.strictSame(refusals.counts, { slotsExhausted: 125, keyUnknown: 125 });
  t.equal(refusals.last.length, 100);
  t.match(refusals.last[0], { atMs: 249 });
  t.match(refusals.last.at(-1), { atMs: 150 });
  t.end();
});
