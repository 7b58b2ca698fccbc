import t from 'tap';
import { checkContexts, checkSockets } from './properties.js';

const SCHEDULES = 1_500;

t.test('sockets keep order, terms and books over any schedule', (t) => checkSockets(t, SCHEDULES));

t.test('contexts speak, report and charge what they took, over any schedule', (t) =>
  checkContexts(t, SCHEDULES),
);
