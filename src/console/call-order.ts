/**
 * Calls of the members of one account are made one after another. They wait here, and not on the administration thread,
 * where calls of operators and of other accounts would wait behind all of them. `Sessions.lookUp` has lines of its own.
 */
import type { Member } from '../byte-budget.js';
import { ConsoleRefusal } from './refusal.js';

const tooMany = (): ConsoleRefusal =>
  new ConsoleRefusal('unavailable', 'Too many of your calls wait. Try again in a moment.');

const ignore = (): void => undefined;

interface Line {
  waiting: number;
  last: Promise<void>;
}

export class CallOrder {
  readonly #waitingMax: number;
  readonly #lines = new Map<Member, Line>();

  /** @param waitingMax calls of one line that wait for the one being made */
  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /**
   * @param caller who waits in line, such as the members of an account; `null`: one whose calls are made at once
   * @param isOver the caller has gone: then the call is not made
   * @throws {ConsoleRefusal} too many wait
   */
  async run<T>(caller: Member | null, isOver: () => boolean, call: () => Promise<T>): Promise<T> {
    if (caller === null) return call();
    const line = this.#lines.get(caller) ?? { waiting: -1, last: Promise.resolve() };
    if (line.waiting >= this.#waitingMax) throw tooMany();
    line.waiting++;
    this.#lines.set(caller, line);
    const answer = line.last.then(() => {
      if (isOver()) throw tooMany();
      return call();
    });
    line.last = answer.then(ignore, ignore);
    try {
      return await answer;
    } finally {
      if (line.waiting-- === 0) this.#lines.delete(caller);
    }
  }
}
