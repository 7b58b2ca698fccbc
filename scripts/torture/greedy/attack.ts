/** What a greedy key does, in a process of its own. */
import type { Tally } from '../../rig/tally.js';

/** `unread`: as `text`, by a client that does not read. */
export type AttackKind = 'sockets' | 'bodies' | 'text' | 'unread' | 'frames' | 'parsing';

export interface Target {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
}

export interface AttackParts extends Target {
  /** Sockets, requests or frames that were answered. */
  readonly answers: Tally;
  /** What was accepted and not done, or answered wrongly. */
  readonly faults: string[];
  /** @param once is called until the end, one call after the other in each loop */
  readonly loop: (count: number, once: (loop: number) => Promise<void>) => void;
}

/** Begins. @returns what waits for what was accepted, when nothing is sent any more */
export type Attack = (parts: AttackParts) => Promise<() => void | Promise<void>>;
