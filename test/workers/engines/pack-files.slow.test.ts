/** The files of packs: weights beside a model, pipes, and a folder of derived files that cannot be written. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { piperConfig, piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { addHungPack, closeFiles } from '../../../src/threads/voices.js';
import { DerivedFiles } from '../../../workers/engines/graph/derived.js';
import type { Tensor } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { PackFolder } from '../../../workers/engines/pack.js';
import { piper } from '../../../workers/engines/piper/format.js';
import type { PiperData } from '../../../workers/engines/piper/engine.js';
import { readEntry, readPacks } from '../../../workers/engines/registry.js';
import { KeptTrials } from '../../../workers/engines/trial.js';
import { modelsDir } from '../../support/voices.js';

/** Writes a Piper voice whose large weights are in a file of their own. */
const writeExternal = (folder: string): void => {
  mkdirSync(folder);
  const pieces: Buffer[] = [];
  let bytes = 0;
  const placeOf = ({ data }: Tensor) => {
    if (!('held' in data) || data.held.length < 1024) return undefined;
    const place = { location: 'weights.bin', offset: bytes };
    pieces.push(data.held);
    bytes += data.held.length;
    return place;
  };
  writeFileSync(join(folder, 'voice.onnx'), modelMessage(piperModel(smallShape), placeOf));
  writeFileSync(join(folder, 'weights.bin'), Buffer.concat(pieces));
  writeFileSync(join(folder, 'voice.onnx.json'), JSON.stringify(piperConfig()));
};

t.test('other weights beside the same model make another pack', async (t) => {
  const folder = t.testdir();
  const path = join(folder, 'voice');
  writeExternal(path);
  const derived = new DerivedFiles(join(folder, 'derived'));
  const read = async () => {
    const files: number[] = [];
    const { pack, identity } = await readEntry({ name: 'voice', path, files: null }, derived, files, [piper]);
    closeFiles(files);
    const { parts } = pack.data as PiperData;
    return { identity, pack, flow: parts['flow']!.openPath };
  };
  const first = await read();
  const weights = readFileSync(join(path, 'weights.bin'));
  t.equal(first.pack.openFiles, 2);
  t.equal(first.pack.sharedBytes, weights.length + readFileSync(join(path, 'voice.onnx')).length);
  t.strictSame((await read()).flow, first.flow);
  writeFileSync(join(folder, 'next.bin'), weights.reverse());
  renameSync(join(folder, 'next.bin'), join(path, 'weights.bin'));
  const second = await read();
  t.not(second.identity, first.identity, 'it is tried again');
  t.not(second.flow, first.flow, 'and its files are derived again');
});

t.test('a pipe in the place of a file does not block the reading', async (t) => {
  const path = t.testdir();
  execFileSync('mkfifo', [join(path, 'model.onnx')]);
  const held: number[] = [];
  const folder = await PackFolder.open({ name: 'pack', path, files: null }, held);
  const message = /model\.onnx: not a regular file: remove it$/;
  await t.rejects(folder.hold('model.onnx'), { message });
  await t.rejects(folder.bytes('model.onnx', 1_000), { message });
  closeFiles(held);
});

t.test('a link to a file of the system that reports no size is not read to its end', async (t) => {
  const path = t.testdir({ 'model.onnx': t.fixture('symlink', '/proc/self/maps') });
  const held: number[] = [];
  const folder = await PackFolder.open({ name: 'pack', path, files: null }, held);
  await t.rejects(folder.hold('model.onnx'), { message: /model\.onnx: the file is empty/ });
  await t.rejects(folder.bytes('model.onnx', 1_000), {
    message: /its size is not the 0 bytes that it reports/,
  });
  closeFiles(held);
});

t.test('without a folder for derived files, other packs are there', async (t) => {
  const folder = t.testdir({ cache: 'a file' });
  const models = join(folder, 'models');
  cpSync(join(modelsDir, 'syrinx-en'), join(models, 'syrinx-en'), { recursive: true });
  await writePiper(join(models, 'amy'), 'amy', piperModel(smallShape));
  const { packs, findings, files } = await readPacks({ modelsDir: models, cacheDir: join(folder, 'cache') });
  closeFiles(files);
  t.strictSame(
    packs.map(({ name }) => name),
    ['syrinx-en'],
  );
  t.match(findings, [{ pack: 'amy', fault: /amy: the pack cannot be read: ENOTDIR/ }]);
});

t.test('what a reader of this process left unfinished is removed', async (t) => {
  const folder = t.testdir({ [`.new-${process.pid}-x`]: { 'weights.bin': '' }, '.new-other': {} });
  await new DerivedFiles(folder).prune();
  t.strictSame(readdirSync(folder), ['.new-other'], 'another process may still make its own');
});

t.test('a pack that made a thread hang is refused by each reading, until its files change', async (t) => {
  const folder = t.testdir();
  const [packsFolder, cacheDir] = [join(folder, 'models'), join(folder, 'cache')];
  for (const name of ['one', 'two'])
    await writePiper(join(packsFolder, name), name, piperModel(smallShape), piperConfig());
  const read = async () => {
    const { packs, findings, files } = await readPacks({ modelsDir: packsFolder, cacheDir }, [piper], {
      kept: new KeptTrials(cacheDir),
    });
    closeFiles(files);
    return { stamps: new Map(packs.map(({ name, stamp }) => [name, stamp])), findings };
  };
  const { stamps } = await read();
  t.strictSame([...stamps.keys()], ['one', 'two']);
  addHungPack(cacheDir, stamps.get('two')!, 'its model did not end');
  for (const time of ['first', 'second']) {
    const again = await read();
    t.strictSame([...again.stamps.keys()], ['one'], time);
    t.match(again.findings, [{ pack: 'two', fault: `${join(packsFolder, 'two')}: its model did not end` }]);
  }
  writeFileSync(join(packsFolder, 'two', 'two.onnx.json'), JSON.stringify(piperConfig(1, {})));
  t.strictSame([...(await read()).stamps.keys()], ['one', 'two']);
  // A start ignores a damaged file.
  for (const damaged of ['null', '7', '[', '"text"']) {
    writeFileSync(join(cacheDir, 'hung.json'), damaged);
    t.strictSame([...(await read()).stamps.keys()], ['one', 'two'], damaged);
  }
});

t.test('a pack is tried again if its kept result is damaged', (t) => {
  const folder = t.testdir();
  const kept = new KeptTrials(folder);
  const result = { loadMs: 1, firstChunkMs: 1, stepMsMax: 1, realTimeFactor: 1, peakMiB: 1, runMiB: 1 };
  for (const identity of ['one', 'two']) kept.add(identity, { result });
  kept.write();
  const path = join(folder, 'trials.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace('"runMiB":1', '"runMiB":"many"'));
  const again = new KeptTrials(folder);
  t.equal(again.find('one'), undefined);
  t.strictSame(again.find('two'), { result });
  t.end();
});
