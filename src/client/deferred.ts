/** A promise that is settled from outside, and whose rejection is nobody's fault when nobody asked for it. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  #resolve!: (value: T) => void;
  #reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Node ends a process over a rejection that nobody handles; the same error reaches who reads the context.
    this.promise.catch(() => undefined);
  }

  resolve(value: T): void {
    this.#resolve(value);
  }

  reject(error: Error): void {
    this.#reject(error);
  }
}
