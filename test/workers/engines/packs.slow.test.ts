import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Dice } from '../../../scripts/rig/random.js';
import * as files from '../../../scripts/torture/file-damage.js';
import { VoicePackError, catalogueOf, closeFiles } from '../../../src/threads/voices.js';
import type { EngineLog } from '../../../workers/engines/engine.js';
import { readPacks } from '../../../workers/engines/registry.js';
import { seedOfRun } from '../../fuzz/check.js';
import { cacheDir, loadFrom, modelsDir, requestOf } from '../../support/voices.js';

type Json = Record<string, unknown>;

/** Copies the shipped voices, for a test to damage. */
const copyModels = (folder: string, packs: readonly string[] = ['syrinx-en']): string => {
  for (const pack of packs) {
    mkdirSync(join(folder, pack));
    for (const entry of readdirSync(join(modelsDir, 'syrinx-en'), { withFileTypes: true }))
      if (entry.isFile())
        copyFileSync(join(modelsDir, 'syrinx-en', entry.name), join(folder, pack, entry.name));
  }
  return folder;
};

const editManifest = (folder: string, edit: (manifest: Json) => void): void => {
  const path = join(folder, 'syrinx-en', 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Json;
  edit(manifest);
  writeFileSync(path, JSON.stringify(manifest));
};

const readCatalogue = async (folder: string) => {
  const { packs, files } = await readPacks({ modelsDir: folder, cacheDir });
  closeFiles(files);
  return catalogueOf(packs);
};
const load = (folder: string, provider: 'cpu' | 'cuda' = 'cpu', log?: EngineLog) =>
  loadFrom(folder, { provider, ...(log !== undefined && { log }) });

const faultOf = async (run: Promise<unknown>): Promise<string> => {
  try {
    await run;
  } catch (error) {
    if (error instanceof VoicePackError) return error.message;
    throw error;
  }
  return 'no fault';
};

t.test('nine voices are shipped, the default first, at least three of them conversational', async (t) => {
  const catalogue = await readCatalogue(modelsDir);
  const { speakerIds } = catalogue;
  t.equal(speakerIds.length, 9);
  t.equal(new Set(speakerIds).size, 9);
  for (const id of speakerIds) t.equal(catalogue.sampleRateHz(id), 24_000);
  const conversational = speakerIds.filter((id) => id.endsWith('_conv'));
  t.ok(conversational.length >= 3);
  for (const id of conversational)
    t.ok(speakerIds.includes(id.replace(/_conv$/, '')), `${id} has a plain sister`);
  t.notMatch(speakerIds[0], /_conv$/);
});

t.test('a fault is reported in one line that names the file', async (t) => {
  const cases: readonly [name: string, damage: (folder: string) => void, expected: RegExp][] = [
    [
      'a graph is missing',
      (folder) => unlinkSync(join(folder, 'syrinx-en', 'frames.onnx')),
      /frames\.onnx: the file is missing$/,
    ],
    [
      'the manifest is missing',
      (folder) => unlinkSync(join(folder, 'syrinx-en', 'manifest.json')),
      /manifest\.json: the file is missing$/,
    ],
    [
      'a graph is cut short',
      (folder) => {
        const path = join(folder, 'syrinx-en', 'decoder.onnx');
        writeFileSync(path, readFileSync(path).subarray(0, 1000));
      },
      /decoder\.onnx: the file has 1000 bytes, its manifest says \d+$/,
    ],
    [
      'one byte of a graph is another',
      (folder) => {
        const path = join(folder, 'syrinx-en', 'encoder.onnx');
        const bytes = readFileSync(path);
        bytes[bytes.length >> 1]! ^= 1;
        writeFileSync(path, bytes);
      },
      /encoder\.onnx: the file is not the one of its manifest \(sha256 differs\)$/,
    ],
    [
      'the manifest is not JSON',
      (folder) => writeFileSync(join(folder, 'syrinx-en', 'manifest.json'), '{"format":'),
      /manifest\.json: not valid JSON$/,
    ],
    [
      'the manifest is of another format',
      (folder) => editManifest(folder, (manifest) => (manifest['format'] = 'syrinx-9')),
      /manifest\.json: manifest\.format must be "syrinx-4"$/,
    ],
    [
      'a field is missing',
      (folder) => editManifest(folder, (manifest) => delete manifest['margins']),
      /manifest\.json: manifest\.margins must be /,
    ],
    [
      'a net is wider than segments may be',
      (folder) => editManifest(folder, (manifest) => ((manifest['sizes'] as Json)['hidden'] = 4_096)),
      /manifest\.json: manifest\.sizes\.hidden must be /,
    ],
    [
      'a speaker has a mix of two',
      (folder) =>
        editManifest(folder, (manifest) => ((manifest['speakers'] as Json[])[2]!['mix'] = [0.5, 0.5])),
      /manifest\.json: manifest\.speakers\[2\]\.mix must be \d weights, one for each trained speaker$/,
    ],
    [
      'styles are more alike than they can be',
      (folder) =>
        editManifest(folder, (manifest) => {
          const { correlation } = manifest['style'] as { correlation: number[][] };
          for (const [i, row] of correlation.entries())
            for (const j of row.keys()) row[j] = i === j ? 1 : -0.9;
        }),
      /manifest\.json: manifest\.style\.correlation must be /,
    ],
    [
      'a speaker is far too loud',
      (folder) => editManifest(folder, (manifest) => ((manifest['speakers'] as Json[])[0]!['gain'] = 40)),
      /manifest\.json: manifest\.speakers\[0\]\.gain must be /,
    ],
    [
      'its licence would fill a page',
      (folder) => editManifest(folder, (manifest) => (manifest['licence'] = 'a'.repeat(201))),
      /manifest\.json: manifest\.licence must be .*MaxLength<200>/,
    ],
    [
      'two voices have one id',
      (folder) =>
        editManifest(folder, (manifest) => {
          const [first, second] = manifest['speakers'] as Json[];
          second!['id'] = first!['id'];
        }),
      /two of its voices have the id "\w+"/,
    ],
    [
      'a file is outside of the pack',
      (folder) =>
        editManifest(folder, (manifest) => {
          (manifest['files'] as Record<string, Json>)['frames']!['path'] = '../frames.onnx';
        }),
      /manifest\.json: manifest\.files\.frames\.path must be /,
    ],
    [
      'a phone is missing',
      (folder) =>
        editManifest(
          folder,
          (manifest) => (manifest['phones'] = (manifest['phones'] as string[]).slice(0, -1)),
        ),
      /manifest\.json: phones lacks \w+$/,
    ],
  ];
  for (const [name, damage, expected] of cases) {
    const folder = copyModels(t.testdir());
    damage(folder);
    const fault = await faultOf(readCatalogue(folder));
    t.match(fault, expected, name);
    t.notMatch(fault, /\n/, name);
  }
});

const graphs = ['encoder.onnx', 'frames.onnx', 'decoder.onnx'];
const HUGE_BYTES = 6 * 2 ** 30;

/** What a disk, a person or another program does to any file of the pack. */
const fileDamages: Readonly<Record<string, files.FileDamage>> = {
  'is cut': files.cut,
  'is empty': files.empty,
  'is gone': files.gone,
  'is huge': (path) => truncateSync(path, HUGE_BYTES),
  'has other bits': files.flipBits,
  'has garbage in it': files.garbageWithin,
  'has garbage behind its end': files.garbageBehind,
  'has a folder in its place': (path, dice) => {
    files.gone(path, dice);
    files.folder(path, dice);
  },
  'has a link to itself in its place': (path, dice) => {
    files.gone(path, dice);
    files.linkToItself(path, dice);
  },
  'is that of another graph': (path) =>
    copyFileSync(join(path, '..', path.endsWith(graphs[0]!) ? graphs[1]! : graphs[0]!), path),
};

for (const [how, damage] of Object.entries(fileDamages))
  t.test(`a file that ${how} is refused with its path`, async (t) => {
    const dice = new Dice(seedOfRun());
    for (const file of [...graphs, 'manifest.json']) {
      const folder = copyModels(t.testdir());
      const path = join(folder, 'syrinx-en', file);
      damage(path, dice);
      const fault = await faultOf(readCatalogue(folder));
      // Other bits of the manifest may change only a description, or a voice a little.
      if (how === 'has other bits' && file === 'manifest.json') continue;
      t.ok(fault.includes(path), `${file}: ${fault}`);
      t.notMatch(fault, /\n/);
    }
  });

t.test('an empty or missing folder of voices is named', async (t) => {
  const empty = t.testdir();
  t.equal(await faultOf(readCatalogue(empty)), `${empty}: the folder has no voice pack`);
  const none = join(empty, 'none');
  t.equal(await faultOf(readCatalogue(none)), `${none}: the folder of voices is missing`);
});

t.test('a graph that matches its manifest but cannot be loaded is named', async (t) => {
  const folder = copyModels(t.testdir());
  const content = Buffer.from('this is no graph');
  writeFileSync(join(folder, 'syrinx-en', 'decoder.onnx'), content);
  editManifest(folder, (manifest) => {
    (manifest['files'] as Record<string, Json>)['decoder'] = {
      path: 'decoder.onnx',
      bytes: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
    };
  });
  t.match(await faultOf(load(folder)), /^[^\n]*decoder\.onnx: the model cannot be loaded: [^\n]+$/);
});

t.test('graphs of another shape than the manifest says are a fault at load', async (t) => {
  const folder = copyModels(t.testdir());
  editManifest(folder, (manifest) => ((manifest['sizes'] as Json)['hidden'] = 64));
  t.match(await faultOf(load(folder)), /^[^\n]*manifest\.json: the models do not run as the manifest says: /);
});

t.test('the default pack comes first, and no two packs share a voice', async (t) => {
  const folder = copyModels(t.testdir(), ['another', 'syrinx-en']);
  const { packs, findings, files } = await readPacks({ modelsDir: folder, cacheDir });
  closeFiles(files);
  t.strictSame(
    packs.map(({ name }) => name),
    ['syrinx-en'],
    'the first in order has the voice',
  );
  t.match(findings, [
    { pack: 'another', fault: /another: voice "\w+" is in \S+syrinx-en already: rename one of the two$/ },
  ]);
  const path = join(folder, 'another', 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { speakers: { id: string }[] };
  manifest.speakers = manifest.speakers.slice(0, 1).map((speaker) => ({ ...speaker, id: 'another' }));
  writeFileSync(path, JSON.stringify(manifest));
  const { speakerIds } = await readCatalogue(folder);
  t.equal(speakerIds.length, 10);
  t.equal(speakerIds.at(-1), 'another');
  const engine = await load(folder);
  t.strictSame(
    engine.voices.map(({ id }) => id),
    speakerIds,
  );
  const silence = engine.open(requestOf('', { voiceId: 'another' }));
  t.ok(await silence.step(), 'the second pack speaks');
  t.throws(() => engine.open(requestOf('', { voiceId: 'nobody' })), /unknown voice "nobody"/);
});

t.test('without CUDA the CPU is used, and a line says so', async (t) => {
  const lines: string[] = [];
  const write = (...line: unknown[]) => void lines.push(JSON.stringify(line));
  const log = { debug: write, warn: write };
  const engine = await load(modelsDir, 'cuda', log);
  t.ok(await engine.open(requestOf('Yes.')).step());
  const usesCuda = lines.some((line) => line.includes('"provider":"cuda"'));
  t.ok(usesCuda || lines.some((line) => /CUDA.*CPU/.test(line)), lines.join(' '));
});
