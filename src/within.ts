/** Waiting with a time limit. */

/** @returns true if the event came in time */
export const within = async (ms: number, event: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const inTime = await Promise.race([event.then(() => true), timeout]);
  clearTimeout(timer);
  return inTime;
};
