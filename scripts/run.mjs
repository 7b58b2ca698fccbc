/**
 * Builds when stale, then runs a compiled entry point in this same process, so that signals reach it directly:
 *
 *   node scripts/run.mjs src/main.js [arguments]
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildOrExit, root } from './build.mjs';

const [entry, ...rest] = process.argv.slice(2);
if (entry === undefined) {
  process.stderr.write('Usage: node scripts/run.mjs ENTRY [arguments]\n');
  process.exit(2);
}
await buildOrExit({ ifStale: true });
// onnxruntime reports to its makers otherwise; benchmarks load it without src/main.js.
process.env.ORT_DISABLE_TELEMETRY = '1';
const path = join(root, 'dist', entry);
process.argv = [process.argv[0], path, ...rest];
await import(pathToFileURL(path).href);
