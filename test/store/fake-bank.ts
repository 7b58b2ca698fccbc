/** The functions of `host-schema.ts` for one account, in memory. */
import type { Claim, Grant } from '../../src/store/reservations.js';
import { ACCOUNT, type Bank, type Entry, type Held } from './credit-world.js';

export class FakeBank implements Bank {
  readonly #reserved = new Map<number, number>();
  readonly #ledger = new Map<number, Entry[]>();
  readonly #turns = new Map<number, number>();
  readonly #ended = new Set<number>();
  #balance = 0;

  async grant(amount: number): Promise<void> {
    this.#balance += amount;
  }

  async commit(
    writer: number,
    turn: number | null,
    entries: readonly Entry[],
    claims: readonly Claim[],
  ): Promise<readonly Grant[] | null> {
    const lastTurn = this.#turns.get(writer) ?? 0;
    if (this.#ended.has(writer) || (turn !== null && turn <= lastTurn)) return null;
    this.#turns.set(writer, turn ?? lastTurn);
    const known = await this.entries(writer);
    const added = entries.filter(({ entry }) => known.every((other) => other.entry !== entry));
    this.#ledger.set(writer, [...known, ...added]);
    for (const { amount } of added) {
      this.#balance -= amount;
      this.#reserved.set(writer, Math.max(0, (this.#reserved.get(writer) ?? 0) - amount));
    }
    return claims.map(({ kept, requests, ahead }) => {
      let room = this.#balance - kept;
      for (const [other, reserved] of this.#reserved) if (other !== writer) room -= reserved;
      let reserved = kept;
      const take = (amount: number, times = 1): boolean => {
        if (amount * times > room) return false;
        room -= amount;
        reserved += amount;
        return true;
      };
      const granted = requests.map(({ amount }) => take(amount));
      take(ahead, 16);
      this.#reserved.set(writer, reserved);
      return { accountId: ACCOUNT, reserved, granted };
    });
  }

  async declareDead(writer: number): Promise<void> {
    this.#ended.add(writer);
    this.#reserved.delete(writer);
  }

  end(writer: number): Promise<void> {
    return this.declareDead(writer);
  }

  async balance(): Promise<number> {
    return this.#balance;
  }

  async reservations(): Promise<readonly Held[]> {
    return [...this.#reserved].map(([writer, reserved]) => ({ writer, reserved }));
  }

  async entries(writer: number): Promise<readonly Entry[]> {
    return this.#ledger.get(writer) ?? [];
  }
}
