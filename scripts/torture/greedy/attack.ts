/** What a greedy key does, in a process of its own. */
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

/** Goes on from `begin` to `end`, which waits for what was accepted. */
export interface Attack {
  begin(): Promise<void>;
  end(): Promise<AttackReport>;
}

export type Target = Omit<AttackPlan, 'kind'>;

/** Runs several of the same until they are stopped. */
export class Loops {
  #isStopped = false;
  #loops: Promise<void>[] = [];

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** @param once is called again and again, one call after the other in each loop */
  begin(count: number, once: (loop: number) => Promise<void>): void {
    this.#loops = Array.from({ length: count }, async (_, loop) => {
      while (!this.#isStopped) await once(loop);
    });
  }

  async end(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }
}
