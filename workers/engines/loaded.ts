/**
 * The packs that a thread has loaded, if not all may be loaded at once. A job that needs another one waits until there is
 * room; the least recently used pack is unloaded for it. The default pack stays, and so does a pack that speaks.
 */
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { VoiceCost, VoicePack } from '../../src/threads/voices.js';
import { measureCost } from './steps.js';
import type { Engine, EngineMeans, PackHold, PackUse, VoiceFormat } from './engine.js';

interface Place {
  readonly pack: VoicePack;
  readonly format: VoiceFormat;
  engine: Engine | null;
  measured: unknown;
  /** Of its voices. `null`: not measured. */
  cost: VoiceCost | null;
  /** The longest load of a graph so far. */
  graphMs: number;
  /** Jobs that hold it. */
  holds: number;
  /** The number of its last use, counted over all packs. */
  lastUse: number;
}

interface Waiting {
  readonly place: Place;
  readonly use: PackUse;
  readonly resolve: (hold: PackHold | null) => void;
  readonly reject: (error: unknown) => void;
}

/** The default pack, and one that makes room for others. */
const loadedMin = 2;

/** At a start no job waits for a step. */
const atOnce: PackUse['asStep'] = (_, run) => run();

export class LoadedPacks {
  readonly #means: EngineMeans;
  readonly #loadedMax: number;
  /** The default pack first. */
  readonly #places: readonly Place[];
  readonly #byVoice: ReadonlyMap<string, Place>;
  /** At most one for each job of the thread. */
  readonly #waiting = new Set<Waiting>();
  #uses = 0;
  #isServing = false;

  /** @param loadedMax at least `loadedMin`, unless there are fewer packs */
  constructor(
    packs: readonly (readonly [VoicePack, VoiceFormat])[],
    means: EngineMeans,
    loadedMax: number = packs.length,
  ) {
    this.#means = means;
    this.#loadedMax = Math.max(loadedMax, Math.min(loadedMin, packs.length));
    this.#places = packs.map(([pack, format]) => ({
      ...{ pack, format, engine: null, measured: undefined, cost: null },
      ...{ graphMs: 0, holds: 0, lastUse: 0 },
    }));
    this.#byVoice = new Map(
      this.#places.flatMap((place) => place.pack.voices.map(({ id }) => [id, place] as const)),
    );
  }

  get size(): number {
    return this.#places.filter(({ engine }) => engine !== null).length;
  }

  /**
   * Loads each pack once. Then only `loadedMax` packs stay loaded: the default pack, and the first of the others by name.
   *
   * @returns the engines of the packs, and by pack name why the others cannot be loaded. The engine of an unloaded pack has its
   *   properties, but cannot speak
   * @throws {VoicePackError} the default pack cannot be loaded
   */
  async loadAll(): Promise<{ readonly engines: readonly Engine[]; readonly faults: Map<string, string> }> {
    const [first, ...others] = this.#places;
    const engines = new Map<Place, Engine>();
    const faults = new Map<string, string>();
    for (const place of first === undefined ? [] : [first, ...others.toReversed()]) {
      const victim = this.size === this.#loadedMax ? this.#victim() : undefined;
      if (victim !== undefined) await this.#unload(victim, atOnce);
      try {
        engines.set(place, await this.#load(place, atOnce));
      } catch (error) {
        if (place === first) throw error;
        faults.set(place.pack.name, error instanceof Error ? error.message : String(error));
      }
    }
    return { engines: this.#places.flatMap((place) => engines.get(place) ?? []), faults };
  }

  /** What the voices cost that were measured, by voice id. */
  get costs(): Map<string, VoiceCost> {
    return new Map(
      this.#places.flatMap(({ pack, cost }) =>
        cost === null ? [] : pack.voices.map(({ id }) => [id, cost] as const),
      ),
    );
  }

  engineOf(voiceId: string): Engine {
    const engine = this.#placeOf(voiceId).engine;
    if (engine === null) throw new Error(`the voice "${voiceId}" is not loaded`);
    return engine;
  }

  /**
   * Keeps the pack of a voice loaded for a job, and loads it first if it is not. A loaded pack is held at once, unless a more
   * urgent job waits for room: otherwise packs that speak without a pause would never make room.
   */
  hold(use: PackUse): Promise<PackHold | null> {
    const place = this.#placeOf(use.voiceId);
    const isFree = place === this.#places[0] || !this.#hasEarlier(use.dueMs());
    if (place.engine !== null && isFree) return Promise.resolve(this.#held(place, null));
    return new Promise((resolve, reject) => {
      this.#waiting.add({ place, use, resolve, reject });
      void this.#serve();
    });
  }

  /** Serves the waiting jobs, one load at a time. Steps of loaded voices run between the parts of a load. Never rejects. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    for (let next = this.#mostUrgent(); next !== undefined; next = this.#mostUrgent()) {
      const { place, use, resolve, reject } = next;
      const isCancelled = use.isCancelled();
      if (isCancelled || place.engine !== null) {
        this.#waiting.delete(next);
        resolve(isCancelled ? null : this.#held(place, null));
        continue;
      }
      const isFull = this.size === this.#loadedMax;
      const victim = isFull ? this.#victim() : undefined;
      if (isFull && victim === undefined) break;
      this.#waiting.delete(next);
      try {
        const startedMs = performance.now();
        if (victim !== undefined) await this.#unload(victim, use.asStep);
        await this.#load(place, use.asStep);
        resolve(this.#held(place, performance.now() - startedMs));
      } catch (error) {
        reject(error);
      }
    }
    this.#isServing = false;
  }

  #hasEarlier(dueMs: number): boolean {
    for (const { use } of this.#waiting) if (use.dueMs() < dueMs) return true;
    return false;
  }

  #mostUrgent(): Waiting | undefined {
    let best: Waiting | undefined;
    for (const waiting of this.#waiting)
      if (best === undefined || waiting.use.dueMs() < best.use.dueMs()) best = waiting;
    return best;
  }

  #placeOf(voiceId: string): Place {
    const place = this.#byVoice.get(voiceId);
    if (place === undefined) throw new RangeError(`unknown voice "${voiceId}"`);
    return place;
  }

  #held(place: Place, loadMs: number | null): PackHold {
    place.holds++;
    place.lastUse = ++this.#uses;
    return {
      load: loadMs === null ? null : { pack: place.pack.name, ms: loadMs },
      release: () => {
        place.holds--;
        if (this.#waiting.size > 0) void this.#serve();
      },
    };
  }

  /** @returns the pack to unload; `undefined`: all but the default pack speak */
  #victim(): Place | undefined {
    const [, ...others] = this.#places;
    return others
      .filter(({ engine, holds }) => engine !== null && holds === 0)
      .toSorted((a, b) => a.lastUse - b.lastUse)[0];
  }

  /** As a step: a model of another job may be running, and the thread makes one native call at a time. */
  async #unload(place: Place, asStep: PackUse['asStep']): Promise<void> {
    const engine = place.engine!;
    place.engine = null;
    await asStep(0, () => engine.release());
  }

  async #load(place: Place, asStep: PackUse['asStep']): Promise<Engine> {
    const { pack, format, graphMs, measured } = place;
    const loading: NativeGuard = (run) =>
      asStep(graphMs, async () => {
        const startedMs = performance.now();
        const made = await run();
        place.graphMs = Math.max(place.graphMs, performance.now() - startedMs);
        return made;
      });
    const engine = await format.load(pack, { ...this.#means, loading }, measured);
    try {
      if (this.#means.measuresCosts === true) place.cost ??= await measureCost(pack, engine);
    } catch (error) {
      await engine.release();
      throw error;
    }
    place.engine = engine;
    place.measured = engine.measured;
    place.lastUse = ++this.#uses;
    return engine;
  }
}
