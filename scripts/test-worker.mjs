/**
 * Runs compiled test files in this process, one after the other: `scripts/test.mjs` writes their paths to standard input.
 *
 * To each file, tap's `t` is a test of its own, with its own timeout and teardown. So a file is written as if it had the
 * process for itself, and runs alone by `node FILE` too.
 */
import { writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import tap from 'tap';

const begin = tap.test.bind(tap);
const timeout = Number(process.env.TAP_TIMEOUT) * 1_000;
// Each file has the timeout; all together have none.
tap.setTimeout(0);

for await (const path of createInterface({ input: process.stdin })) {
  const running = begin(path, { timeout }, async (file) => {
    for (const name of ['test', 'before', 'teardown', 'testdir', 'setTimeout'])
      tap[name] = file[name].bind(file);
    Object.defineProperty(tap, 'jobs', { configurable: true, set: (jobs) => (file.jobs = jobs) });
    await import(pathToFileURL(resolve(path)).href);
  });
  await running;
  const { pass, fail } = running.subtest.counts;
  // Not to standard output, where what tap still has to write may wait.
  writeSync(3, JSON.stringify({ pass, fail }));
}
