/** All voice packs as one engine, warm. */
import type { ExecutionProvider } from '../../src/config.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import { Espeak } from './espeak.js';
import type { EngineLog } from './sessions.js';
import { SyrinxEngine } from './syrinx.js';
import type { VoicePack } from './voice-pack.js';

/** The log's library is loaded when there is something to say: it is a tenth of what a thread's start costs. */
const threadLog: EngineLog = {
  debug: () => undefined,
  warn: (...line: Parameters<EngineLog['warn']>) =>
    void import('../../src/log.js').then(({ createLog }) => createLog('warn').warn(...line)),
};

/** Routes a request to the pack that has its voice. */
class PackedEngine implements Engine {
  readonly sampleRateHz: number;
  readonly voiceIds: readonly string[];
  readonly #engines = new Map<string, Engine>();

  constructor(engines: readonly Engine[]) {
    this.sampleRateHz = engines[0]!.sampleRateHz;
    this.voiceIds = engines.flatMap(({ voiceIds }) => voiceIds);
    for (const engine of engines) for (const id of engine.voiceIds) this.#engines.set(id, engine);
  }

  open(request: SegmentRequest): SegmentSynthesis {
    const engine = this.#engines.get(request.voiceId);
    if (engine === undefined) throw new RangeError(`unknown voice "${request.voiceId}"`);
    return engine.open(request);
  }
}

/**
 * Loads packs for the calling thread. The first request is as fast as the next.
 *
 * @throws {VoicePackError} in one line that names the file at fault
 */
export const loadEngines = async (
  packs: readonly VoicePack[],
  provider: ExecutionProvider,
  log: EngineLog = threadLog,
): Promise<Engine> => {
  const espeak = await Espeak.load();
  const engines: Engine[] = [];
  for (const pack of packs) engines.push(await SyrinxEngine.load(pack, provider, espeak, log));
  return new PackedEngine(engines);
};
