/** A client that streams over WebSockets: one life after the other, each as drawn. */
import { ReadAhead } from '../rig/playback.js';
import {
  encodeFrame,
  encodeMessage,
  isGoingAway,
  opcodes,
  SocketClosedError,
  SocketConnection,
  type Leaving,
  type ServerFrame,
} from '../rig/socket.js';
import { SoakClient, type ClientParts } from './client.js';
import { ContextRun } from './context-run.js';
import type { Target } from './measures.js';
import { drawLife, type LifePlan, type WrongFrame } from './population.js';

/** A stalling reader reads nothing for `stallMs` of every `stallEveryMs`. */
const stallEveryMs = 12_000;
const stallMs = 5_000;

/** A frame that the service refuses, and the beginning of its error. */
const wrongMessage = (wrong: WrongFrame, target: Target): { frame: Buffer; error: string } => {
  const start = { voice_id: target.voices[0], model_id: 'default' };
  switch (wrong) {
    case 'no-object':
      return { frame: encodeMessage(['no frame']), error: 'invalid frame: ' };
    case 'unknown-context':
      return {
        frame: encodeMessage({ send_text: 'Nobody hears this.', context_id: 'nobody' }),
        error: 'unknown context_id: nobody',
      };
    case 'unknown-voice':
      return {
        frame: encodeMessage({ start_context: { ...start, voice_id: 'nobody' } }),
        error: "Unknown voice 'nobody'",
      };
    case 'two-kinds':
      return { frame: encodeMessage({ send_text: 'Both.', flush: true }), error: 'invalid frame: ' };
    case 'wrong-format':
      return {
        frame: encodeMessage({ start_context: { ...start, response_format: { encoding: 'flac' } } }),
        error: 'invalid frame: ',
      };
    case 'binary':
      return {
        frame: encodeFrame(Buffer.alloc(64, 7), { opcode: opcodes.binary }),
        error: 'invalid frame: binary',
      };
  }
};

export class SocketClient extends SoakClient {
  readonly #runs = new Map<string, ContextRun>();
  /** Beginnings of the errors that were provoked, in order. */
  readonly #provoked: string[] = [];
  #state: 'connecting' | 'here' | 'leaving' = 'connecting';
  #sinceMs = 0;
  #life = -1;
  #plan: LifePlan;
  #connection: SocketConnection | null = null;
  #readAhead: ReadAhead | null = null;
  #nextContext = 0;
  /** It refused to start a context, so it must close the socket. */
  #isServiceStopping = false;

  constructor(parts: ClientParts) {
    super(parts);
    this.#plan = drawLife(parts.seed, parts.client, 0);
  }

  /** Its contexts speak to their ends. */
  override stop(): void {
    super.stop();
    for (const run of this.#runs.values()) run.stop();
  }

  protected override act(nowMs: number): void {
    if (this.#state === 'here') {
      this.#live(nowMs);
      return;
    }
    if (nowMs - this.#sinceMs <= this.parts.answerMsMax) return;
    this.fault('sockets', `no end of ${this.#state}`);
    this.#connection?.close();
    this.#end();
  }

  protected override get name(): string {
    return `${this.parts.client}.${this.#life}`;
  }

  protected override begin(nowMs: number): void {
    const { client, key, seed, meter, target } = this.parts;
    this.#plan = drawLife(seed, client, ++this.#life);
    meter.lives++;
    this.#state = 'connecting';
    this.#sinceMs = nowMs;
    this.#nextContext = 0;
    this.#isServiceStopping = false;
    this.#provoked.length = 0;
    const connection = new SocketConnection(
      { ...target, key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          if (!this.#mayMove(error, performance.now())) this.fault('sockets', error.message);
          if (this.#state === 'here') meter.sockets--;
          this.#end();
        },
      },
    );
    this.#connection = connection;
    this.#readAhead = new ReadAhead(connection);
    connection.opened().then(
      () => {
        if (this.#state !== 'connecting' || this.#connection !== connection) return;
        this.#state = 'here';
        meter.sockets++;
      },
      // `onError` reports it.
      () => undefined,
    );
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

  #live(nowMs: number): void {
    for (const run of this.#runs.values()) run.tick(nowMs);
    const last = [...this.#runs.values()].at(-1);
    const { contexts, vanishes } = this.#plan;
    const isLastContext = this.#nextContext === contexts.length;
    if (vanishes && isLastContext && !this.isStopping && last?.isCut(nowMs) === true) {
      this.#leave(nowMs);
      return;
    }
    this.#read(nowMs);
    const overlaps = contexts[this.#nextContext - 1]?.overlaps === true && this.#runs.size === 1;
    const isFree = last === undefined || (overlaps && last.isLast);
    if (!isFree) return;
    if (this.#isServiceStopping) {
      if (last === undefined) this.#awaitEnd(nowMs);
      return;
    }
    if (!this.isStopping && !isLastContext) this.#beginContext(nowMs);
    else if (last === undefined && this.#provoked.length === 0) this.#leave(nowMs);
  }

  #beginContext(nowMs: number): void {
    const { contexts, reader, vanishes, wrong } = this.#plan;
    const { drainMs, target } = this.parts;
    const index = this.#nextContext++;
    const provocation = wrong[index] ?? null;
    if (provocation !== null) {
      const { frame, error } = wrongMessage(provocation, target);
      this.#provoked.push(error);
      this.#connection?.write(frame);
    }
    const id = `${this.name}.${index}`;
    const run = new ContextRun(
      {
        ...this.parts,
        id,
        plan: contexts[index]!,
        reader,
        vanishes: vanishes && index === contexts.length - 1,
        mayStop: drainMs !== null,
        write: (frame) => this.#connection?.write(frame),
      },
      nowMs,
    );
    this.#runs.set(id, run);
  }

  /** Reads as its kind of reader does. */
  #read(nowMs: number): void {
    const { reader } = this.#plan;
    if (reader === 'eager' || this.isStopping) {
      this.#readAhead?.resume();
      return;
    }
    const isStalled = reader === 'stalling' && (nowMs + this.parts.client * 1_000) % stallEveryMs < stallMs;
    let aheadMs = 0;
    for (const run of this.#runs.values()) aheadMs += run.aheadMs(nowMs);
    if (isStalled) this.#readAhead?.pause();
    else this.#readAhead?.update(aheadMs);
  }

  #onMessage(json: string): void {
    const { meter } = this.parts;
    const nowMs = performance.now();
    meter.frames++;
    let frame: ServerFrame;
    try {
      frame = JSON.parse(json) as ServerFrame;
    } catch {
      this.fault('frames', `no JSON: ${json.slice(0, 200)}`);
      return;
    }
    if (frame.error !== undefined && this.#provoked[0] !== undefined) {
      if (frame.error.startsWith(this.#provoked[0])) {
        this.#provoked.shift();
        return;
      }
    }
    const id = frame.context_id ?? '';
    const run = this.#runs.get(id);
    if (frame.error !== undefined && this.parts.mayFail) {
      // A context that failed has another error for each frame that was written before its client knew.
      if (run !== undefined) meter.failures++;
      run?.abandon();
      this.#runs.delete(id);
      return;
    }
    if (run === undefined) {
      this.fault('frames', `a frame of no open context: ${json.slice(0, 200)}`);
      return;
    }
    if (run.onFrame(frame, nowMs) === 'start-refused') this.#isServiceStopping = true;
    if (run.isOver) this.#runs.delete(id);
    // At once: a slow reader must not read everything in the system's buffers.
    if (this.#state === 'here') this.#read(nowMs);
  }

  #leave(nowMs: number): void {
    const how: Leaving = this.#plan.ending;
    this.#awaitEnd(nowMs);
    this.#connection?.leave(how, () => {
      if (this.#state === 'leaving') this.#end();
    });
  }

  #awaitEnd(nowMs: number): void {
    this.#state = 'leaving';
    this.#sinceMs = nowMs;
    this.parts.meter.sockets--;
  }

  #end(): void {
    for (const run of this.#runs.values()) run.abandon();
    this.#runs.clear();
    this.#connection = null;
    this.rest(this.#plan.pauseMs);
  }
}
