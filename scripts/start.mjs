/**
 * `npm start`: builds when stale, then becomes the service. The service replaces this process instead of being its child:
 * signals, exit code and process id are the service's own.
 */
import { join } from 'node:path';
import { buildOrExit, root } from './build.mjs';

if (process.execve === undefined) {
  process.stderr.write('Start the service with `npm start`, which uses the runtime in node_modules.\n');
  process.exit(1);
}
await buildOrExit({ ifStale: true });
process.execve('/bin/sh', ['sh', join(root, 'scripts', 'syrinx'), ...process.argv.slice(2)], process.env);
