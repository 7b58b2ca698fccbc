/**
 * Packs that no service may use: how each is made, and what the finding about it must say. Tests of the engines have more of them: files
 * that are missing, cut or of another kind.
 */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Model, type Node, type Tensor, elementTypes } from '../../../workers/engines/graph/model.js';
import { modelMessage } from '../../../workers/engines/graph/write.js';
import { GraphBuilder, loopBody } from '../../voices/fixtures/graph-builder.js';
import { type EchoOptions, echoModel, makeKokoro, writeModel } from '../../voices/fixtures/kokoro.js';
import {
  piperConfig,
  piperModel,
  smallShape as smallPiper,
  writePiper,
} from '../../voices/fixtures/piper.js';
import { smallShape } from '../../voices/fixtures/pocket-echo.js';
import { makeFiveGraphs } from '../../voices/fixtures/pocket.js';

export interface BadPack {
  readonly name: string;
  readonly finding: RegExp;
  /** @param folder does not exist yet */
  readonly make: (folder: string) => Promise<void>;
}

const { float32, int64, bool } = elementTypes;
const { width } = smallShape;

/** The example in five graphs, damaged. */
const damaged =
  (damage: (folder: string) => void) =>
  async (folder: string): Promise<void> => {
    await makeFiveGraphs(folder);
    damage(folder);
  };

/** The example with another graph in the place of that of the text. */
const withText = (
  make: (graph: GraphBuilder, ids: string) => string,
  more: (model: Model) => Buffer = modelMessage,
) =>
  damaged((folder) => {
    const graph = new GraphBuilder(1);
    const ids = graph.input('token_ids', int64, [1, 'T']);
    const wide = graph.op('Unsqueeze', [graph.op('Cast', [ids], { to: float32 }), graph.ints([2])]);
    const embeddings = graph.op('Expand', [wide, graph.ints([1, 1, width])]);
    const added = graph.op('Add', [embeddings, make(graph, ids)]);
    const model = graph.model([{ name: 'embeddings', type: float32, dims: [1, 'T', width] }], [added], {});
    writeFileSync(join(folder, 'text_conditioner.onnx'), more(model));
  });

/** A loop that goes on for ever. */
const endless = withText(
  (graph) => graph.floats([0], []),
  (model) => {
    const body = new GraphBuilder(2);
    body.input('turn', int64, [1]);
    const goesOn = body.input('goes_on', bool, [1]);
    const before = body.input('before', float32, [1, 'T', width]);
    const made = body.model(
      [
        { name: 'goes_on_out', type: bool, dims: [1] },
        { name: 'after', type: float32, dims: [1, 'T', width] },
      ],
      [goesOn, body.op('Sin', [before])],
      {},
    );
    const [last] = model.nodes.slice(-1);
    const loop: Node = {
      ...{ name: 'loop', op: 'Loop', domain: '', inputs: ['', '', last!.inputs[0]!], outputs: ['looped'] },
      attributes: new Map([['body', loopBody(made)]]),
    };
    return modelMessage({
      ...model,
      nodes: [...model.nodes.slice(0, -1), loop, { ...last!, inputs: ['looped'] }],
    });
  },
);

/** A tensor of 40 GB, as soon as a text has a token. */
const huge = withText((graph, ids) => {
  const tokens = graph.slice(graph.op('Shape', [ids]), 1, 2, 0);
  const size = graph.op('Mul', [graph.op('Div', [tokens, tokens]), graph.ints([10 ** 10])]);
  const zeros = graph.op('ConstantOfShape', [size]);
  return graph.op('ReduceMax', [graph.op('Add', [zeros, graph.floats([1], [])])], { keepdims: 0 });
});

/** Puts a weight into a file outside of the pack. */
const outsidePack = ({ dims }: Pick<Tensor, 'dims'>) =>
  dims.length === 3 ? { location: '../outside.bin', offset: 0 } : undefined;

const outside = withText(
  (graph) => graph.weights([1, 1, width], 1),
  (model) => modelMessage(model, outsidePack),
);

/** Multiplies the audio by a number. */
const audioTimes = (factor: number) =>
  damaged((folder) => {
    const path = join(folder, 'mimi_decoder.onnx');
    const bytes = readFileSync(path);
    const wanted = Buffer.alloc(4);
    wanted.writeFloatLE(1 / 32_768);
    const at = bytes.indexOf(wanted);
    bytes.writeFloatLE(factor, at);
    writeFileSync(path, bytes);
  });

/** The example of Kokoro, with another model. */
const kokoroWith =
  (options: EchoOptions) =>
  (folder: string): Promise<void> => {
    makeKokoro(folder);
    writeModel(join(folder, 'onnx', 'model.onnx'), echoModel(options));
    return Promise.resolve();
  };

/** The example of Piper, then changed. */
const piperThen =
  (damage: (model: string) => void, config = piperConfig()) =>
  async (folder: string): Promise<void> => {
    await writePiper(folder, 'small', piperModel(smallPiper), config);
    damage(join(folder, 'small.onnx'));
  };

const outsideWeights = (path: string): void =>
  writeFileSync(path, modelMessage(piperModel(smallPiper), outsidePack));

/** Lists of three bytes each take much more memory when they are read. */
const listsBytes = 240 * 1024 * 1024;

export const badPacks: readonly BadPack[] = [
  {
    name: 'cut',
    finding: /flow_lm_main\.onnx: /,
    make: damaged((folder) => truncateSync(join(folder, 'flow_lm_main.onnx'), 900)),
  },
  { name: 'outside', finding: /text_conditioner\.onnx: .*outside/, make: outside },
  { name: 'nan', finding: /it makes values that are not numbers/, make: audioTimes(Number.NaN) },
  { name: 'silent', finding: /it makes only silence/, make: audioTimes(0) },
  { name: 'piper-outside', finding: /small\.onnx: .*outside/, make: piperThen(outsideWeights) },
  {
    name: 'kokoro-endless',
    finding: /more than 30 s of processor time/,
    make: kokoroWith({ endlessId: 16 }),
  },
  {
    name: 'kokoro-lists',
    finding: /voices\.json: it has other things than tables/,
    make: (folder) => {
      makeKokoro(folder);
      writeFileSync(join(folder, 'voices.json'), Buffer.alloc(listsBytes, '[],').fill('{"": [', 0, 6));
      return Promise.resolve();
    },
  },
  {
    name: 'piper-heap',
    finding: /config.num_speakers must be number/,
    make: (folder) =>
      writePiper(
        folder,
        'small',
        piperModel({ ...smallPiper, speakers: 2 }),
        piperConfig(2, { num_speakers: 30_000_000 }),
      ),
  },
  { name: 'huge', finding: /it may have \d+ MiB|needs more than \d+ MiB/, make: huge },
  { name: 'endless', finding: /more than 30 s of processor time/, make: endless },
];
