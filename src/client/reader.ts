/** A loop over what arrives, by hand: a generator could not be left while it waits for the next thing. */

/** What a reader reads from. */
export interface Source<T> {
  /** @returns the next thing, or `undefined` when there is none now */
  take(): T | undefined;
  isEnded(): boolean;
  /** Why it ended, when not by itself. */
  error(): Error | undefined;
}

interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: Error) => void;
}

const done = { done: true, value: undefined } as const;

export class Reader<T> implements AsyncIterableIterator<T, undefined> {
  readonly #source: Source<T>;
  readonly #onLeft: () => void;
  readonly #waiting: Waiting<T>[] = [];
  #hasLeft = false;

  /** @param onLeft called once: at the end, or when the loop is left before */
  constructor(source: Source<T>, onLeft: () => void) {
    this.#source = source;
    this.#onLeft = onLeft;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const result = new Promise<IteratorResult<T, undefined>>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
    this.serve();
    return result;
  }

  /** Leaves the loop, also while it waits. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.#leave();
    return Promise.resolve(done);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** For the source: something is there to be taken, or it has ended. */
  serve(): void {
    while (this.#waiting.length > 0) {
      const value = this.#hasLeft ? undefined : this.#source.take();
      if (value !== undefined) this.#waiting.shift()?.resolve({ done: false, value });
      else if (this.#hasLeft || this.#source.isEnded()) {
        const error = this.#source.error();
        // The error once, then the end.
        if (!this.#hasLeft && error !== undefined) this.#waiting.shift()?.reject(error);
        this.#leave();
        return;
      } else return;
    }
  }

  #leave(): void {
    const isFirst = !this.#hasLeft;
    this.#hasLeft = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve(done);
    if (isFirst) this.#onLeft();
  }
}
