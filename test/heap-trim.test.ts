/** With the C library's own heap: pieces are taken, touched, and every other one is freed, as frames are. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import koffi from 'koffi';
import t from 'tap';
import { HeapTrim } from '../src/heap-trim.js';
import { limits } from '../src/limits.js';
import { createLog } from '../src/log.js';
import { ServiceProcess } from '../scripts/rig/service-process.js';

const MiB = 2 ** 20;
const PIECE_BYTES = 16 * 1024;
const PIECES = 4_096;

const { header } = process.report.getReport() as {
  readonly header: { readonly glibcVersionRuntime?: string };
};
const skip = header.glibcVersionRuntime === undefined ? 'the C library is not glibc' : false;

const residentBytes = (): number =>
  1024 * Number(/^Rss:\s+(\d+) kB/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))?.[1]);

t.test('holes in a heap go back to the system, and what lies between them stays', { skip }, async (t) => {
  const libc = koffi.load(null);
  const take = libc.func('void *malloc(size_t size)') as (bytes: number) => bigint;
  const touch = libc.func('void *memset(void *piece, int byte, size_t size)') as (
    piece: bigint,
    byte: number,
    bytes: number,
  ) => bigint;
  const free = libc.func('void free(void *piece)') as (piece: bigint) => void;
  const pieces = Array.from({ length: PIECES }, () => take(PIECE_BYTES));
  for (const piece of pieces) touch(piece, 7, PIECE_BYTES);
  const fullBytes = residentBytes();
  const holes = pieces.filter((_, index) => index % 2 === 0);
  const kept = pieces.filter((_, index) => index % 2 === 1);
  for (const piece of holes) free(piece);
  const holedBytes = residentBytes();
  t.ok(fullBytes - holedBytes < 8 * MiB, 'glibc keeps them by itself');
  const heapTrim = await HeapTrim.start(10, createLog('silent', limits));
  t.teardown(() => heapTrim.close());
  // Of each piece freed, what is not whole pages stays.
  const trimmedBytes = holedBytes - (PIECES / 2) * PIECE_BYTES * 0.6;
  for (let i = 0; i < 200 && residentBytes() > trimmedBytes; i++) await delay(10);
  t.ok(residentBytes() <= trimmedBytes, 'they are given back');
  for (const piece of kept) {
    const bytes = koffi.decode(piece, 'uint8_t', PIECE_BYTES) as Uint8Array;
    if (bytes.some((byte) => byte !== 7)) t.fail('a piece has changed');
    free(piece);
  }
  heapTrim.close();
  heapTrim.close();
});

/** As on a platform that it has no binary for. */
const withoutKoffi = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve: (name, context, next) => {
      if (name === 'koffi') throw new Error('no binary for this platform');
      return next(name, context);
    },
  });
`)}`;

t.test('the service trims from its start on; where it cannot, it says so and serves', { skip }, async (t) => {
  const start = async (nodeOptions: readonly string[]) => {
    const lines: string[] = [];
    const service = new ServiceProcess({ nodeOptions, onLine: (line) => lines.push(line) });
    t.teardown(() => service.end('SIGKILL'));
    await service.listening();
    return { service, told: lines.filter((line) => line.includes('not trimmed')) };
  };
  const [trims, cannot] = await Promise.all([start([]), start(['--import', withoutKoffi])]);
  t.same(trims.told, []);
  t.match(readFileSync(`/proc/${String(trims.service.pid)}/maps`, 'utf8'), /koffi\.node/);
  t.match(cannot.told, [/no binary for this platform/]);
  t.same(await cannot.service.end('SIGTERM'), { code: 0, signal: null });
});
