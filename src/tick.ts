/**
 * Collects what is added within one tick of the event loop and hands it over once, after the tick's input was read.
 * A microtask would be too early: it runs after each message of a port, so under load every batch would hold one item.
 */
export class TickBatch<T> {
  #items: T[] = [];
  #isScheduled = false;
  readonly #send: (items: T[]) => void;

  /** @param send must not throw; what it adds goes into the next batch */
  constructor(send: (items: T[]) => void) {
    this.#send = send;
  }

  add(item: T): void {
    this.#items.push(item);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  /** Hands over now what was added so far. */
  flush(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.#send(items);
  }
}

/**
 * Runs actions at the end of the tick in which they are added. Senders write from here: never inside a callback of the
 * server library, where another socket may be corked, and with all frames of one batch of mail already queued.
 */
export type TickActions = Pick<TickBatch<() => void>, 'add'>;

/** Actions must not throw. */
export const createTickActions = (): TickActions =>
  new TickBatch<() => void>((actions) => {
    for (const act of actions) act();
  });
