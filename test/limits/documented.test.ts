/** scripts/deploy/limits.md lists every bound with its value, and who can fill it. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { fillers, listOf, pagePath, pageWith } from '../../scripts/limits.js';
import { limits } from '../../src/limits.js';
import { filesIn, readSource } from '../support/source-files.js';

const page = readFileSync(pagePath, 'utf8');
const list = listOf(readSource('src/limits.ts'));

t.test('the page has the list that limits.ts makes: else run `npm run limits`', (t) => {
  t.ok(page === pageWith(page, list));
  const listed = [...list.matchAll(/`(\w+)`(?:\\\*)? \(/g)].map(([, name]) => name);
  t.strictSame(listed.sort(), Object.keys(limits).sort(), 'each bound once');
  t.end();
});

t.test('the page says of every bound who can fill it', (t) => {
  const named = Object.values(fillers).flatMap((filled) => filled.split(/\s+/));
  t.strictSame(named.toSorted(), [...new Set(named)].sort(), 'each once');
  // Callers fill no bounds that are times, but for those of the front thread.
  const ofThread = /^(?:parse|handshake|discovery)Ms/;
  const bounds = Object.keys(limits).filter((name) => !name.includes('Ms') || ofThread.test(name));
  t.strictSame(named.toSorted(), bounds.toSorted());
  t.end();
});

t.test('the page says what each bound is that a caller can fill', (t) => {
  t.notMatch(list, /\): *$/m);
  t.end();
});

t.test('every error text that the page quotes exists in the code', (t) => {
  const code = filesIn(['src', 'workers'], /\.ts$/).map(readSource).join('\n');
  const quoted = [
    ...page.matchAll(/`((?:[A-Z][a-z]+|too many|no room|ledger entries)[ \w:.]* [\w.:]+)`/g),
  ].map(([, text]) => text ?? '');
  t.ok(quoted.length >= 8, quoted.join());
  for (const text of quoted) {
    const [fixed = ''] = text.replace('1048576', '${').split('${');
    t.ok(code.includes(fixed.trim()), text);
  }
  t.end();
});
