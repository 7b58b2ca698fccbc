/** Milliseconds on one clock that all threads of the process share (`performance.now` starts anew in each thread). */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A source of monotonic milliseconds: the real one, or a fake in tests. */
export type Clock = () => number;
