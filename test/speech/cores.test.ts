/** The cores that other programs leave to speech. */
import t from 'tap';
import { Cores } from '../../src/speech/capacity.js';

const SAMPLE_MS = 250;
const NICENESS = 10;

/** Samples of a machine of two cores with two synthesis threads: what others take, and what speech and the front thread use. */
const watch = (cores = new Cores(2, 2, NICENESS)) => {
  let nowMs = 0;
  const pass = (durationMs: number, othersCores: number, speechCores = 0, frontCores = 0) => {
    for (const endMs = nowMs + durationMs; nowMs < endMs;) {
      nowMs += SAMPLE_MS;
      const idleCores = Math.max(0, 2 - othersCores - speechCores - frontCores);
      const [idleMs, speechMs, frontMs] = [idleCores, speechCores, frontCores].map(
        (used) => used * SAMPLE_MS,
      );
      cores.add(nowMs, SAMPLE_MS, idleMs!, speechMs!, frontMs!);
    }
    return cores.free;
  };
  return { cores, pass };
};

t.test('all cores are free until something was measured', (t) => {
  t.equal(new Cores(4, 4, NICENESS).free, 4);
  t.end();
});

t.test('what speech uses itself is free for speech', (t) => {
  const { pass } = watch();
  t.equal(pass(5_000, 0, 2), 2, 'although nothing is idle');
  t.equal(pass(5_000, 0.5, 1.5), 1.5);
  t.end();
});

t.test('a neighbour counts after two seconds, and at once no more when it ends', (t) => {
  const { pass } = watch();
  pass(5_000, 0);
  t.equal(pass(1_750, 1), 2);
  t.equal(pass(250, 1), 1, 'two seconds have passed');
  t.equal(pass(60_000, 1), 1);
  t.equal(pass(250, 0), 2);
  t.end();
});

t.test('what the front thread uses is not free at once, and no longer than it uses it', (t) => {
  const { pass } = watch();
  pass(5_000, 0);
  t.equal(pass(250, 0, 1.5, 0.5), 1.5);
  t.equal(pass(250, 0, 2), 2);
  t.equal(pass(5_000, 1, 0.5, 0.25), 0.75, 'beside what others use');
  t.end();
});

t.test('what runs while the service starts is no neighbour until it has run for two seconds', (t) => {
  const { pass } = watch();
  t.equal(pass(1_750, 2), 2);
  t.ok(pass(500, 2) < 1);
  t.end();
});

t.test('a neighbour that runs now and then never counts', (t) => {
  const { pass } = watch();
  for (let round = 0; round < 20; round++) {
    t.equal(pass(1_500, 1.5), 2);
    t.equal(pass(250, 0), 2);
  }
  t.end();
});

t.test('programs of normal priority leave synthesis threads their fair share', (t) => {
  const { pass } = watch();
  // Two threads that weigh 1.25 ** -10 each, beside two cores of others.
  const weight = 2 * 1.25 ** -NICENESS;
  const share = (2 * weight) / (weight + 2);
  const free = pass(5_000, 2);
  t.ok(Math.abs(free - share) < 1e-9, `${free} of a core, and not none`);
  t.ok(free > 0.15 && free < 0.25);
  const equal = watch(new Cores(2, 2, 0)).pass(5_000, 2);
  t.equal(equal, 1, 'with the same priority they get half');
  t.equal(watch().pass(5_000, 0.5), 1.5, 'what is free is more than their share');
  t.end();
});

t.test('a sample without a duration, or with more than the machine has, does no harm', (t) => {
  const cores = new Cores(2, 2, NICENESS);
  cores.add(0, 0, 100, 0, 0);
  t.equal(cores.free, 2);
  cores.add(250, 250, 800, 0, 0);
  t.equal(cores.free, 2);
  for (let nowMs = 500; nowMs <= 2_500; nowMs += 250) cores.add(nowMs, 250, -10, 0, 0);
  t.ok(cores.free > 0 && cores.free < 2);
  t.end();
});
