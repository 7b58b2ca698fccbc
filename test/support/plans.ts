import { readConfig } from '../../src/config.js';
import type { PlanConfig } from '../../src/plan.js';

/** As of an environment with nothing set, on a machine of two cores. */
export const planConfig = (changed: Partial<PlanConfig> = {}): PlanConfig => ({
  ...readConfig({}),
  hasLexicons: false,
  provider: 'cpu',
  synthesisThreads: 2,
  actorThreads: 1,
  ...changed,
});
