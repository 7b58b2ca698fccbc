/**
 * Threads that hang inside native code. They cannot be ended without ending the process, and keep a core or a device
 * busy, and their memory: only some of them are replaced.
 */
export class Abandoned {
  readonly #replacedMax: number;
  readonly #threads = new Set<Promise<void>>();

  constructor(replacedMax: number) {
    this.#replacedMax = replacedMax;
  }

  /** Those that still hang. */
  get size(): number {
    return this.#threads.size;
  }

  /** More than are replaced: what made them hang will have others too. */
  get isOverBound(): boolean {
    return this.size > this.#replacedMax;
  }

  /**
   * @param ended resolves when the thread has come back, and was ended
   * @returns whether another thread may take its place
   */
  add(ended: Promise<void>): boolean {
    this.#threads.add(ended);
    void ended.then(() => this.#threads.delete(ended));
    return !this.isOverBound;
  }
}
