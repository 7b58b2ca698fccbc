/** The services that an overload measures. */
import type { Service } from '../../rig/service.js';
import type { Target } from '../streams.js';

/** A service and how to reach it. */
export interface Subject {
  readonly service: Service;
  readonly target: Target;
}

export interface Subjects {
  /** It refuses what it cannot carry. */
  readonly refusing: Subject;
  /** It admits everyone. */
  readonly late: Subject;
  /** Runs `use` with a new service that refuses, which has only just become ready, and ends it. */
  readonly withFresh: <T>(use: (subject: Subject) => Promise<T>) => Promise<T>;
}
