/**
 * Fits the service to its machine. The bounds of `limits.ts` suit a large machine; on a smaller one, all pools shrink by
 * one factor. A value that the configuration sets is never made smaller: if it cannot fit, the service does not start.
 */
import type { Config, Provider } from './config.js';
import { limits, type Bounds } from './limits.js';
import type { ProcessLog } from './log.js';
import type { Machine } from './machine.js';
import { inMiB, unitBytes, worstCaseOf, type Threads, type WorstCase } from './worst-case.js';

const MiB = 1024 * 1024;

/** Share of the machine's memory without `MEMORY_MAX_MIB`: the system and its socket buffers need the rest. */
const MEMORY_PART = 0.8;
/** A smaller factor would leave pools that are too small to serve. */
const FACTOR_MIN = 1 / 64;
/** Where the plan chooses the number of threads, it leaves the pools at least this size. */
const FACTOR_FOR_THREADS = 1 / 8;
/** The default pack, and one that makes room for others. */
const PACKS_LOADED_MIN = 2;
const CONNECTIONS_MIN = 64;
const CONSOLE_CONNECTIONS_MIN = 16;
/** Share of the connections; the rest are for requests. */
const SOCKETS_PART = 0.8;
const KEYLESS_SOCKETS_PART = 0.125;
/** Messages that wait, or arrive, in the largest ones: so that two accounts have room. */
const WAITING_MESSAGES_MIN = 4;
/** So many files of the console fit at least: two accounts have room. */
const FILE_ANSWERS_MIN = 4;
/** The factor is the largest power of this one that fits. */
const FACTOR_STEP = 0.99;

/** The worst case does not fit the machine. The message is one line for the operator. */
export class MachineError extends Error {
  override readonly name = 'MachineError';
}

export interface Plan {
  readonly bounds: Bounds;
  readonly synthesisThreads: number;
  /** The most voice packs that are loaded at once in each thread; `Infinity`: all. */
  readonly packsLoadedMax: number;
  /** With batches that fit; `batchMax` is 0 if the CPU runs the models. */
  readonly gpu: Config['gpu'];
  readonly worstCase: WorstCase;
  /** The console fits, or was asked for. */
  readonly hasConsole: boolean;
  /** Factor by which the budgets of `limits.ts` were reduced: 1 on a large machine. */
  readonly factor: number;
  readonly memoryMaxBytes: number;
}

export type PlanConfig = Config & {
  /** What runs the models. */
  readonly provider: Provider;
  /** There is a folder of lexicons. */
  readonly hasLexicons: boolean;
};

/**
 * The configuration for what runs the models. For WebGPU there is one synthesis thread: onnxruntime has one device for a process,
 * and two threads that use it at once end the process.
 */
export const planConfigOf = (config: Config, provider: Provider, hasLexicons: boolean): PlanConfig => ({
  ...config,
  ...{ provider, hasLexicons },
  ...(provider === 'webgpu' && { synthesisThreads: 1 }),
});

/** A voice pack, as far as the plan needs it. */
export interface PlannedPack {
  readonly name?: string;
  readonly modelBytes: number;
  readonly sharedBytes?: number;
  readonly stateBytes?: number;
  readonly gpuItemBytes?: number;
  readonly openFiles: number;
}

const sumOf = (packs: readonly PlannedPack[], bytesOf: (pack: PlannedPack) => number): number =>
  packs.reduce((sum, pack) => sum + bytesOf(pack), 0);

/** The default pack, which stays loaded, and the largest of the others. */
const defaultAndLargest = (
  [first, ...others]: readonly PlannedPack[],
  count: number,
  bytesOf: (pack: PlannedPack) => number,
): PlannedPack[] =>
  first === undefined
    ? []
    : [first, ...others.toSorted((a, b) => bytesOf(b) - bytesOf(a)).slice(0, count - 1)];

const threadBytesOf = ({ modelBytes, stateBytes = 0 }: PlannedPack): number =>
  unitBytes.modelByte * modelBytes + stateBytes;
const sharedBytesOf = ({ sharedBytes = 0 }: PlannedPack): number => sharedBytes;

export type Sizes = Pick<Threads, 'modelBytes' | 'sharedBytes' | 'stateBytes' | 'gpuItemBytes' | 'packFiles'>;

/** What packs take at most. Each thread chooses which ones it has loaded. */
export const sizeOf = (packs: readonly PlannedPack[], loadedMax: number, synthesisThreads: number): Sizes => {
  const inThread = defaultAndLargest(packs, loadedMax, threadBytesOf);
  const inProcess = defaultAndLargest(packs, 1 + synthesisThreads * (loadedMax - 1), sharedBytesOf);
  return {
    modelBytes: sumOf(inThread, ({ modelBytes }) => modelBytes),
    sharedBytes: sumOf(inProcess, sharedBytesOf),
    stateBytes: sumOf(inThread, ({ stateBytes = 0 }) => stateBytes),
    gpuItemBytes: sumOf(packs, ({ gpuItemBytes = 0 }) => gpuItemBytes),
    packFiles: sumOf(packs, ({ openFiles }) => openFiles),
  };
};

const filesFor = (machine: Machine, threads: Threads): number => {
  const without = worstCaseOf(
    { ...limits, connectionsMax: 0, resultSpoolFilesMax: 0, consoleConnectionsMax: 0 },
    threads,
  ).files;
  return machine.filesMax - without;
};

const boundsAt = (factor: number, config: PlanConfig, files: number): Bounds => {
  const part = (bound: number): number => Math.max(1, Math.floor(bound * factor));
  const contextsMax = config.contextsMax ?? part(limits.contextsMax);
  const resultSpoolFilesMax = Math.min(limits.resultSpoolFilesMax, Math.floor(files / 8));
  const consoleConnectionsMax = Math.min(
    limits.consoleConnectionsMax,
    Math.max(CONSOLE_CONNECTIONS_MIN, Math.floor(files / 8)),
  );
  const connectionsMax = Math.min(
    config.socketsMax === null
      ? part(limits.connectionsMax)
      : Math.max(config.socketsMax / SOCKETS_PART, config.socketsMax + CONNECTIONS_MIN),
    files - resultSpoolFilesMax - (config.console === null ? 0 : consoleConnectionsMax),
  );
  const socketsMax =
    config.socketsMax ?? Math.floor(Math.min(limits.socketsMax * factor, connectionsMax * SOCKETS_PART));
  return {
    ...limits,
    contextsMax,
    connectionsMax: Math.floor(connectionsMax),
    socketsMax,
    socketsPerKeyMax: config.socketsPerKey ?? socketsMax,
    keysPerAccountMax: config.keysPerAccountMax,
    keylessSocketsMax: Math.min(limits.keylessSocketsMax, Math.ceil(socketsMax * KEYLESS_SOCKETS_PART)),
    resultSpoolFilesMax,
    consoleConnectionsMax,
    unsentAudioBytesMax: part(limits.unsentAudioBytesMax),
    resultMemoryInFlightBytesMax: part(limits.resultMemoryInFlightBytesMax),
    // Each has room for the largest request: the bounds of a request do not depend on the machine.
    bodyBytesInFlightMax: Math.max(4 * limits.bodyBytesMax, part(limits.bodyBytesInFlightMax)),
    requestCharactersInFlightMax: Math.max(limits.bodyBytesMax, part(limits.requestCharactersInFlightMax)),
    socketCharactersInFlightMax: Math.max(
      limits.socketCharactersMax,
      part(limits.socketCharactersInFlightMax),
    ),
    waitingMessageBytesMax: Math.max(
      WAITING_MESSAGES_MIN * limits.socketMessageBytesMax,
      part(limits.waitingMessageBytesMax),
    ),
    arrivingMessageBytesMax: Math.max(
      WAITING_MESSAGES_MIN * limits.socketMessageBytesMax,
      part(limits.arrivingMessageBytesMax),
    ),
    socketBufferedBytesInFlightMax: part(limits.socketBufferedBytesInFlightMax),
    socketAnswerBytesInFlightMax: part(limits.socketAnswerBytesInFlightMax),
    answerBytesInFlightMax: Math.max(
      (config.console === null ? 1 : FILE_ANSWERS_MIN) * limits.fileAnswerBytes,
      part(limits.answerBytesInFlightMax),
    ),
    flushIdUnitsInFlightMax: Math.max(
      limits.flushesPendingMax * limits.socketIdMax,
      part(limits.flushIdUnitsInFlightMax),
    ),
  };
};

const memoryMaxBytesOf = (config: PlanConfig, machine: Machine): number => {
  const machineMiB = Math.floor(machine.memoryBytes / MiB);
  if (config.memoryMaxMiB === null) return machine.memoryBytes * MEMORY_PART;
  if (config.memoryMaxMiB > machineMiB)
    throw new MachineError(
      `MEMORY_MAX_MIB is ${config.memoryMaxMiB}, but this machine (or its control group) has ${machineMiB} MiB`,
    );
  return config.memoryMaxMiB * MiB;
};

/** @returns advice to remove the largest pack beside the default one */
const packToRemove = (packs: readonly PlannedPack[]): string => {
  const bytesOf = (pack: PlannedPack): number => threadBytesOf(pack) + sharedBytesOf(pack);
  const [, largest] = defaultAndLargest(packs, 2, bytesOf);
  return largest?.name === undefined
    ? ''
    : `remove the voice pack "${largest.name}" (${Math.ceil(bytesOf(largest) / MiB)} MiB), or `;
};

const refuseMemory = (
  worstCase: WorstCase,
  memoryMaxBytes: number,
  config: PlanConfig,
  packs: readonly PlannedPack[],
): never => {
  const { total, ...parts } = inMiB({ ...worstCase, gpuBytes: 0 });
  const largest = Object.entries(parts)
    .filter(([, mib]) => mib >= 8)
    .map(([name, mib]) => `${name} ${mib}`)
    .join(', ');
  const tooLarge = [
    ...(config.synthesisThreadsGiven && config.synthesisThreads > 1 ? ['SYNTHESIS_THREADS'] : []),
    ...(config.actorThreads > 1 ? ['ACTOR_THREADS'] : []),
    ...(config.packsLoadedMax === null ? [] : ['PACKS_LOADED_MAX']),
    ...(config.contextsMax === null ? [] : ['CONTEXTS_MAX']),
    ...(config.socketsMax === null ? [] : ['SOCKETS_MAX']),
  ];
  const withoutConsole = config.console === null ? '' : 'turn the console off (CONSOLE_PORT=off), or ';
  const allowance = config.memoryMaxMiB === null ? 'this machine allows' : 'MEMORY_MAX_MIB allows';
  throw new MachineError(
    `the worst case needs ${total} MiB of memory (${largest}), but ${allowance} ${Math.floor(memoryMaxBytes / MiB)} MiB: ` +
      `${tooLarge.length > 0 ? `lower ${tooLarge.join(' or ')}, or ` : ''}${packToRemove(packs)}${withoutConsole}give it more memory`,
  );
};

/** No interface says how much memory a GPU has, so the operator may set a bound. */
const fitsGpu = ({ gpuBytes }: WorstCase, { gpu: { memoryMaxMiB } }: PlanConfig): boolean =>
  memoryMaxMiB === null || gpuBytes <= memoryMaxMiB * MiB;

export const checkGpu = (worstCase: WorstCase, config: PlanConfig, batchMax: number): void => {
  const { memoryMaxMiB } = config.gpu;
  const variables = [
    ...(batchMax > 1 ? ['GPU_BATCH_MAX'] : []),
    ...(config.synthesisThreads > 1 ? ['SYNTHESIS_THREADS'] : []),
    'PACKS_LOADED_MAX',
  ];
  if (!fitsGpu(worstCase, config))
    throw new MachineError(
      `the worst case needs ${Math.ceil(worstCase.gpuBytes / MiB)} MiB of the GPU's memory, but GPU_MEMORY_MAX_MIB allows ` +
        `${memoryMaxMiB} MiB: lower ${variables.join(' or ')}, or set EXECUTION_PROVIDER=cpu`,
    );
};

/** Only WebGPU makes batches. */
const batchOf = ({ provider, gpu }: PlanConfig): number =>
  provider === 'cpu' ? 0 : provider === 'webgpu' ? gpu.batchMax : 1;

/** Adds what the configuration says of itself. */
export const threadsWith = (
  { actorThreads, hasLexicons, openAi, tls }: PlanConfig,
  planned: Omit<Threads, 'actorThreads' | 'tls' | 'lexicons' | 'aac'>,
): Threads => ({ ...planned, actorThreads, tls: tls !== null, lexicons: hasLexicons, aac: openAi !== null });

/**
 * @throws {MachineError} with what the worst case needs, what there is, and which variables to change
 */
export const planFor = (config: PlanConfig, machine: Machine, packs: readonly PlannedPack[]): Plan => {
  const memoryMaxBytes = memoryMaxBytesOf(config, machine);
  let packsLoadedMax = config.packsLoadedMax ?? Infinity;
  let gpuBatchMax = batchOf(config);
  const threadsOf = (synthesisThreads: number): Threads =>
    threadsWith(config, {
      ...sizeOf(packs, packsLoadedMax, synthesisThreads),
      synthesisThreads,
      console: config.console !== null,
      gpuBatch: gpuBatchMax,
    });
  const at = (factor: number, synthesisThreads: number) => {
    const threads = threadsOf(synthesisThreads);
    const bounds = boundsAt(factor, config, filesFor(machine, threads));
    return { bounds, worstCase: worstCaseOf(bounds, threads) };
  };
  const fits = (factor: number, synthesisThreads: number): boolean =>
    at(factor, synthesisThreads).worstCase.memoryBytes <= memoryMaxBytes;

  const threadsMin = config.synthesisThreadsGiven ? config.synthesisThreads : 1;
  // Where all packs do not fit even with the smallest pools, fewer are loaded at once, before the console is given up.
  // A number that the owner set is kept.
  if (config.packsLoadedMax === null && !fits(FACTOR_MIN, threadsMin))
    while (packsLoadedMax > PACKS_LOADED_MIN && !fits(FACTOR_FOR_THREADS, threadsMin))
      packsLoadedMax = Math.max(PACKS_LOADED_MIN, Math.min(packsLoadedMax, packs.length) - 1);
  if (config.console?.isGiven === false && !fits(FACTOR_MIN, threadsMin))
    return planFor({ ...config, console: null }, machine, packs);
  let { synthesisThreads } = config;
  if (!config.synthesisThreadsGiven)
    while (synthesisThreads > 1 && !fits(FACTOR_FOR_THREADS, synthesisThreads)) synthesisThreads--;

  const files = filesFor(machine, threadsOf(synthesisThreads));
  const filesNeeded = Math.max(CONNECTIONS_MIN, config.socketsMax ?? 0) * 1.25;
  if (files < filesNeeded)
    throw new MachineError(
      `the service needs ${Math.ceil(machine.filesMax - files + filesNeeded)} open files, but this process may open ` +
        `${machine.filesMax}: raise the limit (ulimit -n, LimitNOFILE=)${config.socketsMax === null ? '' : ' or lower SOCKETS_MAX'}`,
    );

  let factor = 1;
  while (factor > FACTOR_MIN && !fits(factor, synthesisThreads))
    factor = Math.max(FACTOR_MIN, factor * FACTOR_STEP);
  if (!fits(factor, synthesisThreads))
    refuseMemory(at(factor, synthesisThreads).worstCase, memoryMaxBytes, config, packs);
  const hasConsole = config.console !== null;
  if (!config.gpu.batchMaxGiven)
    while (gpuBatchMax > 1 && !fitsGpu(at(factor, synthesisThreads).worstCase, config))
      gpuBatchMax = Math.floor(gpuBatchMax / 2);
  const fitted = at(factor, synthesisThreads);
  checkGpu(fitted.worstCase, config, gpuBatchMax);
  return {
    ...fitted,
    ...{ synthesisThreads, packsLoadedMax, hasConsole, factor, memoryMaxBytes },
    gpu: { ...config.gpu, batchMax: gpuBatchMax },
  };
};

/**
 * Logs the worst case: the memory and files that full pools need, and the bounds of the largest pools. At a terminal it
 * would hide the welcome: `LOG_LEVEL=debug` shows it there.
 */
export const logPlan = (plan: Plan, config: PlanConfig, packCount: number, log: ProcessLog): void => {
  const { bounds, factor, hasConsole, memoryMaxBytes, packsLoadedMax, synthesisThreads, worstCase } = plan;
  const { contextsMax, socketsMax, connectionsMax } = bounds;
  const memoryMaxMiB = Math.round(memoryMaxBytes / MiB);
  const pools = { contextsMax, socketsMax, connectionsMax, files: worstCase.files };
  log[log.print === null ? 'info' : 'debug'](
    { mib: inMiB(worstCase), memoryMaxMiB, poolsFactor: Math.round(factor * 1000) / 1000, ...pools },
    'worst case',
  );
  if (config.console !== null && !hasConsole)
    log.warn('the console is off: not enough memory; CONSOLE_PORT=8081 starts it, with less for speech');
  if (packsLoadedMax < packCount)
    log.warn(
      { packs: packCount, packsLoadedMax },
      config.packsLoadedMax === null
        ? 'not all voices are loaded at once: not enough memory; a request for one of the others loads it'
        : 'not all voices are loaded at once (PACKS_LOADED_MAX): a request for one of the others loads it',
    );
  if (plan.gpu.batchMax < batchOf(config))
    log.warn(
      { gpuBatchMax: plan.gpu.batchMax, gpuMemoryMaxMiB: config.gpu.memoryMaxMiB },
      'a run on the GPU speaks for fewer segments: GPU_MEMORY_MAX_MIB allows no more (GPU_BATCH_MAX)',
    );
  if (synthesisThreads < config.synthesisThreads)
    log.warn(
      { synthesisThreads, cores: config.synthesisThreads },
      'fewer synthesis threads than cores: not enough memory',
    );
};
