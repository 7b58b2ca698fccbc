import { InvariantError } from './fault.js';

/** A holder may have this fraction of what is free. */
const FRACTION_OF_FREE = 16;

/**
 * A shared bound on bytes (or characters, contexts, files). Holders take from it and give back.
 *
 * Most holders take a known amount, or nothing: `take`. Holders that grow step by step ask for their `allowance` first
 * and then report every `change`. The allowance shrinks as the budget fills: large holders are stopped first, and a
 * holder of nothing has room until the budget is exhausted. Of N holders that take all they may, and give back as they go,
 * none has more than 1 / (N + 16) of the budget in the long run.
 */
export class ByteBudget {
  readonly bytesMax: number;
  #takenBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes of all holders. */
  get taken(): number {
    return this.#takenBytes;
  }

  get isExhausted(): boolean {
    return this.#takenBytes >= this.bytesMax;
  }

  /** @returns false if the budget has fewer bytes left: then nothing is taken */
  take(bytes: number): boolean {
    if (this.#takenBytes + bytes > this.bytesMax) return false;
    this.#takenBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.change(-bytes);
  }

  /**
   * A holder has so many bytes more, or fewer. It asked for its allowance before.
   *
   * @throws {InvariantError} more bytes are given back than were taken: an accounting error, and the budget stays as it is
   */
  change(bytes: number): void {
    if (this.#takenBytes + bytes < 0)
      throw new InvariantError(
        `a budget would fall below zero: ${this.#takenBytes} taken, ${-bytes} given back`,
      );
    this.#takenBytes += bytes;
  }

  /** What one holder may have now. @param mostBytes its own bound */
  allowance(mostBytes: number): number {
    return Math.max(0, Math.min(mostBytes, (this.bytesMax - this.#takenBytes) / FRACTION_OF_FREE));
  }
}

/** Which bound refuses: that of all keys together, or the part of one key. */
export type KeyedRefusal = 'pool' | 'key';

/** One key's side of a `KeyedBudget`. */
export type PartOfKey = Pick<ByteBudget, 'take' | 'giveBack'>;

/**
 * A budget whose holders belong to keys. A key may hold half of what the other keys leave, and at least `leastBytes` while
 * there is room: of N keys that take all they may, each has 1 / (N + 1), and as much is free for a newcomer.
 */
export class KeyedBudget {
  readonly #total: ByteBudget;
  readonly #leastBytes: number;
  /** Keys that hold something. */
  readonly #takenBytes = new Map<number, number>();

  constructor(bytesMax: number, leastBytes: number) {
    this.#total = new ByteBudget(bytesMax);
    this.#leastBytes = leastBytes;
  }

  get taken(): number {
    return this.#total.taken;
  }

  /** Bytes of one key. */
  takenBy(keyId: number): number {
    return this.#takenBytes.get(keyId) ?? 0;
  }

  /** @returns `null`, or what refuses: then nothing is taken */
  take(keyId: number, bytes: number): KeyedRefusal | null {
    const own = this.takenBy(keyId);
    const left = this.#total.bytesMax - (this.#total.taken - own);
    if (own + bytes > left) return 'pool';
    if (own + bytes > Math.max(this.#leastBytes, left / 2)) return 'key';
    this.#total.change(bytes);
    this.#set(keyId, own + bytes);
    return null;
  }

  /** @throws {InvariantError} the key gives back more than it took */
  giveBack(keyId: number, bytes: number): void {
    const own = this.takenBy(keyId);
    if (bytes > own) throw new InvariantError(`a key gives back ${bytes} of a budget and holds ${own}`);
    this.#total.giveBack(bytes);
    this.#set(keyId, own - bytes);
  }

  /** The budget as a holder of one key sees it. */
  of(keyId: number): PartOfKey {
    return {
      take: (bytes) => this.take(keyId, bytes) === null,
      giveBack: (bytes) => this.giveBack(keyId, bytes),
    };
  }

  #set(keyId: number, bytes: number): void {
    if (bytes === 0) this.#takenBytes.delete(keyId);
    else this.#takenBytes.set(keyId, bytes);
  }
}
