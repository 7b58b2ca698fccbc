/** Passwords: Argon2id, one at a time, so that sign-ins take neither memory nor CPU from listeners. */
import { randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import { AdministrationError } from '../store/store.js';

/** OWASP's recommendation: 19 MiB and about 30 ms for each hash. They are part of the hash, so they can be raised. */
export const passwordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Keyboards compose letters in different ways. */
const asTyped = (password: string): string => password.normalize('NFC');

export class Passwords {
  readonly #waitingMax: number;
  #waiting = 0;
  #previous: Promise<unknown> = Promise.resolve();
  /** Of no password: checking one against it takes as long as against a user's. */
  #decoy: Promise<string> | undefined;

  /** @param waitingMax hashes that may wait for the one being made */
  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** @returns the hash with its parameters. @throws {AdministrationError} too many wait */
  hash(password: string): Promise<string> {
    return this.#inTurn(this.#waitingMax, () => hash(asTyped(password), passwordCost));
  }

  /**
   * @param stored the hash; `null` if there is no such user
   * @param isStranger anybody may be asking: half of the places are left to others
   * @throws {AdministrationError} too many wait
   */
  verify(stored: string | null, password: string, isStranger: boolean): Promise<boolean> {
    return this.#inTurn(isStranger ? this.#waitingMax / 2 : this.#waitingMax, async () => {
      this.#decoy ??= hash(randomBytes(32), passwordCost);
      const decoy = await this.#decoy;
      const isRight = await verify(stored ?? decoy, asTyped(password));
      return isRight && stored !== null;
    });
  }

  async #inTurn<T>(waitingMax: number, work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= waitingMax)
      throw new AdministrationError('Too many sign-ins at once: try again in a moment', 'unavailable');
    this.#waiting += 1;
    const done = this.#previous.then(work);
    this.#previous = done.catch(() => undefined);
    try {
      return await done;
    } finally {
      this.#waiting -= 1;
    }
  }
}
