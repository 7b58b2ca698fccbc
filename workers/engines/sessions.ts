/** onnxruntime sessions: which provider runs them, and how. A session belongs to the thread that made it. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { InferenceSession, listSupportedBackends } from 'onnxruntime-node';
import type { ExecutionProvider } from '../../src/config.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { Log } from '../../src/log.js';
import { VoicePackError } from '../../src/threads/voices.js';
import type { GraphName, SyrinxPack } from './voice-pack.js';

/** What a thread says while it loads. */
export type EngineLog = Pick<Log, 'debug' | 'warn'>;

/** What a pack is loaded with. */
export interface EngineMeans {
  readonly provider: ExecutionProvider;
  /** Around every load, run and release of a model. */
  readonly native: NativeGuard;
  readonly log: EngineLog;
}

type Run = (feeds: InferenceSession.FeedsType) => Promise<InferenceSession.ReturnType>;

/** The graphs of a pack, each to be run. */
export interface Sessions {
  readonly run: Readonly<Record<GraphName, Run>>;
  readonly executionProvider: Exclude<ExecutionProvider, 'auto'>;
}

// One compute thread a session and no pool to spin: cores are shared by running a synthesis thread on each, and a
// spinning pool would take the front thread's.
const options = (executionProviders: readonly string[]): InferenceSession.SessionOptions => ({
  executionProviders,
  graphOptimizationLevel: 'all',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
});

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';

const create = async (
  pack: SyrinxPack,
  native: NativeGuard,
  providers: readonly string[],
): Promise<Sessions['run']> => {
  const sessions: InferenceSession[] = [];
  const load = async (name: GraphName): Promise<Run> => {
    try {
      const file = pack.graphFiles[name];
      const session = await native(() => InferenceSession.create(file, options(providers)));
      sessions.push(session);
      return (feeds) => native(() => session.run(feeds));
    } catch (error) {
      for (const session of sessions) await native(() => session.release());
      throw new VoicePackError(`${pack.graphPaths[name]}: the model cannot be loaded: ${firstLine(error)}`);
    }
  };
  return { encoder: await load('encoder'), frames: await load('frames'), decoder: await load('decoder') };
};

/**
 * Whether the provider's library is there. Supported it is in every build for Linux, and to try it without the library
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
 * Loads a pack's graphs on the provider asked for. `cuda` and `auto` fall back to the CPU, with a line in the log:
 * onnxruntime itself does not fall back, and a build with CUDA says nothing of the machine.
 *
 * @throws {VoicePackError} when the CPU cannot load them either
 */
export const createSessions = async (
  pack: SyrinxPack,
  { provider, native, log }: EngineMeans,
): Promise<Sessions> => {
  if (provider === 'cuda' && !hasCuda())
    log.warn(
      'onnxruntime-node was installed without CUDA (ONNXRUNTIME_NODE_INSTALL=cuda12): the CPU is used',
    );
  else if (provider !== 'cpu' && hasCuda()) {
    try {
      const run = await create(pack, native, ['cuda', 'cpu']);
      log.debug({ pack: pack.manifest.name, provider: 'cuda' }, 'voice pack loaded');
      return { run, executionProvider: 'cuda' };
    } catch (error) {
      log.warn({ pack: pack.manifest.name, reason: firstLine(error) }, 'CUDA cannot be used, the CPU is');
    }
  }
  const run = await create(pack, native, ['cpu']);
  log.debug({ pack: pack.manifest.name, provider: 'cpu' }, 'voice pack loaded');
  return { run, executionProvider: 'cpu' };
};
