/** Contexts over their scheduler as a model: any order of text, flushes, ends, jobs and faults. */
import fc from 'fast-check';
import t from 'tap';
import { check } from '../fuzz/check.js';
import { acts, Stage } from './stage.js';

const SCHEDULES = 100_000;

t.test('contexts speak, tell and charge what they took, over any schedule', async (t) => {
  const property = fc.property(acts, (steps) => {
    const stage = new Stage();
    for (const step of steps) stage.take(step);
    stage.finish();
  });
  await check(t, property, SCHEDULES);
});
