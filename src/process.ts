/**
 * This process and its machine as the operating system and the runtime see them: memory, open files, idle CPU time, delay
 * of the event loop.
 */
import { readdir, readFile } from 'node:fs/promises';
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Bounds } from './limits.js';
import type { Log } from './log.js';

/** A value from /proc counts as current for this long. */
const KEPT_MS = 2_000;
/** Longer, because the kernel walks all pages of the process for it. */
const MEMORY_KEPT_MS = 10_000;

/** Callers within `keptMs`, or while a read is pending, share one value. */
const shared = <T>(keptMs: number, read: () => Promise<T>): (() => Promise<T>) => {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    const atMs = performance.now();
    if (last === undefined || atMs - last.atMs >= keptMs) last = { atMs, value: read() };
    return last.value;
  };
};

/** Resident memory; `null` while no more files can be opened: the system has it in a file. */
export const residentBytes = (): number | null => {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
};

/** Heap in use by this thread. `process.memoryUsage` would open a file, too. */
export const heapBytes = (): number => getHeapStatistics().used_heap_size;

/** Proportional set size: pages that several processes map count in part. Resident bytes where the system has none. */
export const pssBytes = shared(MEMORY_KEPT_MS, async (): Promise<number | null> => {
  const rollup = await readFile('/proc/self/smaps_rollup', 'utf8').catch(() => '');
  const kiB = /^Pss:\s+(\d+) kB/m.exec(rollup)?.[1];
  return kiB === undefined ? residentBytes() : Number(kiB) * 1024;
});

/** Open file descriptors; `null` where the system does not say. */
export const openFiles = shared(KEPT_MS, async (): Promise<number | null> => {
  const names = await readdir('/proc/self/fd').catch(() => null);
  // The read itself holds one.
  return names === null ? null : names.length - 1;
});

/** Limit of open file descriptors; `null` where the system does not say, or has none. */
export const openFilesMax = shared(KEPT_MS, async (): Promise<number | null> => {
  const table = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const max = /^Max open files\s+(\d+)/m.exec(table)?.[1];
  return max === undefined ? null : Number(max);
});

/** The kernel counts in hundredths of a second. */
const TICK_MS = 10;

/**
 * @returns milliseconds, over all cores, in which nothing ran; `null` where the system does not say
 */
export const idleCpuMs = async (): Promise<number | null> => {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const fields = /^cpu +\d+ \d+ \d+ (\d+) (\d+)/.exec(stat);
  if (fields === null) return null;
  const [, idle, waiting] = fields;
  return TICK_MS * (Number(idle) + Number(waiting));
};

const SAMPLE_MS = 10;
const HALF_WINDOW_MS = 30_000;

/**
 * Delay of this thread's event loop over a moving window of the last 30 to 60 seconds. Reading resets nothing, so there
 * can be several readers.
 */
export class EventLoopDelay {
  /** The current histogram covers up to two halves of the window; the next one covers the newest half. */
  #current: IntervalHistogram;
  #next: IntervalHistogram;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#current = monitorEventLoopDelay({ resolution: SAMPLE_MS });
    this.#next = monitorEventLoopDelay({ resolution: SAMPLE_MS });
    this.#current.enable();
    this.#next.enable();
    this.#timer = setInterval(() => {
      this.#current.reset();
      [this.#current, this.#next] = [this.#next, this.#current];
    }, HALF_WINDOW_MS).unref();
  }

  /** @param quantile above 0, at most 1 */
  seconds(quantile: number): number {
    if (this.#current.count === 0) return 0;
    // The histogram records the time from sample to sample.
    return Math.max(0, this.#current.percentile(quantile * 100) / 1e6 - SAMPLE_MS) / 1000;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#current.disable();
    this.#next.disable();
  }
}

type Trim = (pad: number, onDone: (error: Error | null) => void) => void;

/**
 * @returns glibc's `malloc_trim`, on a thread of the runtime. It trims one heap after the other, and a thread that needs
 * memory of that heap meanwhile waits
 * @throws {Error} if koffi has no binary for the platform, or the C library has no such function
 */
const loadTrim = async (): Promise<Trim> => {
  const { default: koffi } = await import('koffi');
  return koffi.load(null).func('int malloc_trim(size_t pad)').async as Trim;
};

export interface HeapTrimParts {
  readonly bounds: Pick<Bounds, 'heapTrimMs' | 'heapTrimQuietMs' | 'heapGrowthBytesMax'>;
  /** How long no thread has made speech. */
  readonly quietMs: () => number;
  readonly log: Log;
}

/**
 * Gives pages of freed buffers back to the system. Frames and results are buffers of 4 to 128 KiB that come and go among
 * buffers that stay. By itself glibc returns only what is free at the end of a heap: the holes stay resident, and grow
 * from day to day.
 *
 * A trim stops the threads that allocate, longer the more it gives back. So it waits until no thread has made speech for a
 * while, unless memory has grown meanwhile. A single moment without speech shows nothing: 48 listeners have several of them
 * in a second.
 */
export class HeapTrim {
  readonly #parts: HeapTrimParts;
  #timer: NodeJS.Timeout | undefined;
  #isTrimming = false;
  /** Resident memory after the last trim, and the least since. */
  #leftBytes = process.memoryUsage.rss();

  private constructor(parts: HeapTrimParts) {
    this.#parts = parts;
  }

  /** The first check is after one period. Never rejects: without trims the service works too, and the log says so. */
  static async start(parts: HeapTrimParts): Promise<HeapTrim> {
    const heapTrim = new HeapTrim(parts);
    // Other systems have another C library.
    if (process.platform !== 'linux') return heapTrim;
    try {
      const trim = await loadTrim();
      heapTrim.#timer = setInterval(() => heapTrim.#check(trim), parts.bounds.heapTrimMs).unref();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      parts.log.warn({ reason }, 'heaps of the C library are not trimmed');
    }
    return heapTrim;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }

  #check(trim: Trim): void {
    const { bounds, quietMs } = this.#parts;
    const bytes = residentBytes();
    if (bytes === null) return;
    // What a reload ends gives memory back without a trim.
    this.#leftBytes = Math.min(this.#leftBytes, bytes);
    const grownBytes = bytes - this.#leftBytes;
    const isQuiet = quietMs() >= bounds.heapTrimQuietMs;
    if (this.#isTrimming || (!isQuiet && grownBytes <= bounds.heapGrowthBytesMax)) return;
    this.#isTrimming = true;
    trim(0, () => {
      this.#isTrimming = false;
      this.#leftBytes = residentBytes() ?? this.#leftBytes;
    });
  }
}
