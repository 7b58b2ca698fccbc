/** Timers, as the client uses them: real ones, or those of a test. */
export interface Clock {
  /** Calls `action` once, `ms` from now. @returns a function that prevents it */
  after(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};
