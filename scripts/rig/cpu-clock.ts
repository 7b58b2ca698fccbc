/** CPU time: other work of the machine changes it little. */

/** Milliseconds of CPU time that this process has used so far. */
export const cpuTimeMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** What a thread of a bare loop reports when it is stopped. */
export interface BareWork {
  /** Milliseconds of speech. */
  readonly audioMs: number;
  readonly cpuMs: number;
}

/** @returns what the loop made, and what it cost the calling thread */
export const withCpuTime = async (loop: () => Promise<number>): Promise<BareWork> => {
  const before = process.threadCpuUsage();
  const audioMs = await loop();
  const { user, system } = process.threadCpuUsage(before);
  return { audioMs, cpuMs: (user + system) / 1000 };
};
