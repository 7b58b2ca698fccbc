/**
 * A lock between processes on one file system: a file that its holder touches regularly. A dead holder stops, so
 * no cleanup is needed, and process ids of other containers do not matter.
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
    // Released just now: the next attempt to create it decides.
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

/** Removes a dead lock. Of several waiters one wins the rename; the others continue to wait. */
const bury = (path) => {
  const grave = `${path}.${process.pid}`;
  ignoring(['ENOENT'], () => {
    renameSync(path, grave);
    // This is the new lock of a quicker waiter: put it back.
    if (ageMs(grave) <= deadAfterMs) ignoring(['EEXIST'], () => linkSync(grave, path));
    rmSync(grave, { force: true });
  });
};

/**
 * @param {string} path of the lock's file, in an existing folder
 * @returns {Promise<() => void>} releases the lock, as the exit of the process does
 */
export const takeLock = async (path) => {
  while (!create(path)) {
    if (ageMs(path) > deadAfterMs) bury(path);
    else await sleep(pollMs);
  }
  const touch = setInterval(() => {
    const now = new Date();
    // The file is gone if this process slept so long (a suspended machine) that it seemed dead.
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
