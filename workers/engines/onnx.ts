/** onnxruntime sessions: which provider runs them, and how. A session belongs to the thread that made it. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { InferenceSession, listSupportedBackends } from 'onnxruntime-node';
import { VoicePackError } from '../../src/threads/voices.js';
import type { Engine, EngineMeans } from './engine.js';
import { firstLine } from './entries.js';
import { copiesFolderOf, optimisedCopies } from './optimised.js';
import type { HeldFile } from './pack.js';

type Run = (feeds: InferenceSession.FeedsType) => Promise<InferenceSession.ReturnType>;

/** The graphs of a pack, by name. */
export interface Sessions<Name extends string> {
  readonly run: Readonly<Record<Name, Run>>;
  readonly executionProvider: Engine['executionProvider'];
  /** Frees the models. Call it when none of them runs. */
  readonly release: () => Promise<void>;
}

type SessionMeans = Omit<EngineMeans, 'bounds'>;

type Graphs<Name extends string> = Readonly<Record<Name, HeldFile>>;

// One compute thread for each session, and no pool that spins: the cores are shared by one synthesis thread on each,
// and a spinning pool would take the front thread's.
const optionsOf = (
  executionProviders: readonly string[],
  { sharesWeights = false, keepsBuffers = !sharesWeights }: SessionChoices,
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
   * Each session keeps as much memory for inner values as its largest run needed. Otherwise every run gets it from the
   * system, page by page, which takes as long as the run of a small graph. Default: only if weights are not shared.
   */
  readonly keepsBuffers?: boolean;
}

const create = async <Name extends string>(
  graphs: Graphs<Name>,
  { native, loading = native }: Pick<EngineMeans, 'native' | 'loading'>,
  options: InferenceSession.SessionOptions,
): Promise<Omit<Sessions<Name>, 'executionProvider'>> => {
  const sessions: InferenceSession[] = [];
  const release = async () => {
    for (const session of sessions) await native(() => session.release());
  };
  const runs: [string, Run][] = [];
  for (const [name, { path, openPath }] of Object.entries<HeldFile>(graphs)) {
    try {
      const session = await loading(() => InferenceSession.create(openPath, options));
      sessions.push(session);
      runs.push([name, (feeds) => native(() => session.run(feeds))]);
    } catch (error) {
      await release();
      throw new VoicePackError(`${path}: the model cannot be loaded: ${firstLine(error)}`);
    }
  }
  return { run: Object.fromEntries(runs) as Record<Name, Run>, release };
};

/** Sessions on the CPU. If threads share the weights, the sessions load the optimised copies of the graphs. */
const createOnCpu = async <Name extends string>(
  pack: string,
  graphs: Graphs<Name>,
  means: SessionMeans,
  choices: SessionChoices,
): Promise<Omit<Sessions<Name>, 'executionProvider'>> => {
  const options = optionsOf(['cpu'], choices);
  if (choices.sharesWeights === true)
    try {
      // Here kernels may pack weights: the copies contain the packed ones.
      const packing = { ...options, extra: {} };
      const copies = await optimisedCopies(graphs, packing, means.native);
      return await create(copies, means, { ...packing, graphOptimizationLevel: 'disabled' });
    } catch (error) {
      // A damaged copy is made again by the next load. A fault of the graphs themselves shows below.
      await rm(copiesFolderOf(graphs), { recursive: true, force: true }).catch(() => undefined);
      means.log.warn({ pack, reason: firstLine(error) }, 'the optimised copy of a voice cannot be used');
    }
  return create(graphs, means, options);
};

/**
 * Whether the provider's library is installed. Every build for Linux supports CUDA, and without the library an attempt
 * makes onnxruntime complain on the terminal.
 */
const hasCuda = (): boolean => {
  if (!listSupportedBackends().some(({ name }) => name === 'cuda')) return false;
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node');
  const folder = join(dirname(entry), '..', 'bin', 'napi-v6', process.platform, process.arch);
  return ['libonnxruntime_providers_cuda.so', 'onnxruntime_providers_cuda.dll'].some((name) =>
    existsSync(join(folder, name)),
  );
};

/**
 * Loads a pack's graphs on the provider that is configured. `cuda` and `auto` fall back to the CPU, with a line in the
 * log: onnxruntime itself does not fall back, and a build with CUDA says nothing about the machine.
 *
 * @throws {VoicePackError} when the CPU cannot load them either
 */
export const createSessions = async <Name extends string>(
  pack: string,
  graphs: Graphs<Name>,
  means: SessionMeans,
  choices: SessionChoices = {},
): Promise<Sessions<Name>> => {
  const { provider, log } = means;
  if (provider === 'cuda' && !hasCuda())
    log.warn(
      'onnxruntime-node was installed without CUDA (ONNXRUNTIME_NODE_INSTALL=cuda12): the CPU is used',
    );
  else if (provider !== 'cpu' && hasCuda()) {
    try {
      const sessions = await create(graphs, means, optionsOf(['cuda', 'cpu'], choices));
      log.debug({ pack, provider: 'cuda' }, 'voice pack loaded');
      return { ...sessions, executionProvider: 'cuda' };
    } catch (error) {
      log.warn({ pack, reason: firstLine(error) }, 'CUDA cannot be used, the CPU is');
    }
  }
  const sessions = await createOnCpu(pack, graphs, means, choices);
  log.debug({ pack, provider: 'cpu' }, 'voice pack loaded');
  return { ...sessions, executionProvider: 'cpu' };
};
