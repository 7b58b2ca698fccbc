/** Milliseconds on a clock that all threads share (`performance.now` starts at 0 in each thread). */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A source of monotonic milliseconds: the real clock, or a fake one in tests. */
export type Clock = () => number;
