/** Every scenario of `npm run torture`, in the order in which they run. */
import { leftOpen } from './floods/left-open.js';
import type { Scenario } from './scenario.js';

export const scenarios: readonly Scenario[] = [leftOpen];
