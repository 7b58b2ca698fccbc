/**
 * The voices that speak now, and those from before a reload: a generation each, with its own synthesis threads. New
 * contexts begin with the current generation; a context that is speaking keeps its own, unless its voice is the same in both.
 *
 *   loading --ready--> current --(the next one is current)--> older --(no context uses it)--> closed
 *   loading --(cannot load, or not in time)--> closed
 *
 * At most two generations are live. Contexts that keep an older one for too long are ended when they do not speak, or when
 * the next reload waits for them.
 */
import { EventEmitter, once } from 'node:events';
import type { Log } from '../log.js';
import type { PackFigures } from '../metrics.js';
import type { Effort } from './effort.js';
import { GpuState } from './gpu.js';
import { HungThreads, SynthesisPool, type SynthesisPoolOptions } from './synthesis-pool.js';
import type { LoadedThread, SynthesisThread } from './synthesis-thread.js';
import { catalogueOf, type PackFinding, type VoiceCatalogue, type VoicePack, type Voices } from './voices.js';

export type GenerationsOptions = Omit<SynthesisPoolOptions, 'packs' | 'hungThreads'>;

export interface Generation {
  /** 1, 2, 3 ... */
  readonly number: number;
  readonly voices: VoiceCatalogue;
  readonly packs: readonly VoicePack[];
  /** These, and packs that are out. */
  readonly loadedPacks: readonly VoicePack[];
  /** Of their files, by voice. */
  readonly identities: ReadonlyMap<string, string | undefined>;
  /** What was found beside the packs and cannot be used. */
  readonly findings: readonly PackFinding[];
  readonly pool: SynthesisPool;
}

interface Live extends Generation {
  voices: VoiceCatalogue;
  packs: readonly VoicePack[];
  findings: readonly PackFinding[];
  readonly release: () => void;
  contexts: number;
  isClosing: boolean;
}

interface GenerationsEvents {
  /** A thread has its voices loaded: link it to the actor threads. */
  thread: [thread: SynthesisThread, loaded: LoadedThread];
  /** The number of ready threads of the current generation may have changed. */
  capacity: [readyThreads: number];
  /** Another generation is current: contexts that do not speak can move to it. */
  switched: [];
  /**
   * Contexts of the older generation must end: those that do not speak, and all if a reload waits for them. Emitted again and
   * again until none is left.
   */
  overdue: [aReloadWaits: boolean];
  /** The older generation is closed. */
  closed: [];
  /** The pack made a thread hang, or several die: its files must not be loaded again. */
  'pack-hung': [stamp: string, fault: string];
}

/** Packs that cannot be used and that a warning names; the log has all. */
const FINDINGS_SHOWN_MAX = 8;

/** Milliseconds between two checks for overdue contexts. */
const OVERDUE_LOOK_MS = 1_000;

/** Milliseconds that the threads of an unused generation may take to end; then the close is repeated. */
const CLOSE_MS_MAX = 5_000;

const providersOf = ({ pool }: Generation) => pool.ready.map(({ loaded }) => loaded!.executionProvider);

const cudaThreads = (generation: Generation): number =>
  providersOf(generation).filter((provider) => provider === 'cuda').length;

export class Generations extends EventEmitter<GenerationsEvents> {
  readonly #options: GenerationsOptions;
  readonly #log: Log;
  readonly #hungThreads: HungThreads;
  /** `null`: the CPU runs the models. */
  readonly #gpu: GpuState | null;
  #current: Live;
  #older: Live | undefined;
  #loading: Live | undefined;
  #numbers = 0;
  #restarts = 0;
  readonly #packLoads = { count: 0, ms: 0 };
  #closing = false;
  #reloadsWaiting = 0;
  #overdueTimer: NodeJS.Timeout | undefined;

  constructor(voices: Voices, options: GenerationsOptions) {
    super();
    this.#options = options;
    this.#log = options.log;
    this.#hungThreads = new HungThreads(options.bounds.hungThreadsReplacedMax);
    this.#gpu = options.gpu === undefined ? null : new GpuState(options.gpu.state);
    this.#current = this.#begin(voices);
  }

  get current(): Generation {
    return this.#current;
  }

  /** The ready threads of every generation. */
  get ready(): SynthesisThread[] {
    return this.#all.flatMap(({ pool }) => pool.ready);
  }

  /** What synthesis has cost since this was last called; `null`: all of it, by voice: complete segments for listeners. */
  *takeEffort(): Iterable<readonly [voiceId: string | null, Effort]> {
    for (const { loadedPacks, pool } of this.#all)
      for (const { effort } of pool.ready)
        for (const [row, voiceId] of [...catalogueOf(loadedPacks).speakerIds, null].entries())
          yield [voiceId, effort.take(row)];
  }

  /** Threads that died or hung, and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The GPU failed, and the CPU runs its graphs. */
  get gpuIsLost(): boolean {
    return this.#gpu?.isLost === true;
  }

  /** Voice packs, where they are not all loaded at once. */
  packs(): PackFigures {
    const loaded = this.ready.reduce((sum, { loadedPacks }) => sum + loadedPacks, 0);
    return { loaded, loads: this.#packLoads.count, loadMs: this.#packLoads.ms };
  }

  /** The voices that speak now, and their threads. */
  status() {
    return {
      /** Counts up with every reload of the voices. */
      generation: this.#current.number,
      voices: this.#current.voices.speakerIds.length,
      /** Contexts that still use the voices from before a reload. */
      contextsOfOlderVoices: this.#older?.contexts ?? 0,
      voicesAreLoading: this.#loading !== undefined,
      /** What the threads use: several if CUDA failed for some of them. */
      executionProviders: [...new Set(providersOf(this.#current))],
      /** Where each graph runs, by `PACK/GRAPH`, if the provider is WebGPU. */
      ...(this.#options.executionProvider === 'webgpu' && {
        graphs: Object.fromEntries(this.#current.pool.ready[0]?.loaded?.graphs ?? []),
      }),
      /** Synthesis threads that hang inside native code, where they cannot be ended. */
      hungThreads: this.#hungThreads.size,
    };
  }

  /** What the operator should attend to, although speech may be sent here. */
  warnings(): readonly string[] {
    const { hungThreads, contextsOfOlderVoices } = this.status();
    const warnings = [];
    if (this.gpuIsLost)
      warnings.push(
        'the GPU failed, and the CPU runs all models: the log says why. To use the GPU again, restart the service',
      );
    if (hungThreads > 0)
      warnings.push(
        `${hungThreads} synthesis threads hang inside a model run: restart the service when convenient`,
      );
    if (contextsOfOlderVoices > 0)
      warnings.push(
        `${contextsOfOlderVoices} contexts keep the voices from before a reload: their memory, and the next reload, wait`,
      );
    for (const { fault } of this.#current.findings.slice(0, FINDINGS_SHOWN_MAX))
      warnings.push(`voices: ${fault}`);
    return warnings;
  }

  /** A context begins. @returns the generation that it uses until it leaves or moves */
  enter(): Generation {
    this.#current.contexts++;
    return this.#current;
  }

  /** A context is over, or it moved and its last segment here ended. */
  leave(generation: Generation): void {
    const live = this.#all.find((candidate) => candidate === generation);
    if (live === undefined) return;
    live.contexts--;
    this.#closeOlder();
  }

  /** @returns the current generation, entered, if that has the voice at the same rate, within an utterance of the same files; else `from` */
  move(from: Generation, voiceId: string, sampleRateHz: number, isMidUtterance: boolean): Generation {
    const { voices, identities } = this.#current;
    const identity = identities.get(voiceId);
    if (isMidUtterance && (identity === undefined || identity !== from.identities.get(voiceId))) return from;
    if (!voices.speakerIds.includes(voiceId) || voices.sampleRateHz(voiceId) !== sampleRateHz) return from;
    return this.enter();
  }

  /** Resolves when no older generation is left: another one may be loaded. */
  async settled(): Promise<void> {
    this.#reloadsWaiting++;
    try {
      while (this.#older !== undefined && !this.#closing) await once(this, 'closed');
    } finally {
      this.#reloadsWaiting--;
    }
  }

  /**
   * Loads voices while the current ones go on speaking, then makes them current. Call it when `settled`.
   * @returns false if the generations were closed meanwhile
   * @throws the reason why the voices cannot be loaded; nothing changes then
   */
  async load(voices: Voices): Promise<boolean> {
    if (this.#closing) {
      voices.release();
      return false;
    }
    if (this.#loading !== undefined || this.#older !== undefined) throw new Error('two generations are live');
    if (this.#hungThreads.isOverBound) {
      voices.release();
      throw new Error(
        `${this.#hungThreads.size} synthesis threads hang inside a model run: restart the service`,
      );
    }
    const next = this.#begin(voices);
    this.#loading = next;
    try {
      await next.pool.loaded();
      const [out] = next.findings.slice(voices.findings.length);
      if (out !== undefined) throw new Error(out.fault);
      if (cudaThreads(next) < cudaThreads(this.#current))
        throw new Error('CUDA cannot be used for them beside the current voices (see the log)');
    } catch (error) {
      await this.#end(next);
      if (this.#isClosing) return false;
      throw error;
    } finally {
      this.#loading = undefined;
    }
    if (this.#isClosing) return false;
    this.#older = this.#current;
    this.#older.pool.retire();
    this.#current = next;
    const { olderVoicesMsMax } = this.#options.bounds;
    this.#overdueTimer = setTimeout(() => this.#reportOverdue(), olderVoicesMsMax).unref();
    this.emit('capacity', next.pool.ready.length);
    this.emit('switched');
    this.#closeOlder();
    return true;
  }

  /** @returns false as `SynthesisPool.close`, or if a thread hangs inside native code */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    clearTimeout(this.#overdueTimer);
    this.emit('closed');
    const all = this.#all;
    const clean = await Promise.all(all.map(({ pool }) => pool.close(timeoutMs)));
    for (const { release } of all) release();
    return clean.every(Boolean) && this.#hungThreads.size === 0;
  }

  /** A getter, so that the compiler does not narrow it across an `await`. */
  get #isClosing(): boolean {
    return this.#closing;
  }

  get #all(): Live[] {
    return [this.#current, this.#older, this.#loading].filter((live) => live !== undefined);
  }

  #begin({ catalogue, packs, findings, release }: Voices): Live {
    const pool = new SynthesisPool({ ...this.#options, packs, hungThreads: this.#hungThreads });
    const live: Live = {
      number: ++this.#numbers,
      voices: catalogue,
      packs,
      loadedPacks: packs,
      identities: new Map(packs.flatMap((pack) => pack.voices.map(({ id }) => [id, pack.identity]))),
      findings,
      pool,
      release,
      contexts: 0,
      isClosing: false,
    };
    pool.on('pack-out', (pack, loadFault) => this.#takeOut(live, pack, loadFault));
    pool.on('restart', () => this.#restarts++);
    pool.on('pack-loaded', (ms) => {
      this.#packLoads.count++;
      this.#packLoads.ms += ms;
    });
    pool.on('thread', (...thread) => this.emit('thread', ...thread));
    pool.once('thread', (_, { graphs }) => {
      if (graphs.size > 0)
        this.#log.info(
          { generation: live.number, graphs: Object.fromEntries(graphs) },
          'where the graphs run',
        );
    });
    pool.on('changed', () => {
      if (this.#current === live) this.emit('capacity', pool.ready.length);
    });
    return live;
  }

  /** Its voices leave the catalogue, of each generation that has these files, unless another load may succeed. */
  #takeOut(live: Live, { name, stamp }: VoicePack, loadFault: string | null): void {
    const fault = loadFault ?? 'it hung a thread, or ended several: it is read again when its files change';
    live.packs = live.packs.filter((pack) => pack.name !== name);
    live.voices = catalogueOf(live.packs);
    live.findings = [...live.findings, { pack: name, fault: `${name}: ${fault}` }];
    this.#log.error({ pack: name, generation: live.number, fault }, 'a voice pack is out');
    if (stamp === undefined || loadFault !== null) return;
    this.emit('pack-hung', stamp, fault);
    for (const { pool } of this.#all) pool.takeOut((pack) => pack.stamp === stamp);
  }

  #closeOlder(): void {
    const older = this.#older;
    if (older === undefined || older.isClosing || older.contexts > 0) return;
    older.isClosing = true;
    clearTimeout(this.#overdueTimer);
    // Jobs that still run belong to contexts that are over.
    void this.#end(older).then(() => {
      this.#older = undefined;
      if (!this.#closing) this.#log.info({ generation: older.number }, 'the older voices are unloaded');
      this.emit('closed');
    });
  }

  #reportOverdue(): void {
    this.#overdueTimer = setTimeout(() => this.#reportOverdue(), OVERDUE_LOOK_MS).unref();
    this.emit('overdue', this.#reloadsWaiting > 0);
  }

  /** If a thread hangs, the watchdog finds it and the pool gives it up. */
  async #end({ pool, release }: Live): Promise<void> {
    while (!(await pool.close(CLOSE_MS_MAX)) && !this.#closing);
    release();
  }
}
