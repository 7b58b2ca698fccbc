/** Reading in a thread of its own, from file systems that do not answer. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { endReaders, readFilesInThread, UnansweredError } from '../../src/threads/reader.js';

const read = (path: string, itemMsMax = 20_000) =>
  readFilesInThread({
    entry: new URL('../support/reads-a-file.js', import.meta.url),
    workerData: { path },
    what: 'files',
    heapMiBMax: 24,
    ...{ itemMsMax, otherMsMax: 20_000, bounds: limits },
    onMail: ({ length }: { readonly length: number }) => length,
  });

t.test('files that do not answer leave one of the threads of the process for all others', async (t) => {
  const folder = t.testdir();
  const file = join(folder, 'file');
  writeFileSync(file, 'twelve bytes');
  // Opening a pipe for reading blocks until another process opens it for writing.
  const hung = ['a', 'b', 'c'].map((name) => join(folder, name));
  execFileSync('mkfifo', hung);
  for (const path of hung.slice(1))
    t.match(await read(path, 500), { loss: { kind: 'late', item: { path } } });
  const unanswered = read(hung[0]!).catch(() => null);
  await t.rejects(read(file), UnansweredError, 'one that may still be answered counts, too');
  t.equal(await endReaders(10), false);
  for (const path of hung) closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
  await unanswered;
  t.ok(await endReaders(20_000));
  t.strictSame(await read(file), { answer: 12 });
});
