/** What the cost of work counts. */
import t from 'tap';
import { aside, EffortTable } from '../../src/threads/effort.js';

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const burn = (ms: number): void => {
  for (const endMs = cpuMs() + ms; cpuMs() < endMs;);
};

t.test('CPU time between two pieces of work counts for the second, beside its own', (t) => {
  const table = new EffortTable(2);
  burn(50);
  table.add(0, table.begin()(100, true).effort);
  burn(50);
  const end = table.begin();
  burn(20);
  table.add(1, end(200, true).effort);
  const [first, second] = [table.take(0), table.take(1)];
  t.match(
    first,
    { cpuMs: first.beginMs, speechMs: 100, begun: 1 },
    'what was before the first work counts for none',
  );
  t.match(second, { speechMs: 200, begun: 1 });
  t.ok(second.cpuMs - second.beginMs >= 50, `${second.cpuMs} ms with what was around`);
  t.ok(second.beginMs >= 20 && second.beginMs < 50, `${second.beginMs} ms of its own`);
  t.match(table.take(1), { cpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 }, 'it is taken once');
  t.end();
});

t.test('work that is no speech can be left out', (t) => {
  const table = new EffortTable(1);
  table.add(0, table.begin()(100).effort);
  burn(50);
  table.leaveOut();
  table.add(0, table.begin()(100).effort);
  t.ok(table.take(0).cpuMs < 50);
  t.end();
});

t.test('work that goes aside is no cost of what it is in, and is known', (t) => {
  const table = new EffortTable(1);
  const end = table.begin();
  burn(20);
  aside(() => burn(60));
  const { effort, asideMs } = end(100, true);
  t.ok(asideMs >= 60, `${asideMs} ms`);
  t.ok(effort.beginMs >= 20 && effort.beginMs < 60, `${effort.beginMs} ms`);
  t.equal(effort.cpuMs, effort.beginMs);
  t.equal(table.begin()(100).asideMs, 0, 'it counts once');
  const endOfTwo = table.begin();
  aside(() => burn(60));
  t.ok(endOfTwo(100, true, 100, 2).effort.beginMs <= 70, 'on a GPU, a part of it for each of two');
  t.end();
});

t.test('work on a GPU has the cost that is given, and what was before it counts once', (t) => {
  const table = new EffortTable(2);
  table.add(0, table.begin()(0).effort);
  table.take(0);
  burn(10);
  const end = table.begin();
  table.add(0, end(100, true, 5).effort);
  table.add(1, end(100, false, 5).effort);
  const [first, second] = [table.take(0), table.take(1)];
  t.match(first, { begun: 1, beginMs: 5 });
  t.ok(first.cpuMs >= 15, `${first.cpuMs} ms`);
  t.match(second, { cpuMs: 5, begun: 0 });
  t.end();
});
