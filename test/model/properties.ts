/** What must hold over any schedule: of sockets with their sessions, and of contexts with their scheduler. */
import fc from 'fast-check';
import type { Test } from 'tap';
import { check } from '../fuzz/check.js';
import { schedules } from './schedules.js';
import { acts, Stage } from './stage.js';
import { World } from './world.js';

const STEPS_MAX = 50;
/** Schedules try too little if they meet one of these less often than once in so many (on average, once in 200 at least): messages, and ways in which a socket ends. */
const SCHEDULES_FOR_EACH = 1_500;
const messages = [
  'context_started',
  'audio_chunk',
  'timestamps',
  'flush_completed',
  'context_closed',
  'INSUFFICIENT_CREDITS',
  'Rate limit exceeded',
  'Too much text is waiting',
  'Too many contexts are open',
  'Internal Server Error',
  'Service unavailable',
  'INVALID_API_KEY',
  'unknown context_id',
  'invalid frame',
];
const outcomes = ['client', 'revoked', 'drained', 'reader-stalled', 'silent', 'flooded', 'failed'];

export const checkSockets = async (t: Test, times: number): Promise<void> => {
  const met = new Map<string, number>();
  const property = fc.property(schedules(STEPS_MAX), (steps) => {
    const world = new World(met);
    for (const step of steps) world.take(step);
    world.finish();
  });
  await check(t, property, times);
  for (const what of [...messages, ...outcomes])
    t.ok((met.get(what) ?? 0) >= times / SCHEDULES_FOR_EACH, `${what}: ${met.get(what) ?? 0} times`);
};

export const checkContexts = async (t: Test, times: number): Promise<void> => {
  const property = fc.property(acts, (steps) => {
    const stage = new Stage();
    for (const step of steps) stage.take(step);
    stage.finish();
  });
  await check(t, property, times);
};
