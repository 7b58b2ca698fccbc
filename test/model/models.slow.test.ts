/** Four times as many schedules as in models.test.ts; `npm run nightly` runs 160,000. */
import t from 'tap';
import { checkContexts, checkSockets } from './properties.js';

const SCHEDULES = 6_000;

t.test('sockets keep order, terms and books over any schedule', (t) => checkSockets(t, SCHEDULES));

t.test('contexts speak, report and charge what they took, over any schedule', (t) =>
  checkContexts(t, SCHEDULES),
);
