/** Waits for what has no event. */
import { setImmediate } from 'node:timers/promises';

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/**
 * As `fetch`, which keeps connections. A decoder that a test waits for keeps the event loop busy, maybe for longer than the
 * service keeps a connection: the end of it must be read first.
 */
export const fetchAfterTurn: typeof fetch = async (...request) => {
  // The first may come before what is new is read.
  await setImmediate();
  await setImmediate();
  return fetch(...request);
};

/** Waits until a condition holds, by polling. @returns false if it does not within `ms` */
export const until = async (condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<boolean> => {
  const startMs = performance.now();
  const passedMs = (): number => performance.now() - startMs;
  while (passedMs() < ms) {
    if (await condition()) return true;
    // Less often after a long wait: many a condition is a request.
    await pause(Math.min(50, 5 + passedMs() / 20));
  }
  return condition();
};

/** @throws if the condition does not hold within `ms` */
export const eventually = async (condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> => {
  if (!(await until(condition, ms))) throw new Error(`does not hold within ${ms} ms: ${String(condition)}`);
};
