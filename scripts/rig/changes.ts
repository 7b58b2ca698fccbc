/** What has changed on a connection or in a process, for code that waits until something holds. */
export class Changes {
  #waiting: (() => void)[] = [];

  /** All that wait look again. */
  notify(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Resolves at the next change. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when the condition holds. Looks now, and after each change. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.next();
  }
}
