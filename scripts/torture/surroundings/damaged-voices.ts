/** The scenario of the damaged voices: a start refuses them and names the file, or the damage does no harm. */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { Dice } from '../../rig/random.js';
import { Tally } from '../../rig/tally.js';
import { speak, startOutcome } from '../checks.js';
import { type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';

const graphs = ['encoder.onnx', 'frames.onnx', 'decoder.onnx'] as const;
const manifest = 'manifest.json';
const pack = 'syrinx-en';
const HUGE_BYTES = 6 * 2 ** 30;

interface Damage {
  readonly name: string;
  /** The line must name it. */
  readonly file: string;
  readonly apply: (folder: string, dice: Dice) => void;
}

const anyFile: Readonly<Record<string, (path: string, dice: Dice) => void>> = {
  cut: (path, dice) => truncateSync(path, dice.below(readFileSync(path).length)),
  empty: (path) => truncateSync(path, 0),
  gone: (path) => rmSync(path),
  'in its place a folder': (path) => {
    rmSync(path);
    mkdirSync(path);
  },
  'in its place a link to itself': (path) => {
    rmSync(path);
    symlinkSync(path, path);
  },
  huge: (path) => truncateSync(path, HUGE_BYTES),
  'with garbage behind its end': (path, dice) => appendFileSync(path, dice.bytes(dice.between(1, 5_000))),
  'with garbage in it': (path, dice) => {
    const bytes = readFileSync(path);
    dice.bytes(Math.min(4_096, bytes.length)).copy(bytes, dice.below(bytes.length));
    writeFileSync(path, bytes);
  },
};

const flipBits = (path: string, dice: Dice): void => {
  const bytes = readFileSync(path);
  for (let count = dice.between(1, 6); count > 0; count -= 1) {
    const at = dice.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
  }
  writeFileSync(path, bytes);
};

interface Draft {
  readonly files: Readonly<Record<'encoder' | 'frames' | 'decoder', object>>;
}

const edited =
  (change: (draft: Draft, dice: Dice) => unknown) =>
  (path: string, dice: Dice): void => {
    const draft = JSON.parse(readFileSync(path, 'utf8')) as Draft;
    writeFileSync(path, JSON.stringify(change(draft, dice)));
  };

const fields = ['files', 'phones', 'frame', 'margins', 'hiddenSize', 'trainingF0', 'speakers'] as const;

const inManifest: Readonly<Record<string, (path: string, dice: Dice) => void>> = {
  'that is no JSON': (path) => writeFileSync(path, 'voices: [wren, rook]\n'),
  // JSON leaves out what is undefined.
  'without a field': edited((draft, dice) => ({ ...draft, [dice.pick(fields)]: undefined })),
  'of another rate': edited((draft) => ({ ...draft, sampleRateHz: 22_050 })),
  'without speakers': edited((draft) => ({ ...draft, speakers: [] })),
  'with other phones': edited((draft) => ({ ...draft, phones: ['a', 'b'] })),
  'that names a file elsewhere': edited(({ files, ...draft }) => ({
    ...draft,
    files: { ...files, encoder: { ...files.encoder, path: '../encoder.onnx' } },
  })),
  'of another hash': edited(({ files, ...draft }) => ({
    ...draft,
    files: { ...files, frames: { ...files.frames, sha256: '0'.repeat(64) } },
  })),
};

const inFolder =
  (file: string, work: (path: string, dice: Dice) => void): Damage['apply'] =>
  (folder, dice) =>
    work(join(folder, file), dice);

const swapped: Damage = {
  name: 'two graphs in each other’s place',
  file: graphs[0],
  apply: (folder) => {
    const [a, b] = [join(folder, graphs[0]), join(folder, graphs[1])];
    const bytes = readFileSync(a);
    cpSync(b, a);
    writeFileSync(b, bytes);
  },
};

const damages: readonly Damage[] = [
  ...[...graphs, manifest].flatMap((file) =>
    Object.entries(anyFile).map(([how, work]) => ({
      name: `${file} ${how}`,
      file,
      apply: inFolder(file, work),
    })),
  ),
  ...graphs.map((file) => ({ name: `bits in ${file}`, file, apply: inFolder(file, flipBits) })),
  ...Object.entries(inManifest).map(([how, work]) => ({
    name: `a manifest ${how}`,
    file: how === 'of another hash' ? graphs[1] : manifest,
    apply: inFolder(manifest, work),
  })),
  swapped,
  // Most are refused; some change only a description, or a voice a little.
  { name: 'bits in the manifest', file: '', apply: inFolder(manifest, flipBits) },
];

const tryStart = async (folder: string, dataDir: string, { file }: Damage): Promise<string> => {
  const outcome = await startOutcome({
    dataDir,
    env: { MODELS_DIR: folder },
    synthesisThreads: 1,
    actorThreads: 1,
  });
  if (outcome.kind === 'refused')
    return outcome.line.includes(join(folder, pack, file))
      ? 'refused'
      : `refused without its name: ${outcome.line}`;
  if (outcome.kind === 'broke') return outcome.how;
  const { service } = outcome;
  try {
    if (file !== '') return 'served';
    const [key = ''] = await service.makeKeys(1);
    const { status } = await speak(service.port, key, 'Still there.');
    // The name of the voice may have changed.
    return status === 200 || status === 422 ? 'harmless' : `served, and answered ${status}`;
  } finally {
    await service.kill();
  }
};

const run = ({ seed, count, progress }: TortureOptions): Promise<readonly TortureRow[]> =>
  inScratch(async (scratch) => {
    const tally = new Tally();
    const wrong: string[] = [];
    const models = join(scratch, 'models');
    for (let i = 0; i < count; i += 1) {
      rmSync(models, { recursive: true, force: true });
      cpSync('models', models, { recursive: true });
      const damage = damages[i % damages.length]!;
      damage.apply(join(models, pack), new Dice(seed, i));
      const outcome = await tryStart(models, join(scratch, 'data'), damage);
      const isRight = outcome === 'refused' || outcome === 'harmless';
      tally.add(isRight ? outcome : 'wrong');
      if (!isRight) wrong.push(`${damage.name}: ${outcome}`);
      progress(`${i + 1} of ${count}: ${tally.toString()}`);
    }
    const outcome = `${tally.toString()}; refused: exit 1 and one line that names the file ${wrong.join('; ')}`;
    const injected = `${damages.length} ways: manifest and graphs cut, changed, gone, swapped, huge, a folder, a link to itself`;
    return [{ fault: 'model file damaged', injected, count, outcome, held: wrong.length === 0 }];
  });

export const damagedVoices: Scenario = {
  name: 'model-damage',
  about: `the files of ${basename(pack)} damaged: refused at the start with the file's name`,
  defaultCount: damages.length * 2,
  run,
};
