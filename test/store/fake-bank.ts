/** The functions of `host-schema.ts` for one account, in memory, with a clock that the test moves. */
import { limits } from '../../src/limits.js';
import type { Exchange, Exchanged } from '../../src/store/postgres/host-schema.js';
import type { Allotment } from '../../src/store/allotments.js';
import { ACCOUNT, type Bank, type Entry, type Held } from './credit-world.js';

interface Row {
  turn: number;
  version: number;
  reserved: number;
  spare: number;
  settled: number;
  free: number;
  freeUntilMs: number;
  answered: number;
}

export class FakeBank implements Bank {
  readonly #rows = new Map<number, Row>();
  readonly #ledger = new Map<number, Entry[]>();
  readonly #ended = new Set<number>();
  #balance = 0;
  #calls = 0;
  #versions = 0;
  #nowMs = 0;

  async grant(amount: number): Promise<void> {
    this.#balance += amount;
  }

  async append(writer: number, entries: readonly Entry[]): Promise<readonly Allotment[] | null> {
    if (this.#ended.has(writer)) return null;
    const known = await this.entries(writer);
    const added = entries.filter(({ entry }) => known.every((other) => other.entry !== entry));
    this.#ledger.set(writer, [...known, ...added]);
    const row = this.#rows.get(writer);
    for (const { entry, amount } of added) {
      this.#balance -= amount;
      if (row !== undefined) {
        row.reserved = Math.max(0, row.reserved - amount);
        row.settled = entry;
        row.version = ++this.#versions;
      }
    }
    return row === undefined ? [] : [this.#allotment(row)];
  }

  async exchange(
    writer: number,
    acknowledged: number,
    asked: readonly Exchange[],
  ): Promise<readonly Exchanged[] | null> {
    return this.#ended.has(writer) ? null : asked.map((each) => this.#exchange(writer, acknowledged, each));
  }

  async declareDead(writer: number): Promise<void> {
    this.#ended.add(writer);
    this.#rows.delete(writer);
  }

  end(writer: number): Promise<void> {
    return this.declareDead(writer);
  }

  async advance(ms: number): Promise<void> {
    this.#nowMs += ms;
  }

  async balance(): Promise<number> {
    return this.#balance;
  }

  async allotments(): Promise<readonly Held[]> {
    return [...this.#rows].map(([writer, row]) => ({
      writer,
      reserved: row.reserved,
      free: this.#live(row),
    }));
  }

  async entries(writer: number): Promise<readonly Entry[]> {
    return this.#ledger.get(writer) ?? [];
  }

  #live({ free, freeUntilMs }: Row): number {
    return freeUntilMs > this.#nowMs ? free : 0;
  }

  #allotment({ version, reserved, settled }: Row): Allotment {
    return { accountId: ACCOUNT, version, reserved, settled };
  }

  #exchange(writer: number, acknowledged: number, asked: Exchange): Exchanged {
    const { turn, used, needed, ahead, keep, mayCall, answers, settled } = asked;
    const own = this.#rows.get(writer) ?? {
      ...{ turn: 0, version: ++this.#versions, reserved: 0, spare: 0, settled: acknowledged, free: 0 },
      ...{ freeUntilMs: -Infinity, answered: 0 },
    };
    this.#rows.set(writer, own);
    const others = [...this.#rows].flatMap(([id, row]) => (id === writer ? [] : row));
    const sum = (of: (row: Row) => number) => others.reduce((total, row) => total + of(row), 0);
    const room = this.#balance - sum((row) => row.reserved + this.#live(row));
    if (turn > own.turn) {
      const isEnough = room >= needed;
      const target = isEnough ? needed + Math.min(ahead, Math.floor((room - needed) / 2)) : 0;
      const isKnown = own.settled <= settled;
      own.turn = turn;
      own.reserved = Math.max(Math.min(own.reserved, keep ?? own.reserved), target);
      own.spare = isKnown ? own.reserved - used : Math.max(1, own.reserved - used);
      own.free = isEnough ? Math.max(0, Math.min(asked.free, Math.floor((room - own.reserved) / 2))) : 0;
      own.freeUntilMs = this.#nowMs + limits.creditFreeMs;
      if (isKnown) own.answered = Math.max(own.answered, answers);
      own.version = ++this.#versions;
      if (mayCall && own.reserved < needed) this.#calls += 1;
    }
    const unanswered = others.filter(
      (row) => row.answered < this.#calls && row.reserved + this.#live(row) > 0,
    );
    return {
      ...this.#allotment(own),
      ...{ turn, answered: own.answered, free: own.free, balance: this.#balance, room, call: this.#calls },
      unanswered: unanswered.length,
      idleElsewhere: sum((row) => Math.max(0, row.spare) + this.#live(row)),
    };
  }
}
