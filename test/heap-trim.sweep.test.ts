/** Uses the C library's own heap: allocates and touches pieces, then frees every other one, as frames are freed. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import koffi from 'koffi';
import t from 'tap';
import { HeapTrim } from '../src/process.js';
import { limits } from '../src/limits.js';
import { createLog } from '../src/log.js';
import { Service } from '../scripts/rig/service.js';

const MiB = 2 ** 20;
const PIECE_BYTES = 16 * 1024;
const PIECES = 4_096;

const { header } = process.report.getReport() as {
  readonly header: { readonly glibcVersionRuntime?: string };
};
const skip = header.glibcVersionRuntime === undefined ? 'the C library is not glibc' : false;

const residentBytes = (): number =>
  1024 * Number(/^Rss:\s+(\d+) kB/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))?.[1]);

for (const [when, change] of [
  ['after a quiet time', { quietMs: 200 }],
  ['when memory has grown by more than its bound', { heapGrowthBytesMax: -PIECES * PIECE_BYTES }],
] as const)
  t.test(
    `holes in a heap go back to the system ${when}, and the memory between them stays`,
    { skip },
    async (t) => {
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
      t.ok(fullBytes - holedBytes < 8 * MiB, 'glibc keeps the holes by itself');
      const growth = { heapGrowthBytesMax: PIECES * PIECE_BYTES };
      const state = { quietMs: 199, heapTrimMs: 10, heapTrimQuietMs: 200, ...growth };
      const log = createLog('silent', limits);
      const heapTrim = await HeapTrim.start({ bounds: state, quietMs: () => state.quietMs, log });
      t.teardown(() => heapTrim.close());
      await delay(200);
      t.ok(holedBytes - residentBytes() < 8 * MiB, 'no trim while threads make speech, or did a moment ago');
      Object.assign(state, change);
      // Parts of freed pieces that are not whole pages stay.
      const trimmedBytes = holedBytes - (PIECES / 2) * PIECE_BYTES * 0.6;
      for (let i = 0; i < 200 && residentBytes() > trimmedBytes; i++) await delay(10);
      t.ok(residentBytes() <= trimmedBytes, 'a trim gives the holes back');
      for (const piece of kept) {
        const bytes = koffi.decode(piece, 'uint8_t', PIECE_BYTES) as Uint8Array;
        if (bytes.some((byte) => byte !== 7)) t.fail('a piece has changed');
        free(piece);
      }
      heapTrim.close();
      heapTrim.close();
    },
  );

/** koffi fails to load, as on a platform without a binary. */
const withoutKoffi = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve: (name, context, next) => {
      if (name === 'koffi') throw new Error('no binary for this platform');
      return next(name, context);
    },
  });
`)}`;

t.test('the service trims from its start; if it cannot, it logs that and serves', { skip }, async (t) => {
  const start = async (nodeOptions: readonly string[]) => {
    const entry = new URL('support/scripted-service.js', import.meta.url);
    const options = { entry, nodeOptions, synthesisThreads: 1, actorThreads: 1 };
    const service = new Service({ ...options, keepsLines: true });
    t.teardown(() => service.kill());
    await service.listening();
    return { service, warnings: service.lines.filter((line) => line.includes('not trimmed')) };
  };
  const [trims, cannot] = await Promise.all([start([]), start(['--import', withoutKoffi])]);
  t.same(trims.warnings, []);
  t.match(readFileSync(`/proc/${String(trims.service.pid)}/maps`, 'utf8'), /koffi\.node/);
  t.match(cannot.warnings, [/no binary for this platform/]);
  t.same(await cannot.service.stop(), { code: 0, signal: null });
});
