/** One WebSocket with its contexts: sends text, plays the audio, and lists every frame. */
import type { AudioFormat } from '../../../api/formats.js';
import type { Timestamps } from '../../../api/responses.js';
import { formatNumber } from '../format.js';
import type { SentFrame } from './as-code.js';
import { problemOfClose, problemOfFrame } from './problems.js';
import { extensionOf } from './speech-run.js';
import { Track, type AudioOutput } from './track.js';
import { decodeBase64, wordsOf, type Word } from './wire.js';

export const contextsMax = 6;
/** Of one context: the page keeps its samples, for jumps. */
export const contextCharactersMax = 5_000;
const framesListedMax = 300;
/** Frames that wait for the connection. */
const framesWaitingMax = 1_000;
/** Frames of the page that a script repeats. */
const framesSentMax = 5_000;

export interface ListedFrame {
  readonly number: number;
  /** Since the connection was requested. */
  readonly atMs: number;
  readonly from: 'page' | 'service';
  /** Audio is replaced by its length. */
  readonly text: string;
}

/** How a context is opened. */
export interface ContextChoice {
  readonly voice: string;
  readonly temperature: number;
  readonly format: AudioFormat;
}

export type ContextState = 'open' | 'closing' | 'closed' | 'cancelled' | 'lost';

export interface SocketContext {
  readonly id: string;
  readonly voice: string;
  readonly track: Track;
  readonly words: Word[];
  /** All that was sent. */
  text: string;
  state: ContextState;
  /** The service knows it. */
  isStarted: boolean;
  /** The service refuses text until the next flush: there is no credit or no slot. */
  isRefused: boolean;
  problem: string | null;
  askedAtMs: number | null;
  /** From the first text to the first audio. */
  firstAudioMs: number | null;
}

/** The frames of the service; a frame has one of these members. */
interface ServerFrame {
  readonly context_id?: string;
  readonly flush_id?: string;
  readonly context_started?: object;
  readonly audio_chunk?: string;
  readonly timestamps?: Timestamps;
  readonly flush_completed?: true;
  readonly context_closed?: true;
  readonly error?: string;
}

export type SocketState = 'closed' | 'connecting' | 'open';

interface SocketSessionParts {
  readonly accountId: number;
  readonly output: AudioOutput;
  /** The page must be drawn again. */
  readonly onChange: () => void;
  /** An utterance was spoken and charged, or refused. */
  readonly onSpoken: () => void;
}

export class SocketSession {
  readonly frames: ListedFrame[] = [];
  readonly contexts: SocketContext[] = [];
  /** What a script repeats. */
  readonly sent: SentFrame[] = [];
  /** Of the files with audio, by the context. */
  readonly extensions: Record<string, string> = {};
  /** The service writes numbers as words. For the next connection: over a WebSocket the key says it, here the address. */
  normalizes = true;
  /** Why the last connection ended. */
  problem: string | null = null;
  readonly #parts: SocketSessionParts;
  #socket: WebSocket | null = null;
  #waiting: object[] = [];
  #startMs = 0;
  #frames = 0;
  #opened = 0;

  constructor(parts: SocketSessionParts) {
    this.#parts = parts;
  }

  get connection(): SocketState {
    if (this.#socket === null) return 'closed';
    return this.#socket.readyState === WebSocket.OPEN ? 'open' : 'connecting';
  }

  /** Without an open context: the next one connects again. */
  normalize(normalizes: boolean): void {
    this.normalizes = normalizes;
    this.disconnect();
  }

  /** Connects if need be. The oldest context that has ended gives way. */
  open({ format, temperature, voice }: ContextChoice): void {
    const ended = this.contexts.find(({ state }) => state !== 'open' && state !== 'closing');
    if (this.contexts.length >= contextsMax && ended === undefined) return;
    if (this.contexts.length >= contextsMax && ended !== undefined) this.remove(ended);
    if (this.#socket === null) this.#connect();
    const id = `context-${++this.#opened}`;
    this.extensions[id] = extensionOf(format.encoding);
    this.contexts.push({
      ...{ id, voice },
      track: new Track(format, this.#parts.output, this.#parts.onChange),
      words: [],
      text: '',
      state: 'open',
      isStarted: false,
      isRefused: false,
      problem: null,
      askedAtMs: null,
      firstAudioMs: null,
    });
    this.#send({
      start_context: {
        voice_id: voice,
        model_id: 'default',
        timestamps: true,
        temperature,
        response_format: {
          ...{ encoding: format.encoding, sample_rate: format.sampleRateHz },
          ...('bitrateKbps' in format && { bitrate: format.bitrateKbps }),
        },
      },
      context_id: id,
    });
  }

  sendText(context: SocketContext, text: string): void {
    if (context.state !== 'open') return;
    if (context.text.length + text.length > contextCharactersMax) {
      context.problem = `A context takes ${formatNumber(contextCharactersMax)} characters here. Open another one.`;
      this.#parts.onChange();
      return;
    }
    context.askedAtMs ??= performance.now();
    context.text += text;
    if (!context.isRefused) context.problem = null;
    this.#send({ send_text: text, context_id: context.id });
  }

  flush(context: SocketContext): void {
    if (context.state !== 'open') return;
    // The next utterance is a text of its own.
    if (context.text !== '') context.text += '\n';
    this.#send({ flush: true, context_id: context.id });
  }

  /** Speaks the rest, then ends the context. */
  close(context: SocketContext): void {
    if (context.state !== 'open') return;
    context.state = 'closing';
    this.#send({ close_context: true, context_id: context.id });
  }

  /** Barge-in: silent at once, and what is not spoken costs nothing. */
  cancel(context: SocketContext): void {
    context.track.stop();
    if (context.state === 'open' || context.state === 'closing') {
      context.state = 'cancelled';
      this.#send({ cancel_context: true, context_id: context.id });
    }
    this.#parts.onChange();
  }

  remove(context: SocketContext): void {
    this.cancel(context);
    context.track.close();
    this.contexts.splice(this.contexts.indexOf(context), 1);
    this.#parts.onChange();
  }

  clearFrames(): void {
    this.frames.length = 0;
    this.sent.length = 0;
    this.#parts.onChange();
  }

  disconnect(): void {
    this.#socket?.close(1000);
    this.#end(null);
  }

  /** Ends everything. Idempotent. */
  dispose(): void {
    for (const { track } of this.contexts) track.close();
    this.disconnect();
  }

  #connect(): void {
    const url = new URL(
      `/api/socket?accountId=${this.#parts.accountId}&normalize=${this.normalizes}`,
      location.href,
    );
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#startMs = performance.now();
    this.problem = null;
    socket.addEventListener('open', () => {
      for (const frame of this.#waiting.splice(0)) socket.send(JSON.stringify(frame));
      this.#parts.onChange();
    });
    socket.addEventListener('message', ({ data }) => {
      if (this.#socket === socket && typeof data === 'string') this.#receive(JSON.parse(data) as ServerFrame);
    });
    socket.addEventListener('close', ({ code }) => {
      // The message before a 1008 says more.
      const said = code === 1008 ? this.problem : null;
      if (this.#socket === socket) this.#end(code === 1000 ? null : (said ?? problemOfClose(code)));
    });
  }

  #end(problem: string | null): void {
    this.#socket = null;
    this.#waiting = [];
    this.problem = problem;
    for (const context of this.contexts) {
      if (context.state !== 'open' && context.state !== 'closing') continue;
      context.state = 'lost';
      context.track.complete().catch(() => undefined);
    }
    this.#parts.onChange();
  }

  #send(frame: Readonly<Record<string, unknown>>): void {
    this.#list('page', JSON.stringify(frame));
    if (this.sent.length < framesSentMax) this.sent.push({ atMs: performance.now(), frame });
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
    else if (this.#waiting.length < framesWaitingMax) this.#waiting.push(frame);
    this.#parts.onChange();
  }

  #receive(frame: ServerFrame): void {
    const context = this.contexts.find(({ id }) => id === frame.context_id);
    let text = JSON.stringify(frame);
    if (frame.audio_chunk !== undefined) {
      const bytes = decodeBase64(frame.audio_chunk);
      const seconds = context === undefined || context.state === 'cancelled' ? 0 : this.#play(context, bytes);
      // A codec's samples come later.
      const duration = seconds > 0 ? `, ${Math.round(seconds * 1_000)} ms` : '';
      text = JSON.stringify({ ...frame, audio_chunk: `${bytes.length} bytes${duration}` });
    } else if (context === undefined) {
      if (frame.error !== undefined) this.problem = problemOfFrame(frame.error);
    } else this.#follow(context, frame);
    this.#list('service', text);
    this.#parts.onChange();
  }

  /** @returns the seconds of audio that came of it at once */
  #play(context: SocketContext, bytes: Uint8Array<ArrayBuffer>): number {
    const { track } = context;
    context.firstAudioMs ??= performance.now() - (context.askedAtMs ?? 0);
    const before = track.receivedSeconds;
    track.push(bytes);
    return track.receivedSeconds - before;
  }

  #follow(context: SocketContext, frame: ServerFrame): void {
    if (frame.context_started !== undefined) context.isStarted = true;
    if (frame.timestamps !== undefined) context.words.push(...wordsOf(frame.timestamps));
    if (frame.flush_completed === true) context.track.settle();
    if (frame.flush_id !== undefined || frame.context_closed === true) this.#parts.onSpoken();
    if (frame.error !== undefined) {
      context.problem = problemOfFrame(frame.error);
      // The error of the flush that ends a refused text: the next text is a new one.
      context.isRefused = frame.flush_id === undefined;
    }
    const isUnknown = frame.error !== undefined && (!context.isStarted || frame.error.startsWith('unknown'));
    if (frame.context_closed !== true && !isUnknown) return;
    if (context.state !== 'cancelled') context.state = 'closed';
    context.track.complete().catch(() => undefined);
  }

  #list(from: ListedFrame['from'], text: string): void {
    const atMs = performance.now() - this.#startMs;
    this.frames.push({ number: ++this.#frames, atMs, from, text });
    if (this.frames.length > framesListedMax) this.frames.shift();
  }
}
