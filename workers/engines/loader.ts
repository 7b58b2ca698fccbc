/** All voice packs of a folder as one engine, warm. */
import type { ExecutionProvider } from '../../src/config.js';
import { createLog } from '../../src/log.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from './engine.js';
import { Espeak } from './espeak.js';
import { readPacks } from './manifest.js';
import type { EngineLog } from './sessions.js';
import { SyrinxEngine } from './syrinx.js';

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
 * Loads every pack of `modelsDir` for the calling thread. The first request is as fast as the next.
 *
 * @throws {VoicePackError} in one line that names the file at fault
 */
export const loadEngines = async (
  modelsDir: string,
  provider: ExecutionProvider,
  log: EngineLog = createLog('warn'),
): Promise<Engine> => {
  const packs = await readPacks(modelsDir);
  const espeak = await Espeak.load();
  const engines: Engine[] = [];
  for (const pack of packs) engines.push(await SyrinxEngine.load(pack, provider, espeak, log));
  return new PackedEngine(engines);
};
