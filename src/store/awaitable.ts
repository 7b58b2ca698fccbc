/** A result that an embedded store has at once, and another store later. */
export type Awaitable<T> = T | Promise<T>;
