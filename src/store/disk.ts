/** Room on a disk. */
import type { StatsFs } from 'node:fs';

/** Bytes that this user may write; unbounded where a file system reports no size. */
export const freeBytesOf = ({ blocks, bfree, bavail, bsize }: StatsFs): number => {
  if (blocks === 0) return Number.POSITIVE_INFINITY;
  // A part of the free blocks is reserved for root.
  return (process.getuid?.() === 0 ? bfree : bavail) * bsize;
};
