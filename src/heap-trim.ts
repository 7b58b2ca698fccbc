/**
 * Gives pages of freed buffers back to the system. Frames and results are buffers of 4 to 128 KiB that come and go among
 * others that stay, and glibc by itself gives back no more than what is free at the end of a heap: its holes stay
 * resident, and become more from day to day.
 */
import type { Log } from './log.js';

/**
 * @returns glibc's `malloc_trim(0)`: all heaps, also those of other threads, which wait when they allocate meanwhile
 * @throws {Error} where there is no binary of koffi for the platform, or the C library has no such function
 */
const loadTrim = async (): Promise<() => void> => {
  const { default: koffi } = await import('koffi');
  const trim = koffi.load(null).func('int malloc_trim(size_t pad)') as (pad: number) => number;
  return () => void trim(0);
};

export class HeapTrim {
  #timer: NodeJS.Timeout | undefined;

  /** Trims from the first period on. Never rejects: where it cannot, the service runs as well, and that is told. */
  static async start(periodMs: number, log: Log): Promise<HeapTrim> {
    const heapTrim = new HeapTrim();
    // Elsewhere the C library is another.
    if (process.platform !== 'linux') return heapTrim;
    try {
      heapTrim.#timer = setInterval(await loadTrim(), periodMs).unref();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ reason }, 'heaps of the C library are not trimmed');
    }
    return heapTrim;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }
}
