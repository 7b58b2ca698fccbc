/** Waits for what has no event. */

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Waits until a condition holds, by polling. @returns false if it does not within `ms` */
export const until = async (condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<boolean> => {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (await condition()) return true;
    await pause(5);
  }
  return condition();
};

/** @throws if the condition does not hold within `ms` */
export const eventually = async (condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> => {
  if (!(await until(condition, ms))) throw new Error(`does not hold within ${ms} ms: ${String(condition)}`);
};
