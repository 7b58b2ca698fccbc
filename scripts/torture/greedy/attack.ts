/** What a greedy key does, in a process of its own. */
import { Tally } from '../../rig/tally.js';

export interface AttackPlan {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
  readonly kind: AttackKind;
}

/** `unread`: as `text`, by a client that does not read. */
export type AttackKind = 'sockets' | 'bodies' | 'text' | 'unread' | 'frames' | 'parsing';

export interface AttackReport {
  /** Sockets, requests or frames that were answered. */
  readonly count: number;
  readonly outcome: string;
  /** What was accepted and not done, or answered wrongly. */
  readonly faults: readonly string[];
}

export type Target = Omit<AttackPlan, 'kind'>;

/** Goes on from `begin` to `end`, which waits for what was accepted. */
export abstract class Attack {
  protected readonly target: Target;
  protected readonly answers = new Tally();
  protected readonly faults: string[] = [];
  #isStopped = false;
  #loops: Promise<void>[] = [];

  constructor(target: Target) {
    this.target = target;
  }

  abstract begin(): Promise<void>;

  async end(): Promise<AttackReport> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    await this.ended();
    const { answers, faults } = this;
    return { count: answers.sum, outcome: `answers ${answers.toString()}`, faults };
  }

  /** Nothing is sent any more. */
  protected abstract ended(): void | Promise<void>;

  /** @param once is called until the end, one call after the other in each loop */
  protected loop(count: number, once: (loop: number) => Promise<void>): void {
    this.#loops = Array.from({ length: count }, async (_, loop) => {
      while (!this.#isStopped) await once(loop);
    });
  }
}
