/** Sockets and contexts as a model: any schedule of frames, work, faults and slow readers keeps what is promised. */
import fc from 'fast-check';
import t from 'tap';
import { check } from '../fuzz/check.js';
import { schedules } from './schedules.js';
import { World } from './world.js';

const SCHEDULES = 100_000;
const STEPS_MAX = 50;

t.test('sockets keep order, terms and books over any schedule', async (t) => {
  const property = fc.property(schedules(STEPS_MAX), (steps) => {
    const world = new World();
    for (const step of steps) world.take(step);
    world.finish();
  });
  await check(t, property, SCHEDULES);
});
