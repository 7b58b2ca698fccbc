/**
 * The actor threads: starts them, carries mail to and from them, links them to the synthesis threads, and replaces
 * one that dies or hangs. A context stays on the thread where it was opened.
 *
 * A thread's number is its own: the replacement of a dead one has another. Ports keep no common order, so a job for
 * the new thread may reach a synthesis thread before the new port does; under its old number it would speak to the dead.
 */
import { EventEmitter, once } from 'node:events';
import { Worker, type MessagePort } from 'node:worker_threads';
import { describeFault } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { TickBatch } from '../tick.js';
import { packCommands, unpackFrames, type FrameMail } from './mail.js';
import { ACTOR_READY } from './messages.js';
import type { ActorCommand, ActorThreadData, ActorThreadMessage, Frame } from './messages.js';
import { Vitals } from './vitals.js';
import type { Watchdog } from './watchdog.js';

interface ActorThreadsEvents {
  frame: [frame: Frame];
  /** The thread died: its contexts are lost. A new one takes its place. */
  lost: [actor: number];
  /** A replacement runs and waits for its links. */
  started: [actor: number];
  /** A thread became ready, or ended. */
  changed: [];
}

interface ActorThread {
  readonly worker: Worker;
  readonly outgoing: TickBatch<ActorCommand>;
  contexts: number;
  /** Its encoders are loaded. */
  ready: boolean;
}

/** Milliseconds before a thread that died is started again: at once, but never in a tight loop. */
const RESPAWN_DELAY_MS = 50;
/** The same for one that never became ready: what it lacks it will lack again. */
const FAILED_START_DELAY_MS = 1_000;

export class ActorThreads extends EventEmitter<ActorThreadsEvents> {
  readonly #entry: URL;
  readonly #log: Log;
  readonly #watchdog: Watchdog;
  readonly #size: number;
  readonly #bounds: Bounds;
  readonly #threads = new Map<number, ActorThread>();
  readonly #respawns = new Set<NodeJS.Timeout>();
  #nextActor = 0;
  #closing = false;
  #restarts = 0;

  constructor(options: {
    readonly threads: number;
    readonly bounds: Bounds;
    readonly watchdog: Watchdog;
    readonly entry: URL;
    readonly log: Log;
  }) {
    super();
    this.#entry = options.entry;
    this.#log = options.log;
    this.#watchdog = options.watchdog;
    this.#size = options.threads;
    this.#bounds = options.bounds;
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

  get isWhole(): boolean {
    return this.readyThreads === this.#size;
  }

  /**
   * Resolves when all threads have loaded their encoders.
   * @throws when one ended instead
   */
  async loaded(): Promise<void> {
    while (!this.isWhole) {
      if (this.#threads.size < this.#size) throw new Error('an actor thread could not start: see the log');
      await once(this, 'changed');
    }
  }

  /** The thread with the fewest contexts, to open one more there; `undefined` while none is ready. */
  assign(): number | undefined {
    let best: { actor: number; thread: ActorThread } | undefined;
    for (const [actor, thread] of this.#threads)
      if (thread.ready && (best === undefined || thread.contexts < best.thread.contexts))
        best = { actor, thread };
    if (best !== undefined) best.thread.contexts++;
    return best?.actor;
  }

  /** A context assigned earlier is over. */
  unassign(actor: number): void {
    const thread = this.#threads.get(actor);
    if (thread !== undefined) thread.contexts--;
  }

  /** Commands of one turn of the event loop travel together, in order. What is sent to a dead thread is dropped with its contexts. */
  send(actor: number, command: ActorCommand): void {
    this.#threads.get(actor)?.outgoing.add(command);
  }

  /** Hands the thread a port on which a synthesis thread will send chunks. */
  link(actor: number, port: MessagePort): void {
    const thread = this.#threads.get(actor);
    const message: ActorThreadMessage = { type: 'synthesis', port };
    // Closed, the port still tells the other side that nobody listens; dropped, it would leave jobs waiting for it.
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
    const actor = this.#nextActor++;
    const vitals = new Vitals();
    const workerData: ActorThreadData = { bounds: this.#bounds, vitals: vitals.buffer };
    const worker = new Worker(this.#entry, {
      workerData,
      name: `actors-${actor}`,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: this.#bounds.actorHeapMiBMax },
    });
    const outgoing = new TickBatch<ActorCommand>((commands) => {
      const message: ActorThreadMessage = { type: 'commands', mail: packCommands(commands) };
      worker.postMessage(message);
    });
    const thread: ActorThread = { worker, contexts: 0, outgoing, ready: false };
    this.#threads.set(actor, thread);
    worker.on('message', (mail: FrameMail | typeof ACTOR_READY) => {
      if (mail !== ACTOR_READY) for (const frame of unpackFrames(mail)) this.emit('frame', frame);
      else {
        thread.ready = true;
        this.#watchdog.watch(vitals, () => {
          this.#log.error({ actor }, 'an actor thread hangs: it is ended');
          // It runs no native code that this could meet.
          void worker.terminate();
        });
        this.emit('changed');
      }
    });
    worker.on('error', (error: Error) =>
      this.#log.error({ actor, ...describeFault(error) }, 'actor thread failed'),
    );
    worker.on('exit', () => {
      this.#watchdog.unwatch(vitals);
      this.#onExit(actor, thread.ready);
    });
    return actor;
  }

  #onExit(actor: number, wasReady: boolean): void {
    this.#threads.delete(actor);
    this.emit('changed');
    if (this.#closing) return;
    this.#restarts++;
    this.#log.error({ actor }, 'actor thread gone; a new one starts');
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
