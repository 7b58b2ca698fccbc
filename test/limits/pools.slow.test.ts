/** Shared budgets: large holders are stopped, small ones continue, and the total stays within its bound. */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { AudioBudget, heldBytesPerMs } from '../../src/speech/audio-budget.js';
import { Scheduler } from '../../src/speech/scheduler.js';
import { KeyedBudget } from '../../src/byte-budget.js';
import { startFront, GOOD_KEY, eventually } from '../support/front-server.js';
import { BenchContext, schedulerOptions, segment, type Start } from '../support/scheduling.js';
import { RawClient, requestBytes } from '../support/raw-client.js';
import { openWs } from '../support/socket-client.js';
import { pause } from '../support/waiting.js';
import { wholeBudget } from '../support/whole-budget.js';

t.test('members that take all they may end with equal shares, and leave one for a newcomer', (t) => {
  const BYTES = 10_000_000;
  for (const members of [1, 10, 100, 1_000]) {
    const pool = wholeBudget(BYTES);
    const held = Array.from({ length: members }, () => 0);
    let most = 0;
    for (let round = 0; round < 300; round++)
      held.forEach((bytes, member) => {
        // A tenth is read; then the member takes all that it may at once.
        const left = Math.floor(bytes * 0.9);
        pool.change(left - bytes);
        const more = Math.max(0, Math.floor(pool.allowance(BYTES)) - left);
        pool.change(more);
        held[member] = left + more;
        most = Math.max(most, pool.taken);
      });
    t.ok(most < BYTES, `${members} members: ${most}`);
    const part = BYTES / (members + 16);
    t.ok(
      Math.max(...held) < 1.5 * part,
      `no member holds much more than its share: ${Math.max(...held)} of ${part}`,
    );
    t.ok(pool.allowance(BYTES) > 0.6 * part, `for one more: ${pool.allowance(BYTES)} of ${part}`);
  }
  t.end();
});

t.test('a small maximum is available until the budget is nearly full', (t) => {
  const pool = wholeBudget(1_600);
  t.equal(pool.allowance(10), 10);
  pool.change(1_520);
  t.equal(pool.allowance(10), 5);
  pool.change(80);
  t.equal(pool.allowance(10), 0);
  pool.change(100);
  t.equal(pool.allowance(10), 0, 'also above its bound');
  t.end();
});

t.test('a budget refuses more than it has, and returning more than was taken is an error', (t) => {
  const budget = wholeBudget(100);
  t.ok(budget.take(100));
  t.notOk(budget.take(1));
  t.equal(budget.taken, 100, 'a refusal takes nothing');
  t.throws(() => budget.giveBack(101), /gives back 101 of a budget and holds 100/);
  t.equal(budget.taken, 100, 'the error changes nothing');
  budget.giveBack(100);
  t.throws(() => budget.change(-1), /gives back 1 of a budget and holds 0/);
  t.equal(budget.taken, 0);
  t.end();
});

t.test(
  'a member of a budget holds half of what the others leave, and a least part while there is room',
  (t) => {
    const budget = new KeyedBudget(100, 4);
    t.equal(budget.take('greedy', 50), null);
    t.equal(budget.take('greedy', 1), 'account');
    t.equal(budget.take('next', 25), null);
    t.equal(budget.take('next', 1), 'account', 'half of 50');
    t.equal(budget.taken, 75, 'a refusal takes nothing');
    t.equal(budget.take('third', 13), 'account', 'half of 25');
    t.equal(budget.take('third', 12), null);
    for (const name of ['a', 'b', 'c']) t.equal(budget.take(name, 4), null, 'the least');
    t.equal(budget.take('d', 2), 'pool');
    budget.giveBack('greedy', 50);
    t.equal(budget.take('next', 7), null, 'half of what is free now');
    t.throws(() => budget.giveBack('a', 5), /gives back 5 of a budget and holds 4/);
    const whole = new KeyedBudget(10, 10);
    t.equal(whole.take('alone', 10), null, 'the last byte, too');
    t.equal(whole.take('alone', 1), 'pool');
    t.end();
  },
);

t.test('polling for room does not postpone the notification', (t) => {
  let notified = 0;
  const budget = new AudioBudget(512_000, () => (notified += 1));
  budget.change('a', 250_000);
  for (let freed = 0; freed < 3_000; freed += 100) {
    t.notOk(budget.hasRoomFor('a', 10_000));
    budget.change('a', -100);
  }
  t.equal(notified, 1, 'once per 2,000 bytes');
  t.end();
});

t.test('a waiting context is notified when there is room', (t) => {
  let notified = 0;
  const budget = new AudioBudget(32_000, () => (notified += 1));
  budget.change('a', 15_000);
  t.notOk(budget.hasRoomFor('a', 100));
  t.ok(budget.hasRoomFor('a', 60));
  budget.change('a', -10);
  t.equal(notified, 0, 'not for a few bytes');
  budget.change('a', -150);
  t.equal(notified, 1);
  budget.change('a', -1_000);
  t.equal(notified, 1, 'no context waits any more');
  budget.change('a', 2_160);
  t.notOk(budget.hasRoomFor('a', 0), 'the part of the account is full');
  budget.change('a', -1);
  t.equal(notified, 2, 'the first byte of a full part counts');
  t.end();
});

t.test(
  'an account that takes all the audio it may leaves others room, and gets more when they give back',
  (t) => {
    let notified = 0;
    const budget = new AudioBudget(1_000_000, () => (notified += 1));
    const takeAll = (account: string): number => {
      let taken = 0;
      for (; budget.hasRoomFor(account, 0); taken += 1_000) budget.change(account, 1_000);
      return taken;
    };
    t.equal(takeAll('greedy'), 500_000);
    t.equal(takeAll('second'), 250_000);
    t.ok(budget.hasRoomFor('newcomer', 7_800), 'a sixteenth of what it may still take');
    t.notOk(budget.hasRoomFor('greedy', 0));
    budget.change('second', -200_000);
    t.equal(notified, 1);
    t.notOk(budget.hasRoomFor('greedy', 0), 'it has half of what the others leave');
    budget.change('greedy', -100_000);
    t.equal(notified, 2);
    t.ok(budget.hasRoomFor('greedy', 0));
    t.throws(() => budget.change('second', -50_001), /holds 50000/);
    t.end();
  },
);

t.test('an account that overdraws its part of a budget takes nothing from others', (t) => {
  const budget = new KeyedBudget(1_000, 0);
  budget.change('greedy', 5_000);
  t.equal(budget.taken, 5_000);
  t.equal(budget.allowance('greedy', Infinity), 0);
  t.equal(budget.allowance('other', Infinity), 250 / 16, 'half of the half that is left');
  budget.change('other', 250);
  budget.change('greedy', -4_800);
  t.equal(budget.allowance('greedy', Infinity), (375 - 200) / 16, 'half of what the other leaves');
  budget.change('greedy', -200);
  budget.change('other', -250);
  t.equal(budget.allowance('greedy', Infinity), 500 / 16, 'nothing is left behind');
  t.end();
});

t.test('an account without audio may begin, however many others have their part', (t) => {
  let notified = 0;
  const budget = new AudioBudget(1_000_000, () => (notified += 1));
  for (let account = 0; account < 200; account++) {
    t.ok(budget.hasRoomFor(`${account}`, 0), `after ${account} accounts`);
    budget.change(`${account}`, 500_000);
    t.notOk(budget.hasRoomFor(`${account}`, 0));
  }
  budget.change('199', -500_000);
  t.equal(notified, 1, 'when it has none again, it may begin again');
  t.end();
});

t.test('slow readers of one account whose segments outlast every estimate leave others their audio', (t) => {
  const started: Start[] = [];
  const POOL = 8 * 1024 * 1024;
  const scheduler = new Scheduler(
    schedulerOptions(() => 0, {
      ...{ threads: 2, jobsMax: 256 },
      bounds: { ...limits, unsentAudioBytesMax: POOL },
    }),
  );
  const open = (account: string) => {
    const onStart = (start: Start) => started.push(start);
    const schedule = new BenchContext(scheduler, { ...{ account, onStart }, bytesPerMs: 128 });
    for (let index = 0; index < 30; index++) schedule.enqueue(segment(index, 100));
    return schedule;
  };
  const work = (durationMs: number): void => {
    for (let next = started.shift(); next !== undefined; next = started.shift()) {
      scheduler.came(next.schedule.context, next.segment.index, durationMs);
      next.schedule.finished(next.segment, durationMs);
    }
  };
  const greedy = Array.from({ length: 70 }, () => open('greedy'));
  work(60_000);
  t.ok(scheduler.audio.bytes > POOL, `the budget is overdrawn: ${scheduler.audio.bytes}`);
  for (const account of ['honest', 'third']) {
    const contexts = [open(account), open(account)];
    work(7_000);
    for (const { context } of contexts) t.ok(context.unsentMs >= 7_000, `${account} has audio to play`);
  }
  for (const schedule of greedy) schedule.close();
  t.end();
});

t.test('a millisecond of audio counts as its samples or its base64, whichever is larger', (t) => {
  t.equal(heldBytesPerMs({ encoding: 'pcm', sampleRateHz: 48_000 }, 24_000), 128);
  t.equal(heldBytesPerMs({ encoding: 'mulaw', sampleRateHz: 8_000 }, 24_000), 48);
  t.equal(heldBytesPerMs({ encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 384 }, 24_000), 64);
  t.end();
});

t.test('with hundreds of stalled readers the budget holds, and a newcomer gets audio', (t) => {
  const started: Start[] = [];
  const POOL = 8 * 1024 * 1024;
  const BYTES_PER_MS = 48;
  const SEGMENT_MS = 700;
  const scheduler = new Scheduler(
    schedulerOptions(() => 0, {
      ...{ threads: 2, jobsMax: 256 },
      bounds: { ...limits, unsentAudioBytesMax: POOL },
    }),
  );
  const open = () => {
    const schedule = new BenchContext(scheduler, {
      bytesPerMs: BYTES_PER_MS,
      onStart: (start) => started.push(start),
    });
    for (let index = 0; index < 30; index++) schedule.enqueue(segment(index, 10));
    return schedule;
  };
  const work = (): void => {
    for (let next = started.shift(); next !== undefined; next = started.shift())
      next.schedule.finished(next.segment, SEGMENT_MS);
  };
  const greedy = Array.from({ length: 100 }, open);
  work();
  t.ok(scheduler.audio.bytes < POOL, `${scheduler.audio.bytes}`);
  t.ok(
    greedy.every(({ context }) => context.unsentMs < 20_000),
    'stopped before their own bound',
  );
  const newcomer = open();
  work();
  t.ok(newcomer.context.unsentMs >= SEGMENT_MS, 'it has audio to play');

  const more = Array.from({ length: 100 }, open);
  work();
  const overshoot = 256 * SEGMENT_MS * BYTES_PER_MS;
  t.ok(scheduler.audio.bytes <= POOL + overshoot, `${scheduler.audio.bytes}`);
  for (const schedule of [...greedy, newcomer]) schedule.handed(schedule.context.unsentMs);
  work();
  t.ok(
    more.every(({ context }) => context.unsentMs > 0),
    'freed room goes to waiting contexts',
  );
  for (const schedule of [...greedy, newcomer, ...more]) schedule.close();
  t.equal(scheduler.audio.bytes, 0);
  t.end();
});

t.test(
  'connections over the bound are closed, existing ones continue, and freed places are used again',
  async (t) => {
    const front = await startFront(t, { bounds: { connectionsMax: 20 } });
    const socket = await openWs(front.port, GOOD_KEY);
    const ask = requestBytes({ path: '/healthz' });
    const kept = await Promise.all(Array.from({ length: 10 }, () => front.client()));
    const flood = await Promise.all(Array.from({ length: 60 }, () => RawClient.open(front.port)));
    await eventually(() => flood.filter((client) => client.isClosed || client.error !== null).length >= 56);
    t.equal(
      flood.filter((client) => client.isClosed).length,
      56,
      'all but four: three quarters of 19 are 14',
    );
    for (const client of kept) {
      client.send(ask);
      t.equal((await client.response()).status, 200);
    }
    socket.start('a');
    await socket.frame((frame) => frame.context_started !== undefined);
    t.equal(
      front.lines.filter(({ message }) => message.startsWith('too many connections')).length,
      1,
      'logged once',
    );
    for (const client of flood) client.destroy();
    socket.ws.terminate();
    await eventually(() => front.server.inFlight === 0);
    let again: RawClient | undefined;
    do {
      again?.destroy();
      again = await front.client();
      again.send(ask);
      await again.until(() => again!.receivedBytes > 0);
    } while (again.receivedBytes === 0);
    t.equal((await again.response()).status, 200);
  },
);

t.test('clients that never read their answers are closed; a client that reads is not', async (t) => {
  const front = await startFront(t, {
    bounds: {
      socketBufferedBytesMax: 4_096,
      socketAnswerBytesInFlightMax: 2 * 16 * 40_000,
      // All of it is read as fast as it comes.
      framesPerSecond: 1e9,
      parseMsPerSecond: 1e9,
    },
  });
  const open = async () => {
    const client = await RawClient.open(front.port);
    client.send(
      Buffer.from(
        'GET /v1/tts/ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nx-api-key: ${GOOD_KEY}\r\n\r\n`,
      ),
    );
    await client.until(() => client.receivedBytes > 0);
    return client;
  };
  const good = await openWs(front.port, GOOD_KEY);
  const greedy = await Promise.all(Array.from({ length: 4 }, open));
  // A frame whose refusal quotes its name: a few bytes cause a hundred.
  const asks = Buffer.concat(
    Array.from({ length: 4_000 }, () => Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d])),
  );
  for (const client of greedy) client.socket.pause();
  for (let round = 0; round < 40; round++) {
    for (const client of greedy) client.send(asks);
    await pause(2);
  }
  const flooded = () =>
    front.lines.filter(({ message, fields }) => message === 'socket' && fields['outcome'] === 'flooded')
      .length;
  await eventually(() => flooded() === greedy.length);
  t.equal(flooded(), greedy.length);
  good.flush('nobody');
  t.match(await good.frame((frame) => frame.error !== undefined), { context_id: 'nobody' });
  t.equal(good.closed, null);
  good.ws.terminate();
  for (const client of greedy) client.destroy();
});
