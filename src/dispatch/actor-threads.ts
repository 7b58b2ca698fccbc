/**
 * The actor threads: starts them, carries mail to and from them, links them to the synthesis threads, and replaces
 * one that dies. A context stays on the thread where it was opened.
 */
import { EventEmitter } from 'node:events';
import { Worker, type MessagePort } from 'node:worker_threads';
import { limits } from '../limits.js';
import type { Log } from '../log.js';
import { packCommands, TickBatch, unpackFrames, type FrameMail } from './mail.js';
import type { ActorCommand, ActorThreadMessage, Frame } from './messages.js';

interface ActorThreadsEvents {
  frame: [frame: Frame];
  /** The thread died: its contexts are lost. A new one takes its place and number. */
  lost: [actor: number];
  /** A thread runs and waits for its links. */
  started: [actor: number];
}

interface ActorThread {
  readonly worker: Worker;
  readonly outgoing: TickBatch<ActorCommand>;
  contexts: number;
  alive: boolean;
}

/** Milliseconds before a thread that died is started again: at once, but never in a tight loop. */
const RESPAWN_DELAY_MS = 50;

export class ActorThreads extends EventEmitter<ActorThreadsEvents> {
  readonly #entry: URL;
  readonly #log: Log;
  readonly #threads: ActorThread[] = [];
  readonly #respawns = new Set<NodeJS.Timeout>();
  #closing = false;

  constructor(options: { readonly threads: number; readonly entry: URL; readonly log: Log }) {
    super();
    this.#entry = options.entry;
    this.#log = options.log;
    for (let actor = 0; actor < options.threads; actor++) this.#threads.push(this.#spawn(actor));
  }

  get size(): number {
    return this.#threads.length;
  }

  get isWhole(): boolean {
    return this.#threads.every((thread) => thread.alive);
  }

  /** The thread with the fewest contexts, to open one more there; `undefined` while none is alive. */
  assign(): number | undefined {
    let best: number | undefined;
    this.#threads.forEach((thread, actor) => {
      if (!thread.alive) return;
      if (best === undefined || thread.contexts < (this.#threads[best]?.contexts ?? 0)) best = actor;
    });
    if (best !== undefined) this.#thread(best).contexts++;
    return best;
  }

  /** A context assigned earlier is over. */
  unassign(actor: number): void {
    const thread = this.#thread(actor);
    thread.contexts = Math.max(0, thread.contexts - 1);
  }

  /** Commands of one tick travel together, in order. What is sent to a dead thread is dropped with its contexts. */
  send(actor: number, command: ActorCommand): void {
    this.#thread(actor).outgoing.add(command);
  }

  /** Hands the thread a port on which a synthesis thread will send chunks. */
  link(actor: number, port: MessagePort): void {
    const message: ActorThreadMessage = { type: 'synthesis', port };
    this.#thread(actor).worker.postMessage(message, [port]);
  }

  /** Ends all threads. Idempotent. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#respawns) clearTimeout(timer);
    await Promise.all(this.#threads.map((thread) => thread.worker.terminate()));
  }

  #thread(actor: number): ActorThread {
    const thread = this.#threads[actor];
    if (thread === undefined) throw new RangeError(`no actor thread ${actor}`);
    return thread;
  }

  #spawn(actor: number): ActorThread {
    const worker = new Worker(this.#entry, {
      name: `actors-${actor}`,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: limits.actorHeapMiBMax },
    });
    const thread: ActorThread = {
      worker,
      contexts: 0,
      alive: true,
      outgoing: new TickBatch((commands) => {
        const mail = packCommands(commands);
        const message: ActorThreadMessage = { type: 'commands', mail };
        worker.postMessage(message);
      }),
    };
    worker.on('message', (mail: FrameMail) => {
      for (const frame of unpackFrames(mail)) this.emit('frame', frame);
    });
    worker.on('error', (error: Error) => this.#log.error({ actor, error: error.message }, 'actor thread failed'));
    worker.on('exit', () => this.#onExit(actor, thread));
    return thread;
  }

  #onExit(actor: number, thread: ActorThread): void {
    thread.alive = false;
    if (this.#closing) return;
    this.#log.error({ actor }, 'actor thread gone; a new one starts');
    this.emit('lost', actor);
    const timer = setTimeout(() => {
      this.#respawns.delete(timer);
      this.#threads[actor] = this.#spawn(actor);
      this.emit('started', actor);
    }, RESPAWN_DELAY_MS);
    this.#respawns.add(timer);
  }
}
