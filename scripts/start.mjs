/**
 * `npm start`: builds when stale, then becomes the service. The service replaces this process instead of being its child:
 * signals, exit code and process id are the service's own.
 */
import { join } from 'node:path';
import { buildOrExit, root } from './build.mjs';

/** The C library reads them before a program begins. ARCHITECTURE.md has the reasons, under Bounds. */
const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072' };

if (process.execve === undefined) {
  process.stderr.write('Start the service with `npm start`, which uses the runtime in node_modules.\n');
  process.exit(1);
}
await buildOrExit({ ifStale: true });
const env = { ...process.env };
for (const [name, value] of Object.entries(allocator)) env[name] ||= value;
const options = [...process.execArgv, '--disable-warning=ExperimentalWarning'];
const main = join(root, 'dist', 'src', 'main.js');
process.execve(process.execPath, [process.execPath, ...options, main, ...process.argv.slice(2)], env);
