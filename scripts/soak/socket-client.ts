/** A client that streams over WebSockets: one life after the other, each as drawn. */
import { ReadAhead } from '../rig/playback.js';
import { isGoingAway, SocketClosedError, SocketConnection, type ServerFrame } from '../rig/socket.js';
import { SoakClient } from './client.js';
import { ContextRun } from './context-run.js';
import { drawLife, type LifePlan } from './population.js';

/** A stalling reader reads nothing for `stallMs` of every `stallEveryMs`. */
const stallEveryMs = 12_000;
const stallMs = 5_000;

export class SocketClient extends SoakClient {
  readonly #runs = new Map<string, ContextRun>();
  #life = -1;
  #plan: LifePlan | null = null;
  /** `null`: the service has closed it. */
  #connection: SocketConnection | null = null;
  #readAhead: ReadAhead | null = null;
  #nextContext = 0;
  /** Beginnings of the errors that were provoked, in order. */
  #provoked: string[] = [];
  /** It refused to start a context, so it must close the socket. */
  #isServiceStopping = false;

  /** Its contexts speak to their ends. */
  override stop(): void {
    super.stop();
    for (const run of this.#runs.values()) run.stop();
  }

  protected override get name(): string {
    return `${this.parts.client}.${this.#life}`;
  }

  protected override async act(): Promise<number> {
    const { answerMsMax, client, meter, seed, ticks } = this.parts;
    const plan = drawLife(seed, client, ++this.#life);
    let isOpen = false;
    const connection = this.#connect(plan);
    void connection.opened().then(
      () => (isOpen = true),
      // `onError` reports it.
      () => undefined,
    );
    const isGone = () => this.#connection === null;
    if (!(await this.until(() => isOpen || isGone(), answerMsMax))) this.#closeLate('a handshake');
    meter.sockets++;
    while (!isGone() && !this.#mayLeave(plan)) {
      await ticks.next();
      this.#read();
    }
    meter.sockets--;
    if (!isGone() && !this.#isServiceStopping) connection.leave(plan.ending, () => (this.#connection = null));
    if (!(await this.until(isGone, answerMsMax))) this.#closeLate('a connection');
    for (const run of this.#runs.values()) run.abandon();
    this.#runs.clear();
    return plan.pauseMs;
  }

  #connect(plan: LifePlan): SocketConnection {
    const { key, target } = this.parts;
    this.#plan = plan;
    this.#nextContext = 0;
    this.#provoked = [];
    this.#isServiceStopping = false;
    const connection = new SocketConnection(
      { ...target, key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          if (!this.#mayMove(error, performance.now())) this.fault('sockets', error.message);
          this.#connection = null;
        },
      },
    );
    this.#connection = connection;
    this.#readAhead = new ReadAhead(connection);
    return connection;
  }

  #closeLate(what: string): void {
    this.fault('sockets', `no end of ${what}`);
    this.#connection?.close();
    this.#connection = null;
  }

  /** Its service stops: the next life connects to another. */
  #mayMove(error: Error, nowMs: number): boolean {
    const { drainMs, meter } = this.parts;
    if (drainMs === null || !isGoingAway(error)) return false;
    const owedMs = Math.max(0, ...[...this.#runs.values()].map((run) => run.owedMs(nowMs)));
    // A reset discards what was sent and not read yet.
    const mayBeUnread = !(error instanceof SocketClosedError) && this.#readAhead?.isPaused === true;
    if (owedMs > 0 && owedMs < drainMs && !mayBeUnread) return false;
    meter.moved++;
    if (owedMs > 0) meter.cut++;
    return true;
  }

  /** Begins its next context when it is time. @returns whether its life is over */
  #mayLeave({ contexts }: LifePlan): boolean {
    for (const [id, run] of this.#runs) if (run.isOver) this.#runs.delete(id);
    const last = [...this.#runs.values()].at(-1);
    if (last?.hasVanished === true) return true;
    const overlaps = contexts[this.#nextContext - 1]?.overlaps === true && this.#runs.size === 1;
    if (last !== undefined && !(overlaps && last.isLast)) return false;
    if (this.#isServiceStopping) return last === undefined;
    if (!this.isStopping && this.#nextContext < contexts.length) this.#beginContext();
    else return last === undefined && this.#provoked.length === 0;
    return false;
  }

  #beginContext(): void {
    const { contexts, reader, vanishes, wrong } = this.#plan!;
    const index = this.#nextContext++;
    const provocation = wrong[index] ?? null;
    if (provocation !== null) {
      this.#provoked.push(provocation.error);
      this.#connection?.write(provocation.frame);
    }
    const id = `${this.name}.${index}`;
    const run = new ContextRun({
      ...this.parts,
      id,
      plan: contexts[index]!,
      reader,
      vanishes: vanishes && index === contexts.length - 1,
      write: (frame) => this.#connection?.write(frame),
    });
    this.#runs.set(id, run);
  }

  /** Reads as its kind of reader does. */
  #read(): void {
    const reader = this.#plan?.reader;
    if (reader === 'eager' || this.isStopping) {
      this.#readAhead?.resume();
      return;
    }
    const nowMs = performance.now();
    const isStalled = reader === 'stalling' && (nowMs + this.parts.client * 1_000) % stallEveryMs < stallMs;
    let aheadMs = 0;
    for (const run of this.#runs.values()) aheadMs += run.aheadMs(nowMs);
    if (isStalled) this.#readAhead?.pause();
    else this.#readAhead?.update(aheadMs);
  }

  #onMessage(json: string): void {
    const { mayFail, meter } = this.parts;
    meter.frames++;
    let frame: ServerFrame;
    try {
      frame = JSON.parse(json) as ServerFrame;
    } catch {
      this.fault('frames', `no JSON: ${json.slice(0, 200)}`);
      return;
    }
    if (this.#provoked[0] !== undefined && frame.error?.startsWith(this.#provoked[0]) === true) {
      this.#provoked.shift();
      return;
    }
    const run = this.#runs.get(frame.context_id ?? '');
    if (frame.error !== undefined && mayFail) {
      // A context that failed has another error for each frame that was written before its client knew.
      if (run?.isOver === false) meter.failures++;
      run?.abandon();
      return;
    }
    if (run === undefined) {
      this.fault('frames', `a frame of no open context: ${json.slice(0, 200)}`);
      return;
    }
    if (run.onFrame(frame, performance.now()) === 'start-refused') this.#isServiceStopping = true;
    // At once: a slow reader must not read everything in the system's buffers.
    this.#read();
  }
}
