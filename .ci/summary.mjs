/**
 * Prints one line for each TAP file, and the sum as the last line. A skipped test counts as a failure, because CI skips
 * nothing. So does a file that is missing or has no summary: the tests did not run to their end.
 *
 *   node .ci/summary.mjs FILE...
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

let [passed, failed] = [0, 0];
for (const path of process.argv.slice(2)) {
  const source = existsSync(path) ? readFileSync(path, 'utf8') : '';
  for (const [line] of source.matchAll(/^ *ok \d+ .*# (?:SKIP|TODO)\b.*$/gm))
    console.log(`not run: ${line.trim()}`);
  const summary = source.match(/^# \{ total: .*\}$/gm)?.at(-1) ?? '# { total: 1, fail: 1 }';
  console.log(`${basename(path)}: ${summary}`);
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0);
  passed += count('pass');
  failed +=
    count('fail') + count('skip') + count('todo') + (count('pass') === 0 && count('fail') === 0 ? 1 : 0);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
