/**
 * Starts the actor threads, carries mail to and from them, links them to the synthesis threads, and replaces a thread
 * that dies or hangs. A context stays on the thread where it was opened.
 *
 * The replacement of a dead thread has a number of its own. Ports keep no common order, so a job for the new thread may
 * reach a synthesis thread before the new port does; with the old number its audio would go to the dead thread.
 */
import { EventEmitter, once } from 'node:events';
import { Worker, type MessagePort } from 'node:worker_threads';
import { describeFault } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { encodingNames, type Encoding } from '../api/formats.js';
import { TickBatch } from '../tick.js';
import { EffortTable, type Effort } from './effort.js';
import { unpackFrames, type FrameMail } from './mail.js';
import { actorOfContext, firstContextId } from './messages.js';
import type {
  ActorCommand,
  ActorError,
  ActorReady,
  ActorThreadData,
  ActorThreadMessage,
  Frame,
} from './messages.js';
import { Vitals } from './vitals.js';
import type { Watchdog } from './watchdog.js';

interface ActorThreadsEvents {
  frame: [frame: Frame];
  /** The thread died: its contexts are lost. A new thread takes its place. */
  lost: [actor: number];
  /** A replacement runs: link it to the synthesis threads. */
  started: [actor: number];
  /** A thread became ready, or ended. */
  changed: [];
  /** A load measured what the encodings cost. */
  costs: [costs: ActorReady['encodingCosts']];
}

interface ActorThread {
  readonly worker: Worker;
  /** What its encoding costs, by encoding. */
  readonly effort: EffortTable;
  readonly outgoing: TickBatch<ActorCommand>;
  /** Contexts open there. */
  contexts: number;
  nextContextId: number;
  /** Its encoders are loaded. */
  ready: boolean;
}

/** Milliseconds before a thread that died is started again: repeated deaths must not become a tight loop. */
const RESPAWN_DELAY_MS = 50;
/** The same for a thread that never became ready: the cause probably persists. */
const FAILED_START_DELAY_MS = 1_000;

export interface ActorThreadsOptions {
  readonly threads: number;
  readonly bounds: Bounds;
  /** Backs `ClockTable`. */
  readonly clocks: SharedArrayBuffer;
  readonly watchdog: Watchdog;
  readonly entry: URL;
  readonly log: Log;
}

export class ActorThreads extends EventEmitter<ActorThreadsEvents> {
  readonly #options: ActorThreadsOptions;
  readonly #threads = new Map<number, ActorThread>();
  readonly #respawns = new Set<NodeJS.Timeout>();
  #nextActor = 0;
  #closing = false;
  #restarts = 0;

  constructor(options: ActorThreadsOptions) {
    super();
    this.#options = options;
    for (let i = 0; i < options.threads; i++) this.#spawn();
  }

  /** The numbers of the threads that are alive. */
  get actors(): Iterable<number> {
    return this.#threads.keys();
  }

  /** Threads that ended and were replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  get readyThreads(): number {
    return [...this.#threads.values()].filter((thread) => thread.ready).length;
  }

  /** What encoding has cost since this was last called. */
  *takeEffort(): Iterable<readonly [Encoding, Effort]> {
    for (const { effort } of this.#threads.values())
      for (const [row, encoding] of encodingNames.entries()) yield [encoding, effort.take(row)];
  }

  get isWhole(): boolean {
    return this.readyThreads === this.#options.threads;
  }

  /**
   * Resolves when all threads have loaded their encoders.
   *
   * @throws if one ended instead
   */
  async loaded(): Promise<void> {
    while (!this.isWhole) {
      if (this.#threads.size < this.#options.threads)
        throw new Error('an actor thread could not start: see the log');
      await once(this, 'changed');
    }
  }

  /** @returns an id for a new context on the thread with the fewest contexts; `undefined` while no thread is ready */
  assign(): number | undefined {
    let best: ActorThread | undefined;
    for (const thread of this.#threads.values())
      if (thread.ready && (best === undefined || thread.contexts < best.contexts)) best = thread;
    if (best === undefined) return undefined;
    best.contexts++;
    return best.nextContextId++;
  }

  /** The context is over. */
  unassign(contextId: number): void {
    const thread = this.#threads.get(actorOfContext(contextId));
    if (thread !== undefined) thread.contexts--;
  }

  /** Commands of one tick travel together, in order. A dead thread's commands are dropped with its contexts. */
  send(command: ActorCommand): void {
    this.#threads.get(actorOfContext(command.contextId))?.outgoing.add(command);
  }

  /** Hands the thread a port on which a synthesis thread will send chunks. */
  link(actor: number, port: MessagePort): void {
    const thread = this.#threads.get(actor);
    const message: ActorThreadMessage = { type: 'synthesis', port };
    // A closed port ends the link on the other side too. Without one, jobs there would wait for a port for ever.
    if (thread === undefined) port.close();
    else thread.worker.postMessage(message, [port]);
  }

  /** Ends all threads. Idempotent. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#respawns) clearTimeout(timer);
    await Promise.all([...this.#threads.values()].map((thread) => thread.worker.terminate()));
  }

  /** @returns the thread's number */
  #spawn(): number {
    const { bounds, clocks, entry, log, watchdog } = this.#options;
    const actor = this.#nextActor++;
    const vitals = new Vitals();
    const effort = new EffortTable(encodingNames.length);
    const workerData: ActorThreadData = {
      actor,
      bounds,
      vitals: vitals.buffer,
      effort: effort.buffer,
      clocks,
    };
    const worker = new Worker(entry, {
      workerData,
      name: `actors-${actor}`,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: bounds.actorHeapMiBMax },
    });
    const outgoing = new TickBatch<ActorCommand>((commands) => {
      const message: ActorThreadMessage = { type: 'commands', commands };
      worker.postMessage(message);
    });
    const thread: ActorThread = {
      worker,
      effort,
      contexts: 0,
      nextContextId: firstContextId(actor),
      outgoing,
      ready: false,
    };
    this.#threads.set(actor, thread);
    worker.on('message', (mail: FrameMail | ActorError | ActorReady) => {
      if ('encodingCosts' in mail) this.#onReady(actor, thread, vitals, mail);
      else if ('reason' in mail)
        log.error({ actor, reason: mail.reason }, 'mail to an actor thread belongs to no context');
      else for (const frame of unpackFrames(mail)) this.#onFrame(actor, thread, frame);
    });
    worker.on('error', (error: Error) =>
      log.error({ actor, ...describeFault(error) }, 'actor thread failed'),
    );
    worker.on('exit', () => {
      watchdog.unwatch(vitals);
      this.#onExit(actor, thread.ready);
    });
    return actor;
  }

  #onReady(actor: number, thread: ActorThread, vitals: Vitals, { encodingCosts }: ActorReady): void {
    thread.ready = true;
    this.emit('costs', encodingCosts);
    this.#options.watchdog.watch(vitals, () => {
      this.#options.log.error({ actor }, 'an actor thread hangs: it is ended');
      // Unlike a synthesis thread it runs no native code, so it can be ended at any moment.
      void thread.worker.terminate();
    });
    this.emit('changed');
  }

  #onFrame(actor: number, { nextContextId }: ActorThread, frame: Frame): void {
    const { contextId, type } = frame;
    if (contextId >= firstContextId(actor) && contextId < nextContextId) this.emit('frame', frame);
    else
      this.#options.log.error(
        { actor, contextId, type },
        'an actor thread sent a frame of a context that it never had',
      );
  }

  #onExit(actor: number, wasReady: boolean): void {
    this.#threads.delete(actor);
    this.emit('changed');
    if (this.#closing) return;
    this.#restarts++;
    this.#options.log.error({ actor }, 'actor thread ended; a new one starts');
    this.emit('lost', actor);
    const timer = setTimeout(
      () => {
        this.#respawns.delete(timer);
        this.emit('started', this.#spawn());
      },
      wasReady ? RESPAWN_DELAY_MS : FAILED_START_DELAY_MS,
    );
    this.#respawns.add(timer);
  }
}
