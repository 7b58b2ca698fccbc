/** When a listener hears which part of its audio. */
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { ClockTable, PlaybackClock } from '../../src/threads/playback-clock.js';

t.test('a position plays when all before it was heard', (t) => {
  const clock = new PlaybackClock();
  clock.start(1_000);
  t.equal(clock.at(), 1_000);
  t.equal(clock.at(250), 1_250);
  t.equal(new PlaybackClock().at(70), 70, 'before its start too');
  t.end();
});

t.test('audio that comes in time moves nothing; audio that comes late moves all that follows', (t) => {
  const clock = new PlaybackClock();
  clock.start(1_000);
  t.equal(clock.reach(500, 1_499), 0);
  t.equal(clock.reach(500, 1_500), 0, 'at the last moment');
  t.equal(clock.at(500), 1_500);
  t.equal(clock.reach(500, 1_530), 30, 'so long the listener was dry');
  t.equal(clock.at(500), 1_530);
  t.equal(clock.at(2_000), 3_030);
  t.equal(clock.reach(500, 1_530), 0, 'once');
  t.end();
});

t.test('a clock can be moved, and held back', (t) => {
  const clock = new PlaybackClock();
  clock.start(1_000);
  clock.advance(200);
  t.equal(clock.at(100), 1_300);
  clock.limit(100, 1_400);
  t.equal(clock.at(100), 1_300, 'it is earlier than the limit');
  clock.limit(100, 1_250);
  t.equal(clock.at(100), 1_250);
  t.equal(clock.at(), 1_150);
  t.end();
});

t.test('a file is due after a part of its playing time, and not before its lead', (t) => {
  const clock = new PlaybackClock();
  clock.start(1_000, 300, 0.5);
  t.equal(clock.at(), 1_300);
  t.equal(clock.at(600), 1_300, 'half of 600 ms');
  t.equal(clock.at(602), 1_301);
  t.equal(clock.at(60_000), 31_000);
  clock.start(5_000);
  t.equal(clock.at(600), 5_600, 'the next user of the clock has neither lead nor pace');
  t.end();
});

t.test('the clocks of a table have their own times, and all threads read the same', async (t) => {
  const table = new ClockTable(2);
  const [a, b] = [table.take(), table.take()];
  t.not(a, b);
  table.clock(a).start(100);
  table.clock(b).start(200, 50, 0.5);
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     import(workerData.module).then(({ ClockTable }) => {
       const table = new ClockTable(workerData.buffer);
       parentPort.postMessage(workerData.numbers.map((number) => table.clock(number).at(1_000)));
     });`,
    {
      eval: true,
      workerData: {
        module: new URL('../../src/threads/playback-clock.js', import.meta.url).href,
        buffer: table.buffer,
        numbers: [a, b],
      },
    },
  );
  t.same(await new Promise((resolve) => worker.once('message', resolve)), [1_100, 700]);
  await worker.terminate();
});

t.test('a clock that is given back is taken again, and a table has only so many', (t) => {
  const table = new ClockTable(3);
  const numbers = [table.take(), table.take(), table.take()];
  t.throws(() => table.take(), RangeError);
  table.give(numbers[1]!);
  t.equal(table.take(), numbers[1]);
  t.throws(() => table.take(), RangeError, 'a failed call takes none');
  table.give(numbers[0]!);
  t.equal(table.take(), numbers[0]);
  for (const number of [-1, 3, 1e9, NaN])
    t.throws(() => table.clock(number), RangeError, `there is no clock ${number}`);
  t.end();
});
