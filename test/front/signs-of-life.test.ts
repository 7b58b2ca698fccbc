/** Silent clients are dropped and slow ones are not: with a fake clock and the session's beats. */
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { SignsOfLife } from '../../src/front/ws/signs-of-life.js';

const BEAT_MS = 200;
const { socketHearingMsMax, socketPingMs, socketSilenceMsMax, stallRearmMs } = limits;

/** Beats until the result is not a ping. @returns the time since the start, and the pings until then */
const fate = (
  life: SignsOfLife,
  fromMs: number,
  untilMs: number,
  onPing: (nowMs: number) => void = () => undefined,
) => {
  for (let nowMs = fromMs; nowMs <= untilMs; nowMs += BEAT_MS) {
    const sign = life.check(0, nowMs);
    if (sign === 'ping') onPing(nowMs);
    else if (sign !== null) return { sign, atMs: nowMs };
  }
  return null;
};

const near = (t: Test, found: ReturnType<typeof fate>, atMs: number): void => {
  t.equal(found?.sign, 'silent');
  t.ok(Math.abs((found?.atMs ?? 0) - atMs) <= BEAT_MS, `${found?.atMs} ms, about ${atMs}`);
};

t.test('a client that got nothing is dropped after a minute of silence', (t) => {
  near(t, fate(new SignsOfLife(limits, 0), 0, 1e7), socketSilenceMsMax);
  t.end();
});

t.test(
  'a client that was sent minutes of speech may read them as they play, or half as fast, before it answers',
  (t) => {
    const speechMs = 150_000;
    const life = new SignsOfLife(limits, 0);
    life.handed(speechMs, 0);
    near(t, fate(life, 0, 1e7), 2 * speechMs + socketSilenceMsMax);

    const slow = new SignsOfLife(limits, 0);
    slow.handed(speechMs, 0);
    // Each ping is behind what was sent before it.
    const readMs = 2 * speechMs;
    t.equal(
      fate(slow, 0, 1e6, (nowMs) => {
        if (nowMs >= readMs) slow.ponged(slow.pingPayload, nowMs);
      }),
      null,
    );
    t.end();
  },
);

t.test('a client that has read everything may play it without reading until it ends', (t) => {
  const speechMs = 500_000;
  const life = new SignsOfLife(limits, 0);
  life.handed(speechMs, 0);
  let answeredMs = 0;
  const found = fate(life, 0, 1e7, (nowMs) => {
    if (answeredMs > 0) return;
    answeredMs = nowMs;
    life.ponged(life.pingPayload, nowMs);
  });
  t.equal(answeredMs, socketPingMs);
  near(t, found, speechMs + socketSilenceMsMax);
  t.end();
});

t.test('a client that has played everything and is silent is dropped like any other', (t) => {
  const life = new SignsOfLife(limits, 0);
  life.handed(10_000, 0);
  let answeredMs = 0;
  const found = fate(life, 0, 1e7, (nowMs) => {
    if (answeredMs > 0) return;
    answeredMs = nowMs;
    life.ponged(life.pingPayload, nowMs);
  });
  near(t, found, answeredMs + socketSilenceMsMax);
  t.end();
});

t.test('a pong proves nothing about audio sent after its ping', (t) => {
  const life = new SignsOfLife(limits, 0);
  life.handed(10_000, 0);
  let pings = 0;
  const found = fate(life, 0, 1e7, (nowMs) => {
    if (++pings > 1) return;
    const mark = life.pingPayload;
    life.handed(100_000, nowMs);
    life.ponged(mark, nowMs);
  });
  near(t, found, socketPingMs + 2 * 100_000 + socketSilenceMsMax);
  t.end();
});

t.test('each pong is matched with its ping when several are in flight', (t) => {
  const marks: string[] = [];
  const life = new SignsOfLife(limits, 0);
  const hand = (durationMs: number): void => {
    marks.push(life.pingPayload);
    life.handed(durationMs, 0);
  };
  hand(100_000);
  hand(100_000);
  marks.push(life.pingPayload);
  const [, second, third] = marks;
  // The first pong never comes: a client may answer only the last of several pings.
  life.ponged(second!, 1_000);
  near(t, fate(life, 1_000, 1e7), 1_000 + 2 * 100_000 + socketSilenceMsMax);
  life.ponged(third!, 2_000);
  near(t, fate(life, 2_000, 1e7), 2 * 100_000 + socketSilenceMsMax);
  t.end();
});

t.test('an unsolicited pong is a sign of life and proves nothing about reading', (t) => {
  const life = new SignsOfLife(limits, 0);
  life.handed(100_000, 0);
  for (const mark of ['', 'ping', '-1', '1e5', '100001', '9'.repeat(40), '\u0000']) life.ponged(mark, 1_000);
  near(t, fate(life, 1_000, 1e7), 2 * 100_000 + socketSilenceMsMax);
  // An invented payload that claims nothing was read gains no time.
  life.ponged('0', 150_000);
  near(t, fate(life, 150_000, 1e7), 2 * 100_000 + socketSilenceMsMax);
  t.end();
});

t.test('a reader that leaves bytes in the buffer is pinged more often than one that has all', (t) => {
  const firstPing = (bufferedBytes: number): number => {
    const life = new SignsOfLife(limits, 0);
    let nowMs = 0;
    while (life.check(bufferedBytes, nowMs) !== 'ping') nowMs += BEAT_MS;
    return nowMs;
  };
  t.equal(firstPing(0), socketPingMs);
  t.equal(firstPing(1), stallRearmMs);
  t.end();
});

t.test('the service waits for no client for ever', (t) => {
  const life = new SignsOfLife(limits, 0);
  for (let i = 0; i < 100; i++) life.handed(3_600_000, 0);
  near(t, fate(life, 0, 1e8), socketHearingMsMax + socketSilenceMsMax);
  t.end();
});
