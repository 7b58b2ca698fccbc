/** Reading in a thread of its own, from file systems that do not answer. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { readersHang, readInThread } from '../../src/threads/reader.js';
import { eventually } from '../support/waiting.js';

const read = (path: string, itemMsMax: number) =>
  readInThread({
    entry: new URL('../support/reads-a-file.js', import.meta.url),
    workerData: { path },
    what: 'files',
    heapMiBMax: 24,
    item: { name: path, path },
    ...{ itemMsMax, otherMsMax: itemMsMax, bounds: limits },
    onMail: ({ length }: { readonly length: number }) => length,
  });

t.test('files that do not answer leave one of the threads of the process for all others', async (t) => {
  const folder = t.testdir();
  const file = join(folder, 'file');
  writeFileSync(file, 'twelve bytes');
  // Until somebody writes, an open of it does not return.
  const hung = ['a', 'b', 'c'].map((name) => join(folder, name));
  execFileSync('mkfifo', hung);
  for (const path of hung) t.match(await read(path, 500), { loss: { kind: 'late', item: { path } } });
  t.ok(readersHang());
  await t.rejects(read(file, 20_000), /does not answer/);
  for (const path of hung) closeSync(openSync(path, 'w'));
  await eventually(() => !readersHang());
  t.strictSame(await read(file, 20_000), { answer: 12 });
});
