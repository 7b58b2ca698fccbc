/**
 * Loaded before a program (`node --import`): ends it by SIGKILL before its file operation number KILL_AT. SQLite's own
 * operations do not count.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const killAt = Number(process.env['KILL_AT']);
let acts = 0;

const before = (): void => {
  if (acts === killAt) process.kill(process.pid, 'SIGKILL');
  acts += 1;
};

const files = fs as unknown as Record<string, (...parameters: unknown[]) => unknown>;
for (const name of [
  'openSync',
  'writeSync',
  'fsyncSync',
  'renameSync',
  'linkSync',
  'rmSync',
  'copyFileSync',
]) {
  const act = files[name];
  if (act === undefined) throw new Error(`there is no fs.${name}`);
  files[name] = (...parameters) => {
    // A file that is opened for reading does not change.
    if (name !== 'openSync' || parameters[1] !== 'r') before();
    return act(...parameters);
  };
}
syncBuiltinESMExports();
