/**
 * The voices that speak, and those that spoke before them: a pool of threads for each. New contexts begin with the
 * voices of now; one that is under way keeps those with which it began.
 *
 *   loading --ready--> current --(the next is current)--> older --(nobody is with it)--> closed
 *   loading --(cannot load, or not in time)--> closed
 *
 * There are at most two at a time. So that nobody keeps the next from being loaded, who idles with older voices is told
 * to end after a time.
 */
import { EventEmitter, once } from 'node:events';
import type { Log } from '../log.js';
import { SynthesisPool, type SynthesisPoolOptions } from './synthesis-pool.js';
import type { SynthesisThread } from './synthesis-thread.js';
import type { VoiceCatalogue, VoicePack, Voices } from './voices.js';

export interface GenerationsOptions extends Omit<SynthesisPoolOptions, 'packs'> {
  /** Milliseconds that older voices are kept for who does not speak. */
  readonly olderVoicesMsMax: number;
}

export interface Generation {
  /** 1, 2, 3 ... */
  readonly number: number;
  readonly voices: VoiceCatalogue;
  readonly packs: readonly VoicePack[];
  readonly pool: SynthesisPool;
}

interface Live extends Generation {
  readonly release: () => void;
  contexts: number;
  isClosing: boolean;
}

interface GenerationsEvents {
  /** A thread has its voices loaded: link it to the actor threads. */
  thread: [thread: SynthesisThread];
  /** The number of threads that can speak with the voices of now changed. */
  capacity: [readyThreads: number];
  /** Other voices are those of now: contexts in which nothing is under way can move to them. */
  switched: [];
  /** Older voices were kept for long enough: contexts that do not speak are to end. Again and again, until all did. */
  overdue: [];
  /** An older generation is closed. */
  closed: [];
}

/** Milliseconds between looks for contexts of older voices that came to rest. */
const OVERDUE_LOOK_MS = 1_000;

/** Milliseconds that the threads of a generation nobody is with may take to end; then it is tried again. */
const CLOSE_MS_MAX = 5_000;

const gpuThreads = ({ pool }: Generation): number =>
  pool.ready.filter(({ executionProvider }) => executionProvider === 'cuda').length;

export class Generations extends EventEmitter<GenerationsEvents> {
  readonly #options: GenerationsOptions;
  readonly #log: Log;
  #current: Live;
  #older: Live | undefined;
  #loading: Live | undefined;
  #numbers = 0;
  #restarts = 0;
  #closing = false;
  #overdueTimer: NodeJS.Timeout | undefined;

  constructor(voices: Voices, options: GenerationsOptions) {
    super();
    this.#options = options;
    this.#log = options.log;
    this.#current = this.#begin(voices);
  }

  get current(): Generation {
    return this.#current;
  }

  /** The threads that are ready, of every generation. */
  get ready(): SynthesisThread[] {
    return this.#all.flatMap(({ pool }) => pool.ready);
  }

  /** Threads that died or hung in service, and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Contexts that are with older voices than those of now. */
  get olderContexts(): number {
    return this.#older?.contexts ?? 0;
  }

  get isLoading(): boolean {
    return this.#loading !== undefined;
  }

  isCurrent(generation: Generation): boolean {
    return generation === this.#current;
  }

  /** A context begins. @returns whose it is until it leaves or moves */
  enter(): Generation {
    this.#current.contexts++;
    return this.#current;
  }

  /** A context is over. */
  leave(generation: Generation): void {
    const live = this.#all.find((candidate) => candidate === generation);
    if (live === undefined) return;
    live.contexts--;
    this.#closeOlder();
  }

  /** A context may change its voices. @returns whose it is now: as before, if the voices of now have none for it */
  move(from: Generation, voiceId: string, sampleRateHz: number): Generation {
    const { voices } = this.#current;
    if (!voices.speakerIds.includes(voiceId) || voices.sampleRateHz(voiceId) !== sampleRateHz) return from;
    const to = this.enter();
    this.leave(from);
    return to;
  }

  /** Resolves when there is none but the current: another may be loaded. */
  async alone(): Promise<void> {
    while (this.#older !== undefined && !this.#closing) await once(this, 'closed');
  }

  /**
   * Loads voices while the current ones go on speaking, then makes them current. To be called when `alone`.
   * @returns false if it was closed meanwhile
   * @throws the reason why they cannot be loaded: all is then as it was
   */
  async load(voices: Voices): Promise<boolean> {
    if (this.#closing) {
      voices.release();
      return false;
    }
    if (this.#loading !== undefined || this.#older !== undefined) throw new Error('two generations are live');
    const { size, isOverBound } = this.#options.abandoned;
    if (isOverBound) {
      voices.release();
      throw new Error(`${size} synthesis threads hang inside a model run: restart the service`);
    }
    const next = this.#begin(voices);
    this.#loading = next;
    try {
      await next.pool.loaded();
      if (gpuThreads(next) < gpuThreads(this.#current))
        throw new Error('CUDA cannot be used for them beside those that speak (see the log)');
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
    this.#overdueTimer = setTimeout(() => this.#tellOverdue(), this.#options.olderVoicesMsMax).unref();
    this.emit('capacity', next.pool.ready.length);
    this.emit('switched');
    this.#closeOlder();
    return true;
  }

  /** @returns as `SynthesisPool.close` */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    clearTimeout(this.#overdueTimer);
    this.emit('closed');
    const all = this.#all;
    const clean = await Promise.all(all.map(({ pool }) => pool.close(timeoutMs)));
    for (const { release } of all) release();
    return clean.every(Boolean);
  }

  /** Asked anew after each wait. */
  get #isClosing(): boolean {
    return this.#closing;
  }

  get #all(): Live[] {
    return [this.#current, this.#older, this.#loading].filter((live) => live !== undefined);
  }

  #begin({ catalogue, packs, release }: Voices): Live {
    const pool = new SynthesisPool({ ...this.#options, packs });
    const live: Live = {
      number: ++this.#numbers,
      voices: catalogue,
      packs,
      pool,
      release,
      contexts: 0,
      isClosing: false,
    };
    pool.on('restart', () => this.#restarts++);
    pool.on('thread', (thread) => this.emit('thread', thread));
    pool.on('capacity', (readyThreads) => {
      if (this.#current === live) this.emit('capacity', readyThreads);
    });
    return live;
  }

  #closeOlder(): void {
    const older = this.#older;
    if (older === undefined || older.isClosing || older.contexts > 0) return;
    // What still runs of it is of contexts that are over.
    older.isClosing = true;
    clearTimeout(this.#overdueTimer);
    void this.#end(older).then(() => {
      this.#older = undefined;
      if (!this.#closing) this.#log.info({ generation: older.number }, 'the voices before are unloaded');
      this.emit('closed');
    });
  }

  #tellOverdue(): void {
    this.#overdueTimer = setTimeout(() => this.#tellOverdue(), OVERDUE_LOOK_MS).unref();
    this.emit('overdue');
  }

  /** Its threads hang at worst, in a step or as they load: then the watchdog takes them out of the pool. */
  async #end({ pool, release }: Live): Promise<void> {
    while (!(await pool.close(CLOSE_MS_MAX)) && !this.#closing);
    release();
  }
}
