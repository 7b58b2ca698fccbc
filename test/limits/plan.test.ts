/** The worst case, summed and fitted to machines. */
import t from 'tap';
import { readConfig } from '../../src/config.js';
import { limits, type Bounds } from '../../src/limits.js';
import { memoryFiles, readMachine } from '../../src/machine.js';
import { MachineError, planConfigOf, planFor, type PlanConfig } from '../../src/plan.js';
import { checkReload, readingBounds } from '../../src/plan-reload.js';
import { generationBytes, inMiB, unitBytes, worstCaseOf, type Threads } from '../../src/worst-case.js';
import { planConfig } from '../support/plans.js';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const packs = [{ modelBytes: 9 * MiB, openFiles: 3, gpuItemBytes: 40 * MiB }];
const gpuConfig = (memoryMaxMiB: number) => readConfig({ GPU_MEMORY_MAX_MIB: String(memoryMaxMiB) }).gpu;
const threads: Threads = {
  synthesisThreads: 2,
  actorThreads: 1,
  modelBytes: 9 * MiB,
  sharedBytes: 0,
  stateBytes: 0,
  packFiles: 3,
  tls: false,
  console: false,
  lexicons: true,
  gpuBatch: 0,
  gpuItemBytes: 0,
  aac: false,
};
const plan = (memoryBytes: number, changed: Partial<PlanConfig> = {}, filesMax = Number.POSITIVE_INFINITY) =>
  planFor(planConfig(changed), { memoryBytes, filesMax }, packs);

t.test('every pool counts at the cost of its units', (t) => {
  const before = worstCaseOf(limits, threads);
  const sum = Object.values(before.parts).reduce((all, part) => all + part, 0);
  t.equal(before.memoryBytes, sum);
  const grown: Readonly<Partial<Record<keyof Bounds, number>>> = {
    contextsMax: unitBytes.context,
    connectionsMax: unitBytes.connection,
    socketsMax: unitBytes.socketFrame + unitBytes.socketAnswers + limits.socketShortMessageBytesMax,
    arrivingMessageBytesMax: 1,
    unsentAudioBytesMax: 1,
    resultMemoryInFlightBytesMax: 1,
    resultSpoolFilesMax: unitBytes.spooledResult,
    bodyBytesInFlightMax: 1,
    requestCharactersInFlightMax: unitBytes.requestCharacter,
    socketCharactersInFlightMax: unitBytes.socketCharacter,
    socketBufferedBytesInFlightMax: 1,
    socketAnswerBytesInFlightMax: unitBytes.answerUnit,
    answerBytesInFlightMax: 1,
    flushIdUnitsInFlightMax: unitBytes.flushIdUnit,
    ledgerQueueMax: unitBytes.ledgerEntry,
    lexiconEntriesMax: 2 * unitBytes.lexiconEntry,
    lexiconUnitsMax: 2 * unitBytes.lexiconUnit,
    jobsPerThreadMax: threads.synthesisThreads * unitBytes.job,
  };
  for (const [name, bytes] of Object.entries(grown) as [keyof Bounds, number][]) {
    const after = worstCaseOf({ ...limits, [name]: limits[name] + 1 }, threads);
    t.equal(after.memoryBytes - before.memoryBytes, bytes, name);
  }
  const more = worstCaseOf(limits, { ...threads, actorThreads: 3, tls: true });
  t.equal(
    more.memoryBytes - before.memoryBytes,
    2 * unitBytes.actorThread + limits.connectionsMax * (unitBytes.tlsConnection - unitBytes.connection),
  );
  const withAac = worstCaseOf(limits, { ...threads, aac: true });
  t.equal(
    withAac.memoryBytes - before.memoryBytes,
    limits.contextsMax * (unitBytes.aacContext - unitBytes.context),
  );
  const files = worstCaseOf({ ...limits, connectionsMax: 0, resultSpoolFilesMax: 0 }, threads).files;
  t.equal(before.files - files, limits.connectionsMax + limits.resultSpoolFilesMax);
  const another = worstCaseOf(limits, { ...threads, packFiles: 6, synthesisThreads: 3 });
  t.equal(
    another.files - before.files,
    2 * 3 + 2 * 4,
    'two generations keep the model files of a pack open, and connect to the actors',
  );
  t.match(inMiB(before), { total: Math.round(sum / MiB), unsentAudio: 1024 });
  t.end();
});

t.test('batches on a GPU count, and are smaller where they do not fit', (t) => {
  const on = (memoryMaxMiB: number, provider: PlanConfig['provider'] = 'webgpu') =>
    plan(64 * GiB, { provider, gpu: gpuConfig(memoryMaxMiB) });
  const { gpu, worstCase } = on(100_000);
  t.equal(gpu.batchMax, 16);
  // Two threads of two generations with their models; and a batch, with those that are half as large.
  const withoutBatch = 2 * 2 * (64 + 2 * 9);
  t.equal(worstCase.gpuBytes, (withoutBatch + 16 * 2 * 40) * MiB);
  t.equal(on(withoutBatch + 16 * 2 * 40).gpu.batchMax, 16);
  t.equal(on(withoutBatch + 16 * 2 * 40 - 1).gpu.batchMax, 8);
  t.equal(on(withoutBatch + 2 * 40).gpu.batchMax, 1);
  t.throws(() => on(withoutBatch + 2 * 40 - 1), /lower SYNTHESIS_THREADS or PACKS_LOADED_MAX/);
  t.equal(on(100_000, 'cuda').gpu.batchMax, 1, 'CUDA makes no batches');
  t.equal(plan(64 * GiB).worstCase.gpuBytes, 0);
  t.end();
});

t.test('WebGPU has one synthesis thread, whatever is configured', (t) => {
  const config = readConfig({ SYNTHESIS_THREADS: '4' });
  for (const [provider, count] of [
    ['webgpu', 1],
    ['cuda', 4],
    ['cpu', 4],
  ] as const)
    t.equal(planConfigOf(config, provider, false).synthesisThreads, count, provider);
  t.end();
});

t.test('a large machine has the pools of limits.ts', (t) => {
  const { bounds, factor, synthesisThreads } = plan(64 * GiB);
  t.equal(factor, 1);
  t.equal(synthesisThreads, 2);
  t.strictSame(bounds, { ...limits });
  t.end();
});

t.test('on a smaller machine all pools shrink by one factor, and the worst case fits', (t) => {
  let before = 1;
  for (const memoryBytes of [8, 6, 4, 2, 1].map((gib) => gib * GiB)) {
    const { bounds, factor, memoryMaxBytes, worstCase } = plan(memoryBytes);
    t.equal(memoryMaxBytes, memoryBytes * 0.8);
    t.ok(worstCase.memoryBytes <= memoryMaxBytes, `${memoryBytes / GiB} GiB`);
    if (factor < 1) t.ok(worstCase.memoryBytes > 0.99 * memoryMaxBytes, 'little memory is left unused');
    t.ok(factor <= before);
    t.ok(bounds.connectionsMax > bounds.socketsMax);
    t.ok(bounds.bodyBytesInFlightMax >= limits.bodyBytesMax);
    t.ok(bounds.socketCharactersInFlightMax >= limits.socketCharactersMax);
    before = factor;
  }
  const small = plan(2 * GiB).bounds;
  t.ok(small.contextsMax > 200, `${small.contextsMax} contexts on 2 GiB`);
  t.ok(small.socketsMax > 1_000, `${small.socketsMax} sockets on 2 GiB`);
  t.end();
});

t.test('the plan takes one thread per core, or as many as fit; a configured number stays', (t) => {
  const cores = { synthesisThreads: 32 };
  t.equal(plan(64 * GiB, cores).synthesisThreads, 32);
  const fitted = plan(4 * GiB, cores);
  t.ok(fitted.synthesisThreads > 1 && fitted.synthesisThreads < 32, `${fitted.synthesisThreads}`);
  t.throws(() => plan(4 * GiB, { ...cores, synthesisThreadsGiven: true }), /lower SYNTHESIS_THREADS/);
  t.end();
});

t.test('at a reload the voices are read in the room in which they are loaded afterwards', (t) => {
  const heapMiB = (memoryBytes: number) =>
    readingBounds(plan(memoryBytes), planConfig(), packs).voiceReadHeapMiBMax;
  t.equal(heapMiB(64 * GiB), limits.voiceReadHeapMiBMax);
  for (const memoryBytes of [GiB, 4 * GiB]) {
    const { memoryMaxBytes, synthesisThreads, worstCase } = plan(memoryBytes);
    const generation = generationBytes({ ...threads, synthesisThreads });
    const other = worstCase.memoryBytes - generation;
    t.ok(heapMiB(memoryBytes) * MiB + other <= memoryMaxBytes, `${heapMiB(memoryBytes)} MiB`);
    t.ok(heapMiB(memoryBytes) >= Math.floor(generation / MiB));
  }
  t.end();
});

t.test('voices that cannot fit are refused with the largest one to remove', (t) => {
  const others = [
    { name: 'small', modelBytes: 8 * MiB, openFiles: 1 },
    { name: 'huge', modelBytes: 64 * MiB, sharedBytes: 4 * GiB, openFiles: 1 },
  ];
  t.throws(
    () => planFor(planConfig(), { memoryBytes: 2 * GiB, filesMax: 100_000 }, [...packs, ...others]),
    /remove the voice pack "huge" \(\d{4} MiB\), or give it more memory$/,
  );
  t.end();
});

t.test('a setting that cannot fit is refused in one line that names what to change', (t) => {
  const refusals: readonly (readonly [number, Partial<PlanConfig>, RegExp])[] = [
    [2 * GiB, { memoryMaxMiB: 4_096 }, /^MEMORY_MAX_MIB is 4096, but this machine .* has 2048 MiB$/],
    [
      8 * GiB,
      { memoryMaxMiB: 256 },
      /^the worst case needs \d+ MiB .*MEMORY_MAX_MIB allows 256 MiB: give it more memory$/,
    ],
    [
      2 * GiB,
      { contextsMax: 100_000 },
      /contexts 81250.*this machine allows 1638 MiB: lower CONTEXTS_MAX, or give it/,
    ],
    [2 * GiB, { socketsMax: 900_000, actorThreads: 2 }, /lower ACTOR_THREADS or SOCKETS_MAX, or/],
    [256 * MiB, {}, /this machine allows 204 MiB: give it more memory/],
    [
      8 * GiB,
      { provider: 'webgpu', gpu: gpuConfig(64) },
      /^the worst case needs \d{3} MiB of the GPU's memory, but GPU_MEMORY_MAX_MIB allows 64 MiB: lower SYNTHESIS_THREADS/,
    ],
    [
      8 * GiB,
      { provider: 'webgpu', gpu: { ...gpuConfig(1_024), batchMaxGiven: true } },
      /GPU_MEMORY_MAX_MIB allows 1024 MiB: lower GPU_BATCH_MAX or SYNTHESIS_THREADS/,
    ],
  ];
  for (const [memoryBytes, changed, message] of refusals) {
    const refused = (): unknown => plan(memoryBytes, changed);
    t.throws(refused, MachineError);
    t.throws(refused, message);
  }
  t.end();
});

t.test('a setting that fits stays as it is, and the other pools make room', (t) => {
  const free = plan(4 * GiB).bounds;
  const { bounds, worstCase } = plan(4 * GiB, { contextsMax: 2_000, socketsMax: 5_000 });
  t.equal(bounds.contextsMax, 2_000);
  t.equal(bounds.socketsMax, 5_000);
  t.ok(bounds.connectionsMax >= 6_250);
  t.ok(bounds.unsentAudioBytesMax < free.unsentAudioBytesMax);
  t.ok(worstCase.memoryBytes <= 0.8 * 4 * GiB);
  t.equal(plan(4 * GiB, { memoryMaxMiB: 1_024 }).memoryMaxBytes, GiB);
  t.end();
});

const refusalOf = (refused: () => unknown): unknown => {
  try {
    return refused();
  } catch (error) {
    return error;
  }
};

t.test('connections and spooled results never need more files than there are', (t) => {
  for (const filesMax of [256, 1_024, 4_096, 20_000]) {
    const { bounds, worstCase } = plan(64 * GiB, {}, filesMax);
    t.ok(worstCase.files <= filesMax, `${worstCase.files} of ${filesMax}`);
    t.ok(bounds.socketsMax < bounds.connectionsMax && bounds.socketsMax >= 0.7 * bounds.connectionsMax);
    t.ok(bounds.resultSpoolFilesMax > 0);
  }
  t.throws(() => plan(64 * GiB, {}, 128), /may open 128: raise the limit \(ulimit -n, LimitNOFILE=\)$/);
  t.throws(() => plan(64 * GiB, { socketsMax: 5_000 }, 4_096), /or lower SOCKETS_MAX$/);
  const needed = Number(/needs (\d+) open files/.exec(String(refusalOf(() => plan(64 * GiB, {}, 128))))?.[1]);
  t.throws(() => plan(64 * GiB, {}, needed - 1), MachineError);
  t.doesNotThrow(() => plan(64 * GiB, {}, needed));
  t.equal(plan(64 * GiB, {}, Number.POSITIVE_INFINITY).bounds.connectionsMax, limits.connectionsMax);
  t.end();
});

t.test(
  'where not all voices fit at once, as many are loaded as fit, and the worst case counts those',
  (t) => {
    const large = { modelBytes: 16 * MiB, sharedBytes: 60 * MiB, stateBytes: 32 * MiB, openFiles: 1 };
    const many = [packs[0]!, ...Array.from({ length: 30 }, () => large)];
    const planMany = (memoryBytes: number, changed: Partial<PlanConfig> = {}) =>
      planFor(planConfig(changed), { memoryBytes, filesMax: Number.POSITIVE_INFINITY }, many);
    t.equal(planMany(64 * GiB).packsLoadedMax, Infinity, 'off where memory allows');
    const small = planMany(4 * GiB);
    t.ok(small.packsLoadedMax >= 2 && small.packsLoadedMax < many.length, `${small.packsLoadedMax} packs`);
    t.ok(small.worstCase.memoryBytes <= 0.8 * 4 * GiB);
    t.throws(() => planMany(512 * MiB), MachineError, 'one pack beside the default one must fit');

    const tooMany = () => planMany(4 * GiB, { packsLoadedMax: small.packsLoadedMax + 5 });
    t.throws(tooMany, /lower PACKS_LOADED_MAX/, 'a number that the owner set is not lowered silently');
    const given = planMany(64 * GiB, { packsLoadedMax: 3 });
    t.equal(given.packsLoadedMax, 3);
    const counted = worstCaseOf(given.bounds, {
      ...{ synthesisThreads: 2, actorThreads: 1, tls: false, console: given.hasConsole },
      ...{ lexicons: false, gpuBatch: 0, gpuItemBytes: 0, aac: false },
      modelBytes: (9 + 2 * 16) * MiB,
      stateBytes: 2 * 32 * MiB,
      sharedBytes: 2 * 2 * 60 * MiB,
      packFiles: 3 + 30,
    });
    t.equal(given.worstCase.memoryBytes, counted.memoryBytes, 'two of the large ones in each of two threads');
    t.end();
  },
);

t.test('voices that do not fit beside the current ones are not loaded', (t) => {
  const config = planConfig();
  const fitted = plan(4 * GiB);
  t.doesNotThrow(() => checkReload(fitted, config, packs, packs));
  t.doesNotThrow(() =>
    checkReload(
      fitted,
      config,
      packs,
      Array.from({ length: 9 }, () => ({ modelBytes: MiB / 9, openFiles: 3 })),
    ),
  );
  const larger = [{ modelBytes: 64 * MiB, openFiles: 3 }];
  t.throws(() => checkReload(fitted, config, packs, larger), MachineError);
  t.throws(
    () => checkReload(fitted, config, packs, larger),
    /^with both generations loaded the worst case needs 3\d+ MiB .* may use 3276 MiB: restart/,
  );
  t.doesNotThrow(() => checkReload(plan(64 * GiB), config, packs, larger));
  t.end();
});

t.test('the memory limit of a control group is read in both versions, from the group upwards', (t) => {
  t.strictSame(memoryFiles('0::/system.slice/syrinx.service\n'), [
    '/sys/fs/cgroup/system.slice/syrinx.service/memory.max',
    '/sys/fs/cgroup/system.slice/memory.max',
    '/sys/fs/cgroup/memory.max',
  ]);
  t.strictSame(memoryFiles('0::/\n'), ['/sys/fs/cgroup/memory.max']);
  t.strictSame(memoryFiles('5:cpu,cpuacct:/a\n4:memory:/docker/b\n'), [
    '/sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory/docker/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  ]);
  t.strictSame(memoryFiles(''), []);
  const machine = readMachine();
  t.ok(machine.memoryBytes > 100 * MiB);
  t.ok(machine.filesMax >= 256);
  t.end();
});
