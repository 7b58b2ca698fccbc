/** The past of the service, as the live page of the console draws it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { History } from '../src/history.js';
import { limits } from '../src/limits.js';
import type { Log } from '../src/log.js';
import { temporaryFolder } from './store/support.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A midnight in UTC. */
const midnightMs = 20_000 * DAY;

const near = (value: number | null | undefined, wanted: number) =>
  Math.abs((value ?? Number.NaN) - wanted) <= wanted * 0.02;

/** @param nowMs of the start */
const open = async (folder: string, nowMs = midnightMs) => {
  const warned: unknown[] = [];
  const log = { warn: (fields: unknown) => warned.push(fields) } as unknown as Log;
  const history = await History.open(limits, join(folder, 'history.json'), log, nowMs);
  return { history, warned };
};

/** Samples from after `fromMs` to `toMs`. */
const pass = (history: History, fromMs: number, toMs: number, each = () => {}, stepMs = 10_000): void => {
  for (let atMs = fromMs + stepMs; atMs <= toMs; atMs += stepMs) {
    each();
    history.sample(0, 0, atMs);
  }
};

t.test('a point has what happened in its period, and no more', async (t) => {
  const { history } = await open(temporaryFolder(t));
  for (let ms = 1; ms <= 100; ms++) history.firstAudio(ms);
  for (let index = 0; index < 20; index++) history.refused('slotsExhausted');
  history.ended();
  history.failed();
  history.sample(3, 0.42, midnightMs + 10_000);
  history.sample(0, 0, midnightMs + 20_000);
  const { p50Ms, p95Ms, p99Ms, ...others } = history.view('hour');
  t.strictSame(others, {
    atMs: [midnightMs + 10_000, midnightMs + 20_000],
    seconds: [10, 10],
    streams: [3, 0],
    capacityRatio: [0.42, 0],
    requests: [1, 0],
    refusals: [20, 0],
    failures: [1, 0],
  });
  t.ok(near(p50Ms[0], 50) && near(p95Ms[0], 95) && near(p99Ms[0], 99), JSON.stringify([p50Ms, p95Ms, p99Ms]));
  t.strictSame([p50Ms[1], p95Ms[1], p99Ms[1]], [null, null, null], 'without a request');
  t.strictSame(history.refusals, { slotsExhausted: 20 });
  t.match(history.last, { atMs: midnightMs + 20_000 });
});

t.test('each range keeps its span, and a longer point has the most of its samples', async (t) => {
  const { history } = await open(temporaryFolder(t));
  let ms = 0;
  const hear = () => history.firstAudio((ms = (ms % 100) + 1));
  pass(history, midnightMs, midnightMs + 40 * DAY - 2 * HOUR, hear, 10 * MINUTE);
  pass(history, midnightMs + 40 * DAY - 2 * HOUR, midnightMs + 40 * DAY, hear);
  for (const [range, points] of [
    ['hour', 360],
    ['day', 288],
    ['week', 168],
    ['days', 31],
  ] as const) {
    const { atMs, p95Ms, requests } = history.view(range);
    // The longer ranges show the point that is not over, too.
    t.equal(requests.length, range === 'hour' ? points : points + 1, range);
    t.ok((atMs.at(-1) ?? 0) >= midnightMs + 40 * DAY - 5_000, range);
    if (range === 'week' || range === 'days') t.ok(near(p95Ms.at(-2), 95), 'of all its requests');
  }
  history.sample(7, 0, midnightMs + 40 * DAY + 10_000);
  history.sample(3, 0, midnightMs + 40 * DAY + 20_000);
  t.match([history.view('day').streams.at(-1), history.view('days').streams.at(-1)], [7, 7]);
});

t.test('first audio of the last minutes is that of these five minutes and of those before', async (t) => {
  const { history } = await open(temporaryFolder(t));
  t.equal(history.firstAudioMs, null);
  history.firstAudio(4.2);
  t.ok(near(history.firstAudioMs?.p50, 4.2));
  pass(history, midnightMs, midnightMs + 6 * MINUTE);
  for (let index = 0; index < 9; index++) history.firstAudio(400);
  t.ok(near(history.firstAudioMs?.p50, 400), 'both count');
  pass(history, midnightMs + 6 * MINUTE, midnightMs + 11 * MINUTE);
  t.ok(near(history.firstAudioMs?.p50, 400), 'the older one is forgotten');
  pass(history, midnightMs + 11 * MINUTE, midnightMs + 16 * MINUTE);
  t.equal(history.firstAudioMs, null);
  history.firstAudio(1e9);
  history.firstAudio(0);
  t.ok((history.firstAudioMs?.p99 ?? Infinity) <= 610_000, 'a time without an end counts as the longest');
});

t.test('after a restart the past is there, and yesterday has all of its requests', async (t) => {
  const folder = temporaryFolder(t);
  const { history: before } = await open(folder);
  const begun = midnightMs + 20 * HOUR;
  for (let ms = 1; ms <= 90; ms++) before.firstAudio(ms);
  pass(before, begun, begun + HOUR + MINUTE, () => before.ended());
  await before.close();
  await before.close();
  t.strictSame(readdirSync(folder), ['history.json'], 'nothing else is left');

  // The rest of the day, after two hours without the service.
  const again = begun + 3 * HOUR + MINUTE;
  const { history: after, warned } = await open(folder, again);
  t.strictSame(after.view('hour'), before.view('hour'));
  for (let ms = 91; ms <= 100; ms++) after.firstAudio(ms);
  pass(after, again, again + MINUTE, () => after.ended());
  t.strictSame(
    after.view('hour').seconds.slice(-8),
    [10, null, 10, 10, 10, 10, 10, 10],
    'a gap in the chart',
  );
  pass(after, again + MINUTE, midnightMs + DAY + MINUTE, () => after.ended());
  const { atMs, p95Ms, requests, seconds } = after.view('days');
  const tomorrowMs = midnightMs + DAY;
  t.strictSame(atMs, [tomorrowMs, tomorrowMs + MINUTE], 'yesterday and today');
  t.ok(near(p95Ms[0], 95), `${p95Ms[0]} ms, of both runs`);
  t.equal(p95Ms[1], null);
  t.strictSame(requests, [366 + 354, 6]);
  t.strictSame(seconds, [7_200, 60], 'it ran so long');
  const week = after.view('week');
  t.strictSame(week.seconds, [3_600, 60, null, 3_540, 60]);
  t.strictSame(warned, []);
  t.ok(readFileSync(join(folder, 'history.json')).length < 2 ** 17);
});

t.test('a damaged file is reported and counts as absent', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'history.json');
  const { history } = await open(folder);
  pass(history, midnightMs, midnightMs + 11 * MINUTE);
  await history.close();
  const text = readFileSync(file, 'utf8');
  const damaged = ['', '{', 'null', '[]', '7', text.slice(0, -30), text.replace('"atMs":', '"toJSON":')];
  damaged.push(text.replace('"streams":0', '"streams":"many"'), ' '.repeat(2 ** 22 + 1));
  for (const one of damaged) {
    writeFileSync(file, one);
    const { history: next, warned } = await open(folder);
    t.strictSame(next.view('hour').atMs, [], one.slice(0, 40));
    t.equal(warned.length, one === 'null' ? 0 : 1, one.slice(0, 40));
    pass(next, midnightMs, midnightMs + MINUTE);
    t.equal(next.view('hour').atMs.length, 6);
  }
  writeFileSync(file, text);
  const { history: early } = await open(folder, midnightMs + 5 * MINUTE);
  t.equal(early.view('hour').atMs.length, 30, 'the clock was set back: points of the future go');

  const { history: homeless, warned } = await open(join(folder, 'gone'));
  await homeless.close();
  t.strictSame(warned, [{ reason: 'ENOENT' }]);
});
