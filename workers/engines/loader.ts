/** All voice packs as one engine, warm. */
import type { LogLevel } from '../../src/config.js';
import { limits } from '../../src/limits.js';
import type { VoicePack } from '../../src/threads/voices.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import { Espeak } from './espeak.js';
import type { EngineLog, EngineMeans } from './sessions.js';
import { SyrinxEngine } from './syrinx.js';

/** The log's library is loaded when there is something to say: it is a tenth of what a thread's start costs. */
export const threadLog = (level: LogLevel): EngineLog => {
  const log = lazily(() => import('../../src/log.js').then(({ createLog }) => createLog(level, limits)));
  return {
    debug: (...line: Parameters<EngineLog['debug']>) => {
      if (level === 'trace' || level === 'debug') void log().then((sink) => sink.debug(...line));
    },
    warn: (...line: Parameters<EngineLog['warn']>) => void log().then((sink) => sink.warn(...line)),
  };
};

const lazily = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
};

/** Routes a request to the pack that has its voice. */
class PackedEngine implements Engine {
  readonly sampleRateHz: number;
  readonly voiceIds: readonly string[];
  readonly executionProvider: Engine['executionProvider'];
  readonly #engines = new Map<string, Engine>();

  constructor(engines: readonly Engine[]) {
    this.sampleRateHz = engines[0]!.sampleRateHz;
    this.voiceIds = engines.flatMap(({ voiceIds }) => voiceIds);
    this.executionProvider = engines.every((engine) => engine.executionProvider === 'cuda') ? 'cuda' : 'cpu';
    for (const engine of engines) for (const id of engine.voiceIds) this.#engines.set(id, engine);
  }

  open(request: SegmentRequest): SegmentSynthesis {
    const { voiceId } = request.settings;
    const engine = this.#engines.get(voiceId);
    if (engine === undefined) throw new RangeError(`unknown voice "${voiceId}"`);
    return engine.open(request);
  }
}

/**
 * Loads packs for the calling thread. The first request is as fast as the next.
 *
 * @throws {VoicePackError} in one line that names the file at fault
 */
export const loadEngines = async (packs: readonly VoicePack[], means: EngineMeans): Promise<Engine> => {
  const espeak = await Espeak.load();
  const engines: Engine[] = [];
  for (const pack of packs) engines.push(await SyrinxEngine.load(pack, espeak, means));
  return new PackedEngine(engines);
};
