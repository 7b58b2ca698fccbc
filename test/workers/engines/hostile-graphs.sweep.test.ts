/** Graphs that no exporter writes: circles, wide fans, fields without end. */
import { execFile } from 'node:child_process';
import {
  existsSync,
  globSync,
  linkSync,
  mkdirSync,
  rmSync,
  statSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import t, { type Test } from 'tap';
import { GraphBuilder } from '../../../scripts/voices/fixtures/graph-builder.js';
import { echoModel, makeKokoro } from '../../../scripts/voices/fixtures/kokoro.js';
import { piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { limits } from '../../../src/limits.js';
import { closeFiles } from '../../../src/threads/voices.js';
import { DerivedFiles } from '../../../workers/engines/graph/derived.js';
import {
  type Model,
  type Node,
  type Tensor,
  type ElementType,
  elementTypes,
} from '../../../workers/engines/graph/model.js';
import { readModel } from '../../../workers/engines/graph/read.js';
import { MessageWriter } from '../../../workers/engines/graph/wire.js';
import { checkRoom, modelMessage } from '../../../workers/engines/graph/write.js';
import { shapeOf } from '../../../workers/engines/kokoro/graph.js';
import { piper } from '../../../workers/engines/piper/format.js';
import { readEntry, readPacks } from '../../../workers/engines/registry.js';
import { KeptTrials, tryPack } from '../../../workers/engines/trial.js';

const node = (op: string, inputs: readonly string[], output: string): Node => ({
  ...{ name: output, op, domain: '', inputs, outputs: [output], attributes: new Map() },
});

const readBytes = (t: Test, bytes: Buffer): Model => {
  const path = join(t.testdir(), 'model.onnx');
  writeFileSync(path, bytes);
  return readModel({ path, openPath: path });
};

/** A graph of these nodes, from `x` to `y`. */
const graphOf = (nodes: readonly Node[]): Buffer => {
  const graph = new GraphBuilder(1);
  graph.input('x', elementTypes.float32, [1]);
  return modelMessage({
    ...graph.model([{ name: 'y', type: elementTypes.float32, dims: [1] }], ['x'], {}),
    nodes,
  });
};

t.test('nodes are read in an order in which they can run', (t) => {
  const [a, b, y] = [node('Sin', ['x'], 'a'), node('Cos', ['a'], 'b'), node('Add', ['a', 'b'], 'y')];
  const outputs = (model: Model) => model.nodes.map(({ outputs: [name] }) => name);
  t.strictSame(outputs(readBytes(t, graphOf([a, b, y]))), ['a', 'b', 'y'], 'the given one');
  t.strictSame(outputs(readBytes(t, graphOf([y, b, a]))), ['a', 'b', 'y'], 'another one');
  t.end();
});

t.test('a graph that goes in a circle is refused', (t) => {
  const circles: Readonly<Record<string, readonly Node[]>> = {
    'a node': [node('Identity', ['y'], 'y')],
    'two nodes': [node('Add', ['x', 'b'], 'a'), node('Sin', ['a'], 'b'), node('Cos', ['b'], 'y')],
    'an input that is made': [node('Identity', ['x'], 'y'), node('Identity', ['y'], 'x')],
  };
  for (const [title, nodes] of Object.entries(circles))
    t.throws(
      () => readBytes(t, graphOf(nodes)),
      {
        name: 'VoicePackError',
        message: /model\.onnx: .*(?:depends on itself|is made twice).*download it again/,
      },
      title,
    );
  t.end();
});

t.test('a Piper voice whose generator takes a value that is made of itself is refused', async (t) => {
  const model = piperModel(smallShape);
  const [taken = ''] = model.nodes.find(({ op }) => op === 'ConvTranspose')!.inputs;
  const nodes = model.nodes.flatMap((other) =>
    other.outputs[0] === taken
      ? [node('Add', ['again', other.inputs[0]!], taken), node('Identity', [taken], 'again')]
      : [other],
  );
  const folder = t.testdir();
  await writePiper(join(folder, 'voice'), 'voice', { ...model, nodes });
  const entry = { name: 'voice', path: join(folder, 'voice'), files: null };
  const read = readEntry(entry, new DerivedFiles(join(folder, 'derived')), [], [piper]);
  await t.rejects(read, { name: 'VoicePackError', message: /voice\.onnx: .*depends on itself/ });
});

t.test(
  'what the convolutions of a Piper voice keep between two steps counts, however far they reach',
  async (t) => {
    const stateBytesAt = async (dilation: number, before = 3): Promise<number> => {
      const { nodes, ...model } = piperModel(smallShape);
      const ints = (...value: number[]) => ({ type: 'ints', value }) as const;
      const reaching = nodes.map((other) => {
        const { attributes } = other;
        if (!isDeepStrictEqual(attributes.get('dilations'), ints(12))) return other;
        const far = { dilations: ints(dilation), pads: ints(before * dilation, (6 - before) * dilation) };
        return { ...other, attributes: new Map([...attributes, ...Object.entries(far)]) };
      });
      const folder = t.testdir();
      await writePiper(join(folder, 'voice'), 'voice', { ...model, nodes: reaching });
      const entry = { name: 'voice', path: join(folder, 'voice'), files: null };
      const derived = new DerivedFiles(join(folder, 'derived'));
      const files: number[] = [];
      const { pack } = await readEntry(entry, derived, files, [piper]);
      closeFiles(files);
      return pack.stateBytes!;
    };
    const [usual, far, farther] = [
      await stateBytesAt(12),
      await stateBytesAt(40_000),
      await stateBytesAt(80_000),
    ];
    t.ok(far > usual + 2 ** 28, `${far - usual} bytes more`);
    t.ok(farther > far + 2 ** 28);
    t.ok((await stateBytesAt(40_000, 0)) > usual + 2 ** 28, 'samples after it count like those before it');
  },
);

t.test('a Piper voice with more groups of channels than its weights have is refused', async (t) => {
  const { nodes, ...model } = piperModel(smallShape);
  const last = nodes.findLast(({ op }) => op === 'ConvTranspose')!;
  const group = { type: 'int', value: 2_000_000 } as const;
  const grouped = { ...last, attributes: new Map([...last.attributes, ['group', group]]) };
  const folder = t.testdir();
  const changed = { ...model, nodes: nodes.map((other) => (other === last ? grouped : other)) };
  await writePiper(join(folder, 'voice'), 'voice', changed);
  const entry = { name: 'voice', path: join(folder, 'voice'), files: null };
  const read = readEntry(entry, new DerivedFiles(join(folder, 'derived')), [], [piper]);
  await t.rejects(read, { name: 'VoicePackError', message: /not the graph of a Piper voice/ });
});

t.test('the durations of a graph are found in time, however many nodes take a value', (t) => {
  const model = echoModel();
  const round = model.nodes.find(({ op }) => op === 'Round')!.outputs[0]!;
  const wide = 60;
  // Each node of a layer takes all values of the layer before: 60 to the power of 5 ways.
  let layer = [round];
  const fan: Node[] = [];
  for (let depth = 0; depth < 5; depth++) {
    const next = Array.from({ length: wide }, (_, i) => node('Sum', layer, `fan_${depth}_${i}`));
    fan.push(...next);
    layer = next.flatMap(({ outputs }) => outputs);
  }
  const startedMs = performance.now();
  const { shape } = shapeOf({ ...model, nodes: [...fan, ...model.nodes] });
  t.equal(shape.durations, shapeOf(model).shape.durations);
  t.ok(performance.now() - startedMs < 10_000);
  t.end();
});

t.test('a file of zeros, and a field that is larger than any graph, are refused at once', (t) => {
  const path = join(t.testdir(), 'model.onnx');
  writeFileSync(path, '');
  truncateSync(path, 2 ** 36);
  t.throws(() => readModel({ path, openPath: path }), {
    message: /model\.onnx: not a whole ONNX model \(field 0/,
  });
  // A tensor whose name has 2 ** 35 bytes.
  const large = 2 ** 35;
  const varint = (value: number) => new MessageWriter().integer(1, value).finish().subarray(1);
  const tensor = Buffer.concat([Buffer.from([8 * 8 + 2]), varint(large)]);
  const graph = Buffer.concat([Buffer.from([5 * 8 + 2]), varint(large + tensor.length), tensor]);
  const head = Buffer.concat([Buffer.from([8, 8, 7 * 8 + 2]), varint(large + graph.length), graph]);
  mkdirSync(join(t.testdirName, 'large'));
  const second = join(t.testdirName, 'large', 'model.onnx');
  writeFileSync(second, head);
  truncateSync(second, head.length + large);
  t.throws(() => readModel({ path: second, openPath: second }), {
    message: /a text of it has more than \d+ bytes/,
  });
  t.end();
});

/** A graph with two weights of 1,200 bytes, at these places of a file of 10,000. */
const writeExternal = (folder: string, places: readonly (readonly [location: string, offset: number])[]) => {
  const graph = new GraphBuilder(1);
  const names = places.map((_, i) => graph.floats(Array<number>(300).fill(i)));
  const at = new Map(names.map((name, i) => [name, { location: places[i]![0], offset: places[i]![1] }]));
  const model = graph.model([{ name: 'y', type: elementTypes.float32, dims: [300] }], [names[0]!], {});
  const path = join(folder, 'model.onnx');
  writeFileSync(
    path,
    modelMessage(model, ({ name }) => at.get(name)),
  );
  writeFileSync(join(folder, 'a.bin'), Buffer.alloc(10_000));
  if (!existsSync(join(folder, 'b.bin'))) linkSync(join(folder, 'a.bin'), join(folder, 'b.bin'));
  return { path, openPath: path };
};

t.test('weights beside a model are equal, or do not overlap, whatever links lead to them', (t) => {
  const folder = t.testdir();
  for (const [first, second] of [
    [0, 0],
    [0, 1_200],
    [5_000, 1_200],
  ] as const)
    t.ok(
      readModel(
        writeExternal(folder, [
          ['a.bin', first],
          ['a.bin', second],
        ]),
      ),
    );
  for (const places of [
    [
      ['a.bin', 0],
      ['a.bin', 4],
    ],
    [
      ['a.bin', 1_199],
      ['a.bin', 0],
    ],
    [
      ['a.bin', 0],
      ['b.bin', 0],
    ],
  ] as const)
    t.throws(() => readModel(writeExternal(folder, places)), {
      name: 'VoicePackError',
      message: /model\.onnx: .*overlap in the file of their weights/,
    });
  t.end();
});

t.test('the weights that are derived from a model are about as many as those of its files', async (t) => {
  const folder = t.testdir();
  const modelOf = (size: number): Model => {
    const name = 'weights';
    const data = { file: join(folder, 'large.bin'), offset: 0, bytes: 4 * size };
    return {
      ...new GraphBuilder(1).model([], [], {}),
      initialisers: new Map([[name, { name, dims: [size], type: elementTypes.float32, data }]]),
    };
  };
  const [part, whole] = [modelOf(900), modelOf(500_000)];
  writeFileSync(join(folder, 'large.bin'), Buffer.alloc(2_000_000));
  writeFileSync(join(folder, 'small.onnx'), '');
  const derived = new DerivedFiles(join(folder, 'derived'));
  const derive = (name: string) => {
    const path = join(folder, name);
    return derived.models([{ path, openPath: path }], 'test', { part, whole });
  };
  await t.rejects(derive('small.onnx'), { message: /weights have \d+ bytes, its files only 0/ });
  const files = await derive('large.bin');
  const [one, other] = [files.part, files.whole].map((file) => {
    const [tensor] = readModel(file).initialisers.values();
    return tensor!.data as { offset: number };
  });
  t.not(one!.offset, other!.offset, 'weights of another length at the same place are others');
});

t.test('derived files leave as much of the disk free as spooled results do', async (t) => {
  const { bavail, blocks, bsize } = statfsSync(t.testdir());
  const free = Math.min(limits.resultSpoolFreeBytesMin, (blocks * bsize) / 20);
  await t.rejects(checkRoom(t.testdirName, bavail * bsize - free / 2), { message: /MiB of room: free some/ });
  await checkRoom(t.testdirName, 0);
});

const message = () => new MessageWriter();

const valuesMax = 512 * 1024;

/** Lists of a graph: the fewest fields that make an entry of each, and how many fields and numbers that are. */
const listEntries: Readonly<Record<string, readonly [entry: Buffer, values: number]>> = {
  nodes: [message().text(1, '').finish(), 1],
  'inputs of a node': [message().bytes(1, message().text(1, 'x').finish()).finish(), 2],
  'outputs of a node': [message().bytes(1, message().text(2, 'x').finish()).finish(), 2],
  attributes: [message().bytes(1, message().text(5, '').finish()).finish(), 2],
  'integers of an attribute': [
    message()
      .bytes(1, message().bytes(5, message().integer(8, 1).finish()).finish())
      .finish(),
    4,
  ],
  'packed floats of an attribute': [
    message()
      .bytes(
        1,
        message()
          .bytes(5, message().bytes(7, Buffer.alloc(4)).finish())
          .finish(),
      )
      .finish(),
    4,
  ],
  'names in a subgraph': [
    message()
      .bytes(
        1,
        message()
          .bytes(
            5,
            message()
              .bytes(6, message().bytes(12, message().text(1, 'x').finish()).finish())
              .finish(),
          )
          .finish(),
      )
      .finish(),
    5,
  ],
  'packed dimensions of weights': [
    message()
      .bytes(5, message().integer(2, elementTypes.float32).bytes(1, Buffer.alloc(1)).finish())
      .finish(),
    4,
  ],
  inputs: [message().bytes(11, message().text(1, 'x').finish()).finish(), 2],
  outputs: [message().bytes(12, message().text(1, 'x').finish()).finish(), 2],
};

/** A model of these fields, and of a node whose attribute has so many packed integers. */
const modelWith = (graph: Buffer, integers: number): Buffer => {
  const attribute = message().text(1, 'axes').integer(20, 7).bytes(8, Buffer.alloc(integers)).finish();
  const node = message().bytes(5, attribute).finish();
  return message().integer(1, 8).bytes(7, message().bytes(1, node).written(graph).finish()).finish();
};
/** The fields of such a model without the others and without its integers. */
const modelValues = 7;

for (const [title, [entry, values]] of Object.entries(listEntries))
  t.test(`a graph has at most ${valuesMax} fields and numbers: ${title}`, (t) => {
    const integers = valuesMax - modelValues - values;
    t.ok(readBytes(t, modelWith(entry, integers)));
    t.throws(() => readBytes(t, modelWith(entry, integers + 1)), {
      name: 'VoicePackError',
      message: /model\.onnx: .*more than 524288 fields and numbers/,
    });
    t.end();
  });

t.test('a list of tens of millions of integers, and a text of a mebibyte, are refused', (t) => {
  t.throws(() => readBytes(t, modelWith(Buffer.alloc(0), 40_000_000)), {
    message: /more than 524288 fields and numbers/,
  });
  const named = (bytes: number) =>
    modelWith(
      message()
        .bytes(1, message().text(3, 'x'.repeat(bytes)).finish())
        .finish(),
      0,
    );
  t.equal(readBytes(t, named(2 ** 20)).nodes[1]?.name.length, 2 ** 20);
  t.throws(() => readBytes(t, named(2 ** 20 + 1)), { message: /a text of it has more than 1048576 bytes/ });
  t.end();
});

t.test('weights as numbers may be more than a graph has fields, and fill their shape', (t) => {
  const count = 600_000;
  const weights = (fields: Buffer, dims: number) =>
    readBytes(
      t,
      message()
        .integer(1, 8)
        .bytes(
          7,
          message().bytes(5, message().integer(1, dims).written(fields).text(8, 'w').finish()).finish(),
        )
        .finish(),
    ).initialisers.get('w')?.data;
  const typed = (type: number) => message().integer(2, type);
  const bytes = typed(elementTypes.uint8).bytes(5, Buffer.alloc(count, 7)).finish();
  t.strictSame(weights(bytes, count), { held: Buffer.alloc(count, 7) });
  t.strictSame(weights(typed(elementTypes.int64).integers(7, [-2, 3]).finish(), 2), {
    held: Buffer.from(new BigInt64Array([-2n, 3n]).buffer),
  });
  t.strictSame(weights(typed(elementTypes.float32).float(4, 0.5).float(4, -1).finish(), 2), {
    held: Buffer.from(new Float32Array([0.5, -1]).buffer),
  });
  t.throws(() => weights(bytes, count - 1), { message: /"w" has more than the 599999 bytes of its shape/ });
  t.throws(() => weights(bytes, count + 1), { message: /"w" has 600000 bytes, its shape needs 600001/ });
  t.throws(() => weights(bytes, 2 ** 40), { message: /more than 67108864 bytes of it are not weights/ });
  t.end();
});

/** The echo model, in whose sound a constant has a part that its graph makes of one number. */
const unfolding = (MiB: number): Model => {
  const model = echoModel();
  const weights = (
    name: string,
    dims: number[],
    type: ElementType,
    { buffer }: BigInt64Array<ArrayBuffer> | Float32Array<ArrayBuffer>,
  ): [string, Tensor] => [name, { name, dims, type, data: { held: Buffer.from(buffer) } }];
  const { int64, float32 } = elementTypes;
  const last = model.nodes.at(-1)!;
  return {
    ...model,
    initialisers: new Map([
      ...model.initialisers,
      weights('length', [1], int64, BigInt64Array.of(BigInt(MiB * 2 ** 18))),
      weights('small', [1], float32, Float32Array.of(1e-12)),
      weights('first', [], int64, BigInt64Array.of(0n)),
    ]),
    nodes: [
      ...model.nodes.slice(0, -1),
      node('Expand', ['small', 'length'], 'large'),
      // Its place depends on the text, so that onnxruntime keeps the whole constant.
      node('Shape', [model.inputs[0]!.name], 'shape'),
      node('Gather', ['shape', 'first'], 'place'),
      node('Gather', ['large', 'place'], 'part'),
      node('Add', [last.inputs[0]!, 'part'], 'sum'),
      { ...last, inputs: ['sum'] },
    ],
  };
};

const unfoldingPack = (folder: string, MiB: number) => {
  const path = join(folder, 'models', 'large');
  makeKokoro(path);
  writeFileSync(join(path, 'onnx', 'model.onnx'), modelMessage(unfolding(MiB)));
  const entry = { name: 'large', path, files: null };
  return { entry, cacheDir: join(folder, 'cache'), hasLowPriority: false };
};

const isLinux = process.platform === 'linux';

t.test('a pack is refused whose graphs unfold to far more than its files', { skip: !isLinux }, async (t) => {
  const order = unfoldingPack(t.testdir(), 256);
  t.match(await tryPack(order, limits), {
    fault:
      /its graphs take (?:2[5-9]|3)\d+ MiB of memory, but its files have only 2 MiB: they may take 7\d MiB/,
    isFinal: true,
  });
  const files = globSync('**', { cwd: order.cacheDir }).map((file) => statSync(join(order.cacheDir, file)));
  t.ok(files.length > 0);
  t.ok(files.reduce((sum, { size }) => sum + size, 0) < 2 ** 24, 'and takes no room on the disk');
});

t.test('the memory of graphs counts in each thread that cannot map a copy', { skip: !isLinux }, async (t) => {
  const order = unfoldingPack(t.testdir(), 40);
  const mapped = await tryPack(order, limits);
  t.ok('result' in mapped && mapped.result.loadMiB! < 20);
  const [copies] = globSync('derived/*/optimised-*', { cwd: order.cacheDir });
  rmSync(join(order.cacheDir, copies!), { recursive: true });
  writeFileSync(join(order.cacheDir, copies!), '');
  const own = await tryPack(order, limits);
  t.ok('result' in own && own.result.loadMiB! >= 40);

  const places = { modelsDir: join(t.testdirName, 'models'), cacheDir: order.cacheDir };
  const stateBytesAt = async (loadMiB: number) => {
    rmSync(join(order.cacheDir, 'trials.json'), { force: true });
    const { packs, files } = await readPacks(places, undefined, {
      trial: () =>
        Promise.resolve({ ...own, result: { ...('result' in own && own.result), loadMiB } } as typeof own),
      kept: new KeptTrials(order.cacheDir),
    });
    closeFiles(files);
    return packs[0]!.stateBytes!;
  };
  t.equal((await stateBytesAt(500)) - (await stateBytesAt(400)), 100 * 2 ** 20);
  t.equal(await stateBytesAt(3), await stateBytesAt(0), 'a byte of a file counts three times anyway');
});

t.test('onnxruntime writes nothing to the log, whatever the names in a graph are', async (t) => {
  const name = 'evil\n{"level":30,"msg":"forged"}\u001b[2J';
  const small = { name, dims: [1], type: elementTypes.float32, data: { held: Buffer.alloc(4) } };
  const models = [[node('Sin', ['x'], 'y')], [{ ...node('Gather', ['x', name], 'y'), name }]].map((nodes) =>
    modelMessage({ ...readBytes(t, graphOf(nodes)), initialisers: new Map([[name, small]]) }),
  );
  const folder = t.testdir();
  const paths = models.map((bytes, i) => {
    writeFileSync(join(folder, `${i}.onnx`), bytes);
    return join(folder, `${i}.onnx`);
  });
  const program = `
    import { createSessions } from './dist/workers/engines/onnx.js';
    const means = { provider: 'cpu', native: (run) => run(), log: { debug() {}, warn() {} } };
    for (const path of process.argv.slice(1)) {
      const made = createSessions('pack', { net: { path, openPath: path, bytes: 0 } }, means);
      console.log(await made.then(() => 'loaded', ({ name }) => name));
    }`;
  const args = ['--input-type=module', '-e', program, ...paths];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
  t.equal(stdout, 'loaded\nVoicePackError\n');
  t.equal(stderr, '');
});
