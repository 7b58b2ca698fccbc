/** Sockets and contexts as a model: any schedule of frames, work, faults and slow readers keeps what is promised. */
import fc from 'fast-check';
import t from 'tap';
import { check } from '../fuzz/check.js';
import { schedules } from './schedules.js';
import { World } from './world.js';

const SCHEDULES = 100_000;
const STEPS_MAX = 50;

/** What schedules have to come to, or they try too little: messages, and ways of a socket to end. */
const wanted = [
  ...['context_started', 'audio_chunk', 'timestamps', 'flush_completed', 'context_closed'],
  ...[
    'INSUFFICIENT_CREDITS',
    'Rate limit exceeded',
    'Too much text is waiting',
    'Too many contexts are open',
  ],
  ...[
    'Internal Server Error',
    'Service unavailable',
    'INVALID_API_KEY',
    'unknown context_id',
    'invalid frame',
  ],
  ...['client', 'revoked', 'drained', 'reader-stalled', 'silent', 'flooded', 'failed'],
];

t.test('sockets keep order, terms and books over any schedule', async (t) => {
  const met = new Map<string, number>();
  const property = fc.property(schedules(STEPS_MAX), (steps) => {
    const world = new World(met);
    for (const step of steps) world.take(step);
    world.finish();
  });
  await check(t, property, SCHEDULES);
  for (const what of wanted) t.ok((met.get(what) ?? 0) >= 20, `${what}: ${met.get(what) ?? 0} times`);
});
