/** Says in one last line what a TAP file reports. What was skipped counts as failed: here nothing may be. */
import { existsSync, readFileSync } from 'node:fs';

// Without a file the tests did not even begin: the build failed.
const path = process.argv[2];
const source = existsSync(path) ? readFileSync(path, 'utf8') : '';
for (const [line] of source.matchAll(/^ *ok \d+ .*# (?:SKIP|TODO)\b.*$/gm))
  console.log(`not run: ${line.trim()}`);
const summary = source.match(/^# \{ total: .*\}$/gm)?.at(-1) ?? '# { total: 1, fail: 1 }';
console.log(summary);
const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0);
const failed = count('fail') + count('skip') + count('todo');
console.log(`${count('pass')} passed, ${failed} failed`);
process.exitCode = failed > 0 || count('pass') === 0 ? 1 : 0;
