/**
 * A lock between processes on one file system: a file that its holder touches while it works. A holder that died
 * stops touching, so nothing has to be cleaned up by hand, and process ids of other containers do not matter.
 */
import { closeSync, linkSync, openSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const touchMs = 500;
const deadAfterMs = 5_000;
const pollMs = 100;

const create = (path) => {
  try {
    closeSync(openSync(path, 'wx'));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
};

const ageMs = (path) => {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch (error) {
    // Given back in this moment: the next attempt to create it decides.
    if (error.code === 'ENOENT') return 0;
    throw error;
  }
};

const ignoring = (codes, action) => {
  try {
    action();
  } catch (error) {
    if (!codes.includes(error.code)) throw error;
  }
};

/** Of several waiters that see the same dead lock, one wins the rename; the others go on waiting. */
const bury = (path) => {
  const grave = `${path}.${process.pid}`;
  ignoring(['ENOENT'], () => {
    renameSync(path, grave);
    // Another waiter was quicker, and this is its new lock: put it back.
    if (ageMs(grave) <= deadAfterMs) ignoring(['EEXIST'], () => linkSync(grave, path));
    rmSync(grave, { force: true });
  });
};

/**
 * @param {string} path of the lock's file, in an existing folder
 * @returns {Promise<() => void>} gives the lock back; also done when the process exits
 */
export const takeLock = async (path) => {
  while (!create(path)) {
    if (ageMs(path) > deadAfterMs) bury(path);
    else await sleep(pollMs);
  }
  const touch = setInterval(() => {
    const now = new Date();
    // Gone when this process slept so long (a suspended machine) that it was taken for dead.
    ignoring(['ENOENT'], () => utimesSync(path, now, now));
  }, touchMs);
  const release = () => {
    clearInterval(touch);
    process.off('exit', release);
    rmSync(path, { force: true });
  };
  process.once('exit', release);
  return release;
};
