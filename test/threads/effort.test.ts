/** What the cost of work counts. */
import t from 'tap';
import { EffortTable } from '../../src/threads/effort.js';

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
  table.begin()(0, 100, true);
  burn(50);
  const end = table.begin();
  burn(20);
  end(1, 200);
  const [first, second] = [table.take(0), table.take(1)];
  t.match(first, { aroundCpuMs: 0, speechMs: 100, begun: 1 });
  t.match(second, { speechMs: 200, begun: 0, beginMs: 0 });
  t.ok(second.aroundCpuMs >= 50, `${second.aroundCpuMs} ms around`);
  t.ok(second.cpuMs >= 20 && second.cpuMs < 50, `${second.cpuMs} ms of its own`);
  t.match(table.take(1), { cpuMs: 0, aroundCpuMs: 0, speechMs: 0 }, 'it is taken once');
  t.end();
});

t.test('work that is no speech can be left out', (t) => {
  const table = new EffortTable(1);
  table.begin()(0, 100);
  burn(50);
  table.leaveOut();
  table.begin()(0, 100);
  t.ok(table.take(0).aroundCpuMs < 50);
  t.end();
});

t.test('a batch costs its segments a part each, and a wait for a GPU counts as CPU time', (t) => {
  const table = new EffortTable(2);
  const end = table.begin(true, 4);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  end(0, 100, true);
  end(1, 100);
  const [first, second] = [table.take(0), table.take(1)];
  for (const { cpuMs: waitedMs, wallMs } of [first, second]) {
    t.equal(waitedMs, wallMs);
    t.ok(wallMs >= 5, `${wallMs} ms, a fourth of the batch`);
  }
  t.equal(first.beginMs, first.wallMs, 'those of a batch together take as long as it');
  t.end();
});
