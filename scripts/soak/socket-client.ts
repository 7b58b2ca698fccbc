/** A client that streams over WebSockets: one life after the other, each as drawn. */
import type { LoopClock } from '../rig/loop-clock.js';
import { ReadAhead } from '../rig/playback.js';
import {
  encodeFrame,
  encodeMessage,
  opcodes,
  SocketConnection,
  type Leaving,
  type ServerFrame,
} from '../rig/socket.js';
import { answerMsMax, ContextRun } from './context-run.js';
import type { Target } from './measures.js';
import type { Meter } from './meter.js';
import { drawLife, type LifePlan, type WrongFrame } from './population.js';

/** A stalling reader reads nothing for `stallMs` of every `stallEveryMs`. */
const stallEveryMs = 12_000;
const stallMs = 5_000;

export interface ClientParts {
  readonly seed: number;
  readonly client: number;
  readonly key: string;
  readonly target: Target;
  /** The service may refuse what it has no capacity for. */
  readonly mayRefuse: boolean;
  readonly clock: LoopClock;
  readonly meter: Meter;
  /** When its first life begins. */
  readonly beginMs: number;
}

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

type State = 'away' | 'connecting' | 'here' | 'leaving' | 'gone';

export class SocketClient {
  readonly #parts: ClientParts;
  readonly #runs = new Map<string, ContextRun>();
  /** Beginnings of the errors that were provoked, in order. */
  readonly #provoked: string[] = [];
  #state: State = 'away';
  #sinceMs: number;
  #life = -1;
  #plan: LifePlan;
  #connection: SocketConnection | null = null;
  #readAhead: ReadAhead | null = null;
  #nextContext = 0;
  #isStopping = false;

  constructor(parts: ClientParts) {
    this.#parts = parts;
    this.#plan = drawLife(parts.seed, parts.client, 0);
    this.#sinceMs = parts.beginMs - this.#plan.pauseMs;
  }

  /** It was stopped, and has left. */
  get isGone(): boolean {
    return this.#state === 'gone';
  }

  /** Its contexts speak to their ends; then it leaves, and stays away until `resume`. */
  stop(): void {
    this.#isStopping = true;
    for (const run of this.#runs.values()) run.stop();
  }

  /** @param beginMs when its next life begins */
  resume(beginMs: number): void {
    this.#isStopping = false;
    if (this.#state !== 'gone') return;
    this.#state = 'away';
    this.#sinceMs = beginMs - this.#plan.pauseMs;
  }

  tick(nowMs: number): void {
    switch (this.#state) {
      case 'away':
        if (this.#isStopping) this.#state = 'gone';
        else if (nowMs - this.#sinceMs >= this.#plan.pauseMs) this.#connect(nowMs);
        return;
      case 'here':
        this.#live(nowMs);
        return;
      case 'connecting':
      case 'leaving':
        if (nowMs - this.#sinceMs <= answerMsMax) return;
        this.#fault('sockets', `no end of ${this.#state}`);
        this.#connection?.close();
        this.#end();
        return;
      case 'gone':
    }
  }

  get #name(): string {
    return `${this.#parts.client}.${this.#life}`;
  }

  #connect(nowMs: number): void {
    const { client, key, seed, meter, target } = this.#parts;
    this.#plan = drawLife(seed, client, ++this.#life);
    meter.lives++;
    this.#state = 'connecting';
    this.#sinceMs = nowMs;
    this.#nextContext = 0;
    this.#provoked.length = 0;
    const connection = new SocketConnection(
      { ...target, key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          this.#fault('sockets', error.message);
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

  #live(nowMs: number): void {
    for (const run of this.#runs.values()) run.tick(nowMs);
    const last = [...this.#runs.values()].at(-1);
    const { contexts, vanishes } = this.#plan;
    const isLastContext = this.#nextContext === contexts.length;
    if (vanishes && isLastContext && !this.#isStopping && last?.isCut(nowMs) === true) {
      this.#leave(nowMs);
      return;
    }
    this.#read(nowMs);
    const overlaps = contexts[this.#nextContext - 1]?.overlaps === true && this.#runs.size === 1;
    const isFree = last === undefined || (overlaps && last.isLast);
    if (!isFree) return;
    if (!this.#isStopping && !isLastContext) this.#begin(nowMs);
    else if (last === undefined && this.#provoked.length === 0) this.#leave(nowMs);
  }

  #begin(nowMs: number): void {
    const { contexts, reader, vanishes, wrong } = this.#plan;
    const { clock, key, mayRefuse, meter, target } = this.#parts;
    const index = this.#nextContext++;
    const provocation = wrong[index] ?? null;
    if (provocation !== null) {
      const { frame, error } = wrongMessage(provocation, target);
      this.#provoked.push(error);
      this.#connection?.write(frame);
    }
    const id = `${this.#name}.${index}`;
    const run = new ContextRun(
      {
        id,
        plan: contexts[index]!,
        reader,
        vanishes: vanishes && index === contexts.length - 1,
        key,
        target,
        mayRefuse,
        clock,
        meter,
        write: (frame) => this.#connection?.write(frame),
      },
      nowMs,
    );
    this.#runs.set(id, run);
  }

  /** Reads as its kind of reader does. */
  #read(nowMs: number): void {
    const { reader } = this.#plan;
    if (reader === 'eager' || this.#isStopping) {
      this.#readAhead?.resume();
      return;
    }
    const isStalled = reader === 'stalling' && (nowMs + this.#parts.client * 1_000) % stallEveryMs < stallMs;
    let aheadMs = 0;
    for (const run of this.#runs.values()) aheadMs += run.aheadMs(nowMs);
    if (isStalled) this.#readAhead?.pause();
    else this.#readAhead?.update(aheadMs);
  }

  #onMessage(json: string): void {
    const { meter } = this.#parts;
    const nowMs = performance.now();
    meter.frames++;
    let frame: ServerFrame;
    try {
      frame = JSON.parse(json) as ServerFrame;
    } catch {
      this.#fault('frames', `no JSON: ${json.slice(0, 200)}`);
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
    if (run === undefined) {
      this.#fault('frames', `a frame of no open context: ${json.slice(0, 200)}`);
      return;
    }
    run.onFrame(frame, nowMs);
    if (run.isOver) this.#runs.delete(id);
    // At once: a slow reader must not read everything in the system's buffers.
    if (this.#state === 'here') this.#read(nowMs);
  }

  #leave(nowMs: number): void {
    const how: Leaving = this.#plan.ending;
    this.#state = 'leaving';
    this.#sinceMs = nowMs;
    this.#parts.meter.sockets--;
    this.#connection?.leave(how, () => {
      if (this.#state === 'leaving') this.#end();
    });
  }

  #end(): void {
    for (const run of this.#runs.values()) run.abandon();
    this.#runs.clear();
    this.#connection = null;
    this.#state = 'away';
    this.#sinceMs = performance.now();
  }

  #fault(kind: 'frames' | 'sockets', what: string): void {
    this.#parts.meter.fault(kind, this.#name, what);
  }
}
