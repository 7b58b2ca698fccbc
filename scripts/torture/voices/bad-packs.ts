/**
 * Packs that no service may use: how each is made, and what the finding about it must say. Tests of the engines have more of them: files
 * that are missing, cut or of another kind.
 */
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { type EchoOptions, echoModel, makeKokoro, writeModel } from '../../voices/fixtures/kokoro.js';
import { piperConfig, piperModel, smallShape, writePiper } from '../../voices/fixtures/piper.js';

export interface BadPack {
  readonly name: string;
  readonly finding: RegExp;
  /** @param folder does not exist yet */
  readonly make: (folder: string) => void | Promise<void>;
}

/** The example of Kokoro, with another model. */
const kokoroWith =
  (options: EchoOptions) =>
  (folder: string): void => {
    makeKokoro(folder);
    writeModel(join(folder, 'onnx', 'model.onnx'), echoModel(options));
  };

/** The example of Piper, then changed. */
const piperThen =
  (damage: (model: string) => void) =>
  async (folder: string): Promise<void> => {
    await writePiper(folder, 'small', piperModel(smallShape));
    damage(join(folder, 'small.onnx'));
  };

const outsideWeights = (path: string): void => {
  const outside = { location: '../outside.bin', offset: 0 };
  const message = modelMessage(piperModel(smallShape), ({ dims }) =>
    dims.length === 3 ? outside : undefined,
  );
  writeFileSync(path, message);
};

/** A sound of the text that is spoken for the trial. */
const triedId = 16;
/** Lists of three bytes each take much more memory when they are read. */
const listsBytes = 240 * 1024 * 1024;

export const badPacks: readonly BadPack[] = [
  { name: 'cut', finding: /small\.onnx: /, make: piperThen((path) => truncateSync(path, 900)) },
  { name: 'outside', finding: /small\.onnx: .*outside/, make: piperThen(outsideWeights) },
  { name: 'nan', finding: /it makes values that are not numbers/, make: kokoroWith({ brokenId: triedId }) },
  { name: 'silent', finding: /it makes only silence/, make: kokoroWith({ isSilent: true }) },
  {
    name: 'lists',
    finding: /voices\.json: it has other things than tables/,
    make: (folder) => {
      makeKokoro(folder);
      writeFileSync(join(folder, 'voices.json'), Buffer.alloc(listsBytes, '[],').fill('{"": [', 0, 6));
    },
  },
  {
    name: 'heap',
    finding: /config.num_speakers must be number/,
    make: (folder) =>
      writePiper(
        folder,
        'small',
        piperModel({ ...smallShape, speakers: 2 }),
        piperConfig(2, { num_speakers: 30_000_000 }),
      ),
  },
  {
    name: 'huge',
    finding: /it may have \d+ MiB|needs more than \d+ MiB/,
    make: kokoroWith({ hugeId: triedId }),
  },
  {
    name: 'endless',
    finding: /more than 30 s of processor time/,
    make: kokoroWith({ endlessId: triedId }),
  },
];
