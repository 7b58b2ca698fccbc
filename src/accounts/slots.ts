/** Concurrency slots, counted by key. In memory: what is in flight dies with the process. */
export class Slots {
  readonly #perKeyMax: number;
  readonly #taken = new Map<number, number>();

  constructor(perKeyMax: number) {
    this.#perKeyMax = perKeyMax;
  }

  /** @returns false when the key has none left */
  take(keyId: number): boolean {
    const taken = this.#taken.get(keyId) ?? 0;
    if (taken >= this.#perKeyMax) return false;
    this.#taken.set(keyId, taken + 1);
    return true;
  }

  /** Gives back one that was taken. */
  give(keyId: number): void {
    const taken = this.#taken.get(keyId);
    if (taken === undefined) throw new Error('a slot was given back that was not taken');
    if (taken === 1) this.#taken.delete(keyId);
    else this.#taken.set(keyId, taken - 1);
  }

  /** Taken over all keys. */
  get taken(): number {
    let sum = 0;
    for (const taken of this.#taken.values()) sum += taken;
    return sum;
  }
}
