/**
 * Runs what was scheduled once the event loop's poll phase is over. Senders write from here: never inside a callback
 * of the library, where another socket may be corked, and with all frames of one batch of mail already queued.
 */
export interface Runnable {
  /** Must not throw. */
  run(): void;
}

export class Turn {
  #due: Runnable[] = [];
  #scheduled = false;
  readonly #runAll = (): void => {
    this.#scheduled = false;
    const due = this.#due;
    this.#due = [];
    for (const runnable of due) runnable.run();
  };

  /** The caller sees to it that it is scheduled once at a time. */
  schedule(runnable: Runnable): void {
    this.#due.push(runnable);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#runAll);
  }
}
