/** Listeners over HTTP and over a WebSocket, one utterance after the other, with every page and word checked. */
import { CheckedAnswer } from '../../rig/checked-answer.js';
import { CheckedContext } from '../../rig/checked-context.js';
import { encodeRequest, HttpConnection, speechRequest } from '../../rig/http.js';
import { Playback } from '../../rig/playback.js';
import { SocketConnection, type ServerFrame } from '../../rig/socket.js';

export interface ListenerParts {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
  readonly name: string;
  readonly toleratesFailures: boolean;
  readonly nextText: () => string;
  /** From 0, below 1. */
  readonly random: () => number;
  /** An utterance has ended, well or not. */
  readonly onUtterance: () => void;
  readonly onFault: (what: string) => void;
  /** A failure that the client sees for what it is. */
  readonly onFailure: (what: string) => void;
}

/** With less than this to hear, a listener asks again. */
const aheadMsMin = 200;
const contextUtterancesMax = 3;
const format = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 64 } as const;

export class StreamListener {
  readonly playback = new Playback();
  readonly #parts: ListenerParts;
  #connection: HttpConnection | null = null;
  #isEnding = false;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
  }

  opened(): Promise<void> {
    return Promise.resolve();
  }

  get isOver(): boolean {
    return this.#isEnding && this.#connection === null;
  }

  tick(nowMs: number): void {
    this.playback.tick(nowMs);
    if (this.#connection === null && !this.#isEnding && this.playback.aheadMs(nowMs) < aheadMsMin)
      this.#ask(nowMs);
  }

  /** Asks for nothing else. */
  end(): void {
    this.#isEnding = true;
  }

  close(): void {
    this.#isEnding = true;
    if (this.#connection !== null) this.#fault('never ended');
    this.#connection?.close();
  }

  #ask(nowMs: number): void {
    const { key, name, nextText, onFailure, port, voice } = this.#parts;
    const text = nextText();
    const answer = new CheckedAnswer({
      id: name,
      kind: 'records',
      format,
      text,
      timestamps: true,
      trailMs: null,
      wordMarginMs: null,
      msPerCharacter: null,
      onFault: (_kind, what) => this.#fault(what),
      onAudio: (durationMs) => void this.playback.audio(durationMs, performance.now()),
    });
    this.playback.begin(nowMs);
    let status = 0;
    // A new connection each time: a kept one may be closed at the moment in which it is used again.
    this.#connection = new HttpConnection({ port });
    this.#connection.request(encodeRequest(speechRequest({ key, voice, text, format, timestamps: true })), {
      onHead: (is) => {
        status = is;
        if (status >= 500) onFailure(`${name}: answered ${status}`);
        else if (status !== 200) this.#fault(`answered ${status}`);
      },
      onBody: (bytes) => {
        if (status === 200) answer.push(bytes);
      },
      onEnd: () => {
        if (status === 200) answer.end();
        this.#over();
      },
      onError: (error) => {
        if (status === 0) this.#fault(`no answer: ${error.message}`);
        else onFailure(`${name}: the stream was cut`);
        this.#over();
      },
    });
  }

  #over(): void {
    this.#connection?.close();
    this.#connection = null;
    this.playback.end();
    this.#parts.onUtterance();
  }

  #fault(what: string): void {
    this.#parts.onFault(`${this.#parts.name}: ${what}`);
  }
}

export class SocketListener {
  readonly playback = new Playback();
  readonly #parts: ListenerParts;
  readonly #connection: SocketConnection;
  #context: CheckedContext | null = null;
  #contexts = 0;
  /** Audio of the context before its current utterance. */
  #earlierMs = 0;
  #isEnding = false;
  #isGone = false;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#connection = new SocketConnection(
      { port: parts.port, key: parts.key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          this.#isGone = true;
          this.#fault(error.message);
        },
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  get isOver(): boolean {
    return this.#isGone || (this.#isEnding && this.#context === null);
  }

  tick(nowMs: number): void {
    this.playback.tick(nowMs);
    if (this.#isEnding || this.#isGone) return;
    if (this.#context === null) this.#start();
    else if (this.#context.isIdle && this.playback.aheadMs(nowMs) < aheadMsMin) {
      this.#earlierMs = this.#context.durationMs;
      this.playback.begin(nowMs);
      this.#context.speak();
    }
  }

  /** Begins nothing else. */
  end(): void {
    this.#isEnding = true;
    this.#context?.close();
  }

  close(): void {
    this.#isEnding = true;
    if (this.#context !== null && !this.#isGone) this.#fault('a context never ended');
    this.#connection.close();
  }

  get #contextId(): string {
    return `${this.#parts.name}.${this.#contexts}`;
  }

  #start(): void {
    const { nextText, onFault, random, voice } = this.#parts;
    this.#contexts++;
    this.#context = new CheckedContext({
      id: this.#contextId,
      voice,
      utterances: 1 + (this.#contexts % contextUtterancesMax),
      isCancelled: this.#contexts % 8 === 0,
      write: (frame) => this.#connection.write(frame),
      nextText,
      random,
      onOver: () => this.#over(),
      onFault,
    });
  }

  #onMessage(json: string): void {
    const frame = JSON.parse(json) as ServerFrame;
    const context = this.#context;
    const isCurrent = context !== null && frame.context_id === this.#contextId;
    if (frame.error !== undefined) {
      // It may answer frames that were written before the failure of an earlier context was known.
      if (!isCurrent && this.#parts.toleratesFailures) return;
      this.#parts.onFailure(`${this.#parts.name}: ${frame.error}`);
      if (isCurrent) this.#over();
      return;
    }
    if (context === null) {
      this.#fault(`a frame of no open context: ${json.slice(0, 200)}`);
      return;
    }
    context.onFrame(frame);
    this.playback.audio(context.durationMs - this.#earlierMs, performance.now());
    if (frame.flush_completed !== undefined) this.playback.end();
  }

  #over(): void {
    this.#context = null;
    this.playback.end();
    this.#parts.onUtterance();
  }

  #fault(what: string): void {
    this.#parts.onFault(`${this.#parts.name}: ${what}`);
  }
}
