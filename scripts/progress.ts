/** A bar on a terminal, where standard error is one. */
import { SingleBar } from 'cli-progress';

export interface Progress {
  readonly add: (count: number) => void;
  /** Idempotent. */
  readonly stop: () => void;
}

/** @param format with the names of cli-progress */
export const createProgress = (format: string, total: number): Progress => {
  if (!process.stderr.isTTY) return { add: () => undefined, stop: () => undefined };
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true, clearOnComplete: true });
  bar.start(total, 0);
  return {
    add: (count) => bar.increment(count),
    stop: () => {
      if (bar.isActive) bar.stop();
    },
  };
};
