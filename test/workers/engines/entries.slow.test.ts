/** What stands in MODELS_DIR, as people put it there. */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { memoryFolder } from '../../store/support.js';
import { removePack } from '../../../scripts/voices/install.js';
import { closeFiles } from '../../../src/threads/voices.js';
import { entriesIn, entryOf } from '../../../workers/engines/entries.js';
import { PackFolder } from '../../../workers/engines/pack.js';

t.test(
  'folders and models with the files of their names are packs; strays are findings with a remedy',
  async (t) => {
    const folder = t.testdir({
      'en_US-amy-low.onnx': '',
      'en_US-amy-low.onnx.json': '{}',
      'alone.onnx': '',
      'kokoro-82m': { onnx: { 'model.onnx': '' }, '.git': { HEAD: '' } },
      'twice.onnx': '',
      twice: {},
      'my voice.onnx': '',
      'lost.onnx.json': '{}',
      'voice.pt': '',
      'pack.tar.bz2': '',
      'model.onnx.crdownload': '',
      'voices.bin': '',
      'README.md': '',
      LICENSE: '',
      '.adding-x': {},
    });
    symlinkSync(join(folder, 'kokoro-82m'), join(folder, 'linked'));
    const { packs, findings } = await entriesIn(folder);
    t.strictSame(
      packs.map(({ name, files }) => [name, files]),
      [
        ['alone', ['alone.onnx']],
        ['en_US-amy-low', ['en_US-amy-low.onnx', 'en_US-amy-low.onnx.json']],
        ['kokoro-82m', null],
        ['linked', null],
        ['twice', null],
      ],
    );
    const expected: Readonly<Record<string, RegExp>> = {
      'my voice.onnx': /: a name has .*: rename it$/,
      'twice.onnx': /: a folder has the same name: remove one of the two$/,
      'lost.onnx.json': /: the configuration of a voice without its model: /,
      'model.onnx.crdownload': /: the download is not complete: /,
      'pack.tar.bz2': /: an archive: unpack it here/,
      'voice.pt': /: weights for PyTorch: .* get the ONNX export/,
      'voices.bin': /: it belongs to no model: /,
    };
    t.strictSame(findings.map(({ pack }) => pack).sort(), Object.keys(expected).sort());
    for (const { pack, fault } of findings) {
      t.match(fault, expected[pack], pack);
      t.ok(fault.startsWith(join(folder, pack)), 'it names the file');
    }
  },
);

t.test('a file belongs to the model with the longest name', async (t) => {
  const names = ['a.onnx', 'a.onnx.json', 'a.onnx.data', 'a.int8.onnx', 'a.b.onnx', 'a.b.onnx.json', 'a.txt'];
  const path = t.testdir(Object.fromEntries(names.map((name) => [name, ''])));
  const { packs, findings } = await entriesIn(path);
  const expected = [
    { name: 'a', path, files: ['a.onnx', 'a.onnx.data', 'a.onnx.json', 'a.txt'] },
    { name: 'a.b', path, files: ['a.b.onnx', 'a.b.onnx.json'] },
    { name: 'a.int8', path, files: ['a.int8.onnx'] },
  ];
  t.strictSame(packs, expected);
  t.strictSame(findings, []);
  for (const entry of expected) t.strictSame(await entryOf(join(path, `${entry.name}.onnx`)), entry);
  await removePack(packs[0]!);
  t.strictSame(readdirSync(path).sort(), ['a.b.onnx', 'a.b.onnx.json', 'a.int8.onnx']);
});

t.test('files of a folder are found below it, but not hidden ones, and not without end', async (t) => {
  const deep = { a: { b: { c: { d: { 'deep.txt': '' } } } }, '.cache': { x: '' }, 'top.onnx': '' };
  const path = t.testdir({ pack: deep });
  const open = (name: string) => PackFolder.open({ name, path: join(path, name), files: null }, []);
  t.strictSame((await open('pack')).files, ['top.onnx'], 'more than four levels are no pack');
  mkdirSync(join(path, 'pack', 'onnx'));
  writeFileSync(join(path, 'pack', 'onnx', 'model.onnx'), '');
  t.strictSame((await open('pack')).files, ['onnx/model.onnx', 'top.onnx']);
  // In memory: on a disk 12,000 files take seconds.
  const memory = memoryFolder(t);
  for (let i = 0; i <= 2_048; i++) {
    writeFileSync(join(memory, `${i}.txt`), '');
    mkdirSync(join(memory, `${i}`));
  }
  await t.rejects(PackFolder.open({ name: 'many', path: memory, files: null }, []), {
    message: /more than 4096 files and folders: this is not one voice pack$/,
  });
  for (let i = 2_049; i <= 10_000; i++) writeFileSync(join(memory, `${i}.txt`), '');
  await t.rejects(entriesIn(memory), { message: /more than 10000 files and folders: keep/ });
});

t.test('the files of a pack are in the order of their names, however the disk lists them', async (t) => {
  const names = Array.from({ length: 64 }, (_, number) => `voice-${String(number).padStart(2, '0')}.bin`);
  const path = t.testdir();
  // First the later half: neither the order of their making nor its reverse is that of the names.
  for (const name of [...names.slice(32), ...names.slice(0, 32)]) writeFileSync(join(path, name), '');
  const { files } = await PackFolder.open({ name: 'pack', path, files: null }, []);
  t.strictSame(files, names);
});

t.test('the first bytes of a file show what lies in its place', async (t) => {
  const path = t.testdir({
    'pointer.onnx':
      'version https://git-lfs.github.com/spec/v1\noid sha256:d461765ae179566678c93091c5fa6f2984c31bbe990bf1aa62d92c64d91bc3f6\nsize 63201294\n',
    'page.onnx': '\n<!DOCTYPE html><html lang="en">',
    'good.onnx': 'bytes',
  });
  const held: number[] = [];
  const folder = await PackFolder.open({ name: 'pack', path, files: null }, held);
  const pointer = /pointer\.onnx: a Git LFS pointer, not the file itself: run "git lfs pull"/;
  await t.rejects(folder.hold('pointer.onnx'), { message: pointer });
  await t.rejects(folder.bytes('pointer.onnx', 1_000), { message: pointer });
  await t.rejects(folder.hold('page.onnx'), { message: /page\.onnx: a web page, not the file: / });
  await t.rejects(folder.bytes('good.onnx', 4), {
    message: /the file has 5 bytes, and at most \d+ are allowed$/,
  });
  const [first, second] = [await folder.hold('good.onnx'), await folder.hold('good.onnx')];
  t.equal(first, second, 'a file is opened once');
  const { identity } = folder;
  t.equal(folder.identity, identity);
  closeFiles(held);
  writeFileSync(join(path, 'good.onnx'), 'other');
  const again = await PackFolder.open({ name: 'pack', path, files: null }, held);
  for (const name of ['good.onnx']) await again.hold(name);
  t.not(again.identity, identity, 'a changed file is another pack');
  closeFiles(held);
});

t.test('a path leads to a folder, or to a model with its files', async (t) => {
  const path = t.testdir({ 'v.onnx': '', 'v.onnx.json': '', 'v.txt': '', pack: {}, 'v.pt': '' });
  t.strictSame(await entryOf(join(path, 'v.onnx')), {
    name: 'v',
    path,
    files: ['v.onnx', 'v.onnx.json', 'v.pt', 'v.txt'],
  });
  t.strictSame(await entryOf(`${join(path, 'pack')}/`), {
    name: 'pack',
    path: `${join(path, 'pack')}/`,
    files: null,
  });
  await t.rejects(entryOf(join(path, 'v.pt')), { message: /v\.pt: weights for PyTorch/ });
  await t.rejects(entryOf(join(path, 'none.onnx')), { message: /none\.onnx: the file is missing$/ });
});
