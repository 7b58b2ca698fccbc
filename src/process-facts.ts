/** What the operating system and the runtime say of this process. */
import { readdir, readFile } from 'node:fs/promises';
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';

/** How long what is read from /proc counts as the present. */
const KEPT_MS = 2_000;
/** The kernel walks all of the process's pages for it. */
const MEMORY_KEPT_MS = 10_000;

/** Asked for more often than `keptMs`, or again before it has come, a value is shared. */
const shared = <T>(keptMs: number, read: () => Promise<T>): (() => Promise<T>) => {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    const atMs = performance.now();
    if (last === undefined || atMs - last.atMs >= keptMs) last = { atMs, value: read() };
    return last.value;
  };
};

/** Proportional set size: pages that several processes map count in part. Where the system has none, what is resident. */
export const pssBytes = shared(MEMORY_KEPT_MS, async (): Promise<number> => {
  const rollup = await readFile('/proc/self/smaps_rollup', 'utf8').catch(() => '');
  const kiB = /^Pss:\s+(\d+) kB/m.exec(rollup)?.[1];
  return kiB === undefined ? process.memoryUsage.rss() : Number(kiB) * 1024;
});

/** File descriptors that are open; `null` where the system does not say. */
export const openFiles = shared(KEPT_MS, async (): Promise<number | null> => {
  const names = await readdir('/proc/self/fd').catch(() => null);
  // One is of the reading itself.
  return names === null ? null : names.length - 1;
});

/** File descriptors that may be open; `null` where the system does not say, or does not care. */
export const openFilesMax = shared(KEPT_MS, async (): Promise<number | null> => {
  const table = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const most = /^Max open files\s+(\d+)/m.exec(table)?.[1];
  return most === undefined ? null : Number(most);
});

const SAMPLE_MS = 10;
const HALF_WINDOW_MS = 30_000;

/**
 * How late the event loop of this thread turned, over a window of the last 30 to 60 seconds that moves by itself:
 * whoever asks resets nothing, so that several can.
 */
export class EventLoopDelay {
  /** The one that is asked covers up to two halves of the window, the other what will be asked next. */
  #asked: IntervalHistogram;
  #next: IntervalHistogram;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#asked = monitorEventLoopDelay({ resolution: SAMPLE_MS });
    this.#next = monitorEventLoopDelay({ resolution: SAMPLE_MS });
    this.#asked.enable();
    this.#next.enable();
    this.#timer = setInterval(() => this.#turn(), HALF_WINDOW_MS).unref();
  }

  /** @param quantile above 0, at most 1 */
  seconds(quantile: number): number {
    if (this.#asked.count === 0) return 0;
    // What is recorded is the time from sample to sample.
    return Math.max(0, this.#asked.percentile(quantile * 100) / 1e6 - SAMPLE_MS) / 1000;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#asked.disable();
    this.#next.disable();
  }

  #turn(): void {
    const done = this.#asked;
    done.reset();
    this.#asked = this.#next;
    this.#next = done;
  }
}
