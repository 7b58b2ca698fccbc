/** What the scheduler does for whole files. */
import t from 'tap';
import { bench, last, segment } from '../support/scheduling.js';

t.test('a whole file runs as many segments as there are threads, and two of one account share them', (t) => {
  const { starts, open } = bench({ threads: 3, jobsMax: 8 });
  const file = open('account', { framing: 'whole' });
  for (let index = 0; index < 5; index++) file.enqueue(segment(index, 10));
  t.same(
    starts.map((start) => start.segment.index),
    [0, 1, 2],
    'nobody hears its first chunk',
  );
  const listener = open();
  for (let index = 0; index < 2; index++) listener.enqueue(segment(index, 10));
  t.match(last(starts), { schedule: listener, segment: { index: 0 } }, 'a listener starts at once');
  t.equal(starts.length, 4);
  const second = open('account', { framing: 'whole' });
  second.enqueue(segment(0, 10));
  t.equal(starts.length, 4, 'their account has what its files may run while others wait');
  const stranger = open('other account', { framing: 'whole' });
  for (let index = 0; index < 2; index++) stranger.enqueue(segment(index, 10));
  t.match(last(starts), { schedule: stranger, segment: { index: 0 } });
  t.equal(starts.length, 5, 'one for each account while the threads are busy');
  t.end();
});

t.test('files take half of the jobs at most, so a listener never waits for one of them', (t) => {
  const { starts, open } = bench({ threads: 2, jobsMax: 8 });
  const files = Array.from({ length: 6 }, (_, account) => open(`account ${account}`, { framing: 'whole' }));
  for (const file of files) file.enqueue(segment(0, 10));
  t.equal(starts.length, 4);
  for (let count = 0; count < 4; count++) open().enqueue(segment(0, 10));
  t.equal(starts.length, 8, 'listeners have the rest');
  files[0]!.finished(starts[0]!.segment, 700);
  t.equal(last(starts).schedule, files[4], 'a file that ends makes room for the next');
  t.end();
});

t.test('a file is due by its length, whatever it waited for', (t) => {
  const { clock, starts, open } = bench({ threads: 1, jobsMax: 1 });
  const file = open('account', { framing: 'whole' });
  file.enqueue(segment(0, 10));
  t.equal(last(starts).playFromMs, 300, 'not before 300 ms');
  clock.nowMs = 5_000;
  file.finished(last(starts).segment, 2_000);
  file.enqueue(segment(1, 10));
  t.equal(last(starts).playFromMs, 1_000, 'after half of its playing time, although that has passed');
  t.end();
});

t.test('of the files of several accounts the one that is due first is served first', (t) => {
  const { clock, starts, open } = bench({ threads: 1, jobsMax: 1 });
  const busy = open();
  busy.enqueue(segment(0));
  const files = ['a', 'b', 'c'].map((account) => {
    clock.nowMs += 10;
    const file = open(account, { framing: 'whole' });
    file.enqueue(segment(0, 10));
    return file;
  });
  busy.finished(last(starts).segment, 1_000);
  for (const file of files) {
    t.equal(last(starts).schedule, file);
    file.finished(last(starts).segment, 700);
  }
  t.end();
});
