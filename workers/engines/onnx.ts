/** onnxruntime sessions: which provider runs them, and how. A session belongs to the thread that made it. */
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import type { NativeGuard } from '../../src/threads/vitals.js';
import { VoicePackError } from '../../src/threads/voices.js';
import type { Batches, Engine, EngineMeans, GpuMeans } from './engine.js';
import { firstLine } from './entries.js';
import { batched } from './graph/batched.js';
import { masked } from './graph/masked.js';
import { readModel } from './graph/read.js';
import { modelMessage, withWeights } from './graph/write.js';
import { copiesFolder, optimisedCopies } from './optimised.js';
import type { HeldFile } from './pack.js';
import { type GpuSession, PlacedSessions, type Run, type Runs } from './placed.js';
import type { GraphWindows } from './windows.js';

// onnxruntime writes names from a graph to standard error: a foreign graph could forge lines of the log. It throws its errors
// as well, and the service logs those.
env.logLevel = 'fatal';

/** The graphs of a pack. */
export interface Sessions<Name extends string = string> extends Runs<Name> {
  readonly executionProvider: Engine['executionProvider'];
  /** Call it when the load has run every window of every graph: a GPU runs no other. */
  readonly settle: () => void;
  /** Call it when the graphs load and do not speak: their optimised copies may be damaged, and the next load makes others. */
  readonly doubt?: () => Promise<void>;
  /** Absent: steps run one at a time. */
  readonly batches?: Batches;
}

type SessionMeans = Omit<EngineMeans, 'bounds'>;

type Graphs = Readonly<Record<string, HeldFile>>;

// One compute thread for each session, and no pool that spins: the cores are shared by one synthesis thread on each,
// and a spinning pool would take the front thread's.
const optionsOf = (
  executionProviders: readonly string[],
  { sharesWeights = false, keepsBuffers = true }: SessionChoices,
): InferenceSession.SessionOptions => ({
  executionProviders,
  graphOptimizationLevel: 'all',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  enableCpuMemArena: keepsBuffers,
  // Twice the memory, and no faster with pieces of a few sizes.
  enableMemPattern: !sharesWeights,
  // Otherwise each session copies weights into the order that its kernels prefer.
  ...(sharesWeights ? { extra: { session: { disable_prepacking: '1' } } } : {}),
});

export interface SessionChoices {
  /** The weights are in a file beside the graphs, which all threads map: each thread keeps no copy. */
  readonly sharesWeights?: boolean;
  /**
   * A folder of derived files for optimised copies of the graphs, which sessions on the CPU load: all threads map their
   * weights. Default: the folder of the graphs if `sharesWeights`, else there are no copies.
   */
  readonly copiesIn?: string | undefined;
  /**
   * Each session keeps as much memory for inner values as its largest run needed. Otherwise every run gets it from the
   * system, page by page, which takes as long as the run of a small graph. Default: it does.
   */
  readonly keepsBuffers?: boolean;
  /** How graphs run on a GPU, by name. The others stay on the CPU. Absent: all may run there, on any window, one at a time. */
  readonly windows?: Readonly<Record<string, GraphWindows>>;
}

/** The load of a graph is no step. */
const atOnce: NativeGuard = (run) => run();

const create = async (
  graphs: Graphs,
  { native, loading = atOnce }: Pick<EngineMeans, 'native' | 'loading'>,
  options: InferenceSession.SessionOptions,
): Promise<Runs> => {
  const sessions: InferenceSession[] = [];
  const release = async () => {
    for (const session of sessions) await native(() => session.release());
  };
  const run: Record<string, Run> = {};
  for (const [name, { path, openPath }] of Object.entries(graphs)) {
    try {
      const session = await loading(() => native(() => InferenceSession.create(openPath, options)));
      sessions.push(session);
      run[name] = (feeds) => native(() => session.run(feeds));
    } catch (error) {
      await loading(release);
      throw new VoicePackError(`${path}: the model cannot be loaded: ${firstLine(error)}`);
    }
  }
  return { run, release };
};

const folderOf = (graphs: Graphs): string => dirname(Object.values(graphs)[0]!.openPath);

const createOnCpu = async (
  pack: string,
  graphs: Graphs,
  means: SessionMeans,
  choices: SessionChoices,
): Promise<Runs & Pick<Sessions, 'doubt'>> => {
  const options = optionsOf(['cpu'], choices);
  const { native, loading = atOnce, weigh = atOnce, log } = means;
  const { sharesWeights = false, copiesIn = sharesWeights ? folderOf(graphs) : undefined } = choices;
  // Here kernels may pack weights: the copies contain the packed ones.
  const packing = { ...options, extra: {} };
  // As a copy is made, which takes the most memory, but before anything is written.
  if (means.weigh !== undefined) await weigh(async () => (await create(graphs, means, packing)).release());
  if (copiesIn !== undefined) {
    const doubt = () => rm(copiesFolder(copiesIn), { recursive: true, force: true }).catch(() => undefined);
    try {
      const copies = await optimisedCopies(graphs, copiesIn, packing, (run) => loading(() => native(run)));
      const mapping = { ...packing, graphOptimizationLevel: 'disabled' } as const;
      return { ...(await weigh(() => create(copies, means, mapping))), doubt };
    } catch (error) {
      // A damaged copy is made again by the next load. A fault of the graphs themselves shows below.
      await doubt();
      log.warn({ pack, reason: firstLine(error) }, 'the optimised copy of a voice cannot be used');
    }
  }
  return weigh(() => create(graphs, means, options));
};

/** Options of a session on a GPU. @param device the number of a CUDA device */
export const gpuOptionsOf = (
  provider: 'cuda' | 'webgpu',
  device: number | null,
  choices: SessionChoices = {},
): InferenceSession.SessionOptions => ({
  ...optionsOf([], choices),
  executionProviders:
    provider === 'webgpu'
      ? ['webgpu']
      : [{ name: 'cuda', ...(device !== null && { deviceId: device }) }, 'cpu'],
  // WebGPU has no memory pattern.
  ...(provider === 'webgpu' && { enableMemPattern: false }),
});

/** A session on the GPU: of the graph with a batch dimension, if it can have one. */
const createOnGpu = async (
  graph: HeldFile,
  windows: GraphWindows | undefined,
  { createSession = createSessionOf }: GpuMeans,
  options: InferenceSession.SessionOptions,
  log: SessionMeans['log'],
): Promise<GpuSession> => {
  if (windows !== undefined)
    try {
      const whole = readModel(graph);
      const { mask } = windows;
      const { model, rates } = mask === undefined ? { model: whole, rates: [] } : masked(whole, mask);
      const session = await createSession(modelMessage(withWeights(batched(model, windows.shared))), options);
      return {
        run: (feeds) => session.run(feeds),
        release: () => session.release(),
        windows: { ...windows, rates },
      };
    } catch (error) {
      // If the GPU is at fault, the graph as it is fails, too.
      const reason = firstLine(error);
      log.debug({ graph: graph.path, reason }, 'a graph cannot run for several segments at once');
    }
  return createSession(graph.openPath, options);
};

/** From a file or from bytes. */
export const createSessionOf: NonNullable<GpuMeans['createSession']> = (source, options) =>
  // The types of the two forms exclude each other.
  InferenceSession.create(source as string, options);

const createPlaced = async (
  pack: string,
  graphs: Graphs,
  gpu: GpuMeans,
  means: SessionMeans,
  choices: SessionChoices,
): Promise<Sessions> => {
  const { native, loading = atOnce, log } = means;
  const options = gpuOptionsOf('webgpu', null, choices);
  const placed = await PlacedSessions.load(Object.keys(graphs), {
    ...{ ...gpu, pack, native, log },
    isForGpu: (name) => choices.windows === undefined || name in choices.windows,
    createGpu: (name) =>
      loading(() =>
        gpu.state.hold(() =>
          native(() => createOnGpu(graphs[name]!, choices.windows?.[name], gpu, options, log)),
        ),
      ),
    createCpu: () => createOnCpu(pack, graphs, means, choices),
  });
  return {
    run: placed.run,
    executionProvider: 'webgpu',
    batches: placed,
    settle: () => placed.settle(),
    release: placed.release,
  };
};

const settled = (): void => undefined;

/**
 * Loads a pack's graphs on the provider that was chosen. If it fails, the CPU is used, with a line in the log: onnxruntime
 * itself does not fall back.
 *
 * @throws {VoicePackError} when the CPU cannot load them either
 */
export const createSessions = async <Name extends string>(
  pack: string,
  graphs: Readonly<Record<Name, HeldFile>>,
  means: SessionMeans,
  choices: SessionChoices = {},
): Promise<Sessions<Name>> => {
  const { provider, gpu, log } = means;
  if (provider === 'webgpu' && gpu !== undefined) return createPlaced(pack, graphs, gpu, means, choices);
  if (provider === 'cuda')
    try {
      const sessions = await create(graphs, means, gpuOptionsOf('cuda', gpu?.cudaDevice ?? null, choices));
      log.debug({ pack, provider }, 'voice pack loaded');
      return { ...sessions, executionProvider: provider, settle: settled };
    } catch (error) {
      log.warn({ pack, reason: firstLine(error) }, 'CUDA cannot be used: the CPU runs the voice');
    }
  const sessions = await createOnCpu(pack, graphs, means, choices);
  log.debug({ pack, provider: 'cpu' }, 'voice pack loaded');
  return { ...sessions, executionProvider: 'cpu', settle: settled };
};
