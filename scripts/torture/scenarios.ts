/** Every scenario of `npm run torture`, in the order in which they run. */
import { leftOpen } from './floods/left-open.js';
import { fuzz } from './fuzz/fuzz.js';
import type { Scenario } from './scenario.js';

export const scenarios: readonly Scenario[] = [fuzz, leftOpen];
