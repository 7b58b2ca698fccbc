/** Room on a disk. */
import { statfs } from 'node:fs/promises';

const MiB = 1024 * 1024;
/** What must stay free on the disk, which has the store too. */
const bytesFreeMin = 64 * MiB;

/** @throws unless there is room for so many bytes more */
export const checkRoom = async (folder: string, bytes: number): Promise<void> => {
  const { bavail, bsize } = await statfs(folder);
  const needed = bytes + bytesFreeMin;
  if (bavail * bsize < needed)
    throw new Error(`the disk of ${folder} has less than ${Math.ceil(needed / MiB)} MiB of room: free some`);
};
