/**
 * Runs compiled test files in this process, one after the other: `scripts/test.mjs` writes their paths to standard input.
 *
 * To each file, tap's `t` is a test of its own, with its own timeout and teardown. So a file is written as if it had the
 * process for itself, and runs alone by `node FILE` too.
 */
import { readFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { syncBuiltinESMExports } from 'node:module';
import asyncHooks from 'node:async_hooks';

// tap follows every promise, to blame the right test for an error that nothing catches. That takes a tenth of the CPU
// time, and more for the garbage. Here such an error ends the process, and the runner reports the file.
asyncHooks.createHook = () => ({ enable: () => undefined, disable: () => undefined });
syncBuiltinESMExports();
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error) => {
    // A test that waits for such an error has a listener of its own.
    if (process.listenerCount(event) > 1) return;
    console.error(error);
    process.exit(1);
  });
const { default: tap } = await import('tap');

const begin = tap.test.bind(tap);
const timeout = Number(process.env.TAP_TIMEOUT) * 1_000;
// Each file has the timeout; all together have none.
tap.setTimeout(0);

/** @returns {number} CPU seconds of this process; on Linux also of its children that have ended, in ticks of 10 ms */
const cpuSeconds = () => {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
};

// tap writes each assertion by itself, and each write waits for the reader.
const writeMs = 100;
process.stdout.cork();
const write = () => {
  process.stdout.uncork();
  process.stdout.cork();
};
setInterval(write, writeMs).unref();
process.on('exit', write);

for await (const path of createInterface({ input: process.stdin })) {
  const before = cpuSeconds();
  const running = begin(path, { timeout }, async (file) => {
    for (const name of ['test', 'before', 'teardown', 'testdir', 'setTimeout'])
      tap[name] = file[name].bind(file);
    Object.defineProperty(tap, 'jobs', { configurable: true, set: (jobs) => (file.jobs = jobs) });
    await import(pathToFileURL(resolve(path)).href);
  });
  await running;
  write();
  const { pass, fail } = running.subtest.counts;
  // Not to standard output, where what tap still has to write may wait.
  writeSync(3, JSON.stringify({ pass, fail, cpuSeconds: cpuSeconds() - before }));
}
