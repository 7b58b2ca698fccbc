/**
 * Preloaded into a service (`--import`), it measures how long the front thread stops: a timer that is due every
 * millisecond, and how late it is. On few cores a thread is also late because others have the cores. Linux counts that
 * time, and the probe reports both.
 *
 * It answers each connection to the socket named by PAUSE_PROBE with the longest pauses since the last connection. A connection
 * to the other socket trims the heaps, and ends with the trim.
 */
import { openSync, readSync } from 'node:fs';
import { createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';
import koffi from 'koffi';

export interface Pauses {
  /** The longest, whatever its cause. */
  readonly wallMs: number;
  /** The longest without the time in which the thread could run and had no core; `null` where it is not counted. */
  readonly ownMs: number | null;
}

export const trimPathOf = (path: string): string => `${path}.trim`;

const periodMs = 1;
const nsPerMs = 1e6;

/** Milliseconds that this thread was ready and had no core; `null` where the system does not count them. */
const readWaits = (): (() => number) | null => {
  try {
    const file = openSync('/proc/thread-self/schedstat', 'r');
    const bytes = Buffer.alloc(128);
    return () => {
      const length = readSync(file, bytes, 0, bytes.length, 0);
      return Number(bytes.toString('latin1', 0, length).split(' ')[1]) / nsPerMs;
    };
  } catch {
    return null;
  }
};

const path = process.env['PAUSE_PROBE'];
if (isMainThread && path !== undefined) {
  const waits = readWaits();
  let longest = { wallMs: 0, ownMs: 0 };
  let lastMs = performance.now();
  let lastWaitsMs = waits?.() ?? 0;
  setInterval(() => {
    const nowMs = performance.now();
    const waitsMs = waits?.() ?? 0;
    const wallMs = Math.max(0, nowMs - lastMs - periodMs);
    const ownMs = Math.max(0, wallMs - (waitsMs - lastWaitsMs));
    longest = { wallMs: Math.max(longest.wallMs, wallMs), ownMs: Math.max(longest.ownMs, ownMs) };
    lastMs = nowMs;
    lastWaitsMs = waitsMs;
  }, periodMs).unref();
  createServer((socket) => {
    const pauses: Pauses = { wallMs: longest.wallMs, ownMs: waits === null ? null : longest.ownMs };
    longest = { wallMs: 0, ownMs: 0 };
    socket.on('error', () => undefined);
    socket.end(JSON.stringify(pauses));
  })
    .listen(path)
    .unref();
  createServer((socket) => {
    socket.on('error', () => undefined);
    const trim = koffi.load(null).func('int malloc_trim(size_t pad)');
    trim.async(0, (error: Error | null) => socket.end(String(error)));
  })
    .listen(trimPathOf(path))
    .unref();
}
