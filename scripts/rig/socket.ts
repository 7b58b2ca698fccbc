/**
 * The rig's WebSocket client. A connection is as cheap as a client can be, because it shares the machine with the service
 * that it measures: a raw socket, one receive buffer for all connections, and a parser that counts audio and keeps no byte
 * of it unless it is asked to.
 */
import { randomBytes } from 'node:crypto';
import { type Socket, connect } from 'node:net';
import type { AudioFormat } from '../../src/api/formats.js';
import { responseFormat, type HttpTarget } from './http.js';

/** A frame that the service sends, as the specification has it. */
export interface ServerFrame {
  readonly context_id?: string;
  readonly context_started?: object;
  readonly audio_chunk?: string;
  readonly timestamps?: WordTimes;
  readonly flush_completed?: true;
  readonly flush_id?: string;
  readonly context_closed?: true;
  readonly error?: string;
}

export interface WordTimes {
  readonly words: readonly string[];
  readonly start_seconds: readonly number[];
  readonly end_seconds: readonly number[];
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FIN = 0x80;
const MASKED = 0x80;
const maskKey = randomBytes(4);

/** Fields of a WebSocket frame; each may be wrong on purpose. */
export interface FrameFields {
  readonly opcode: number;
  readonly isFinal?: boolean;
  /** The three reserved bits, 0 to 7. */
  readonly reserved?: number;
  readonly isMasked?: boolean;
  /** Bytes of the length field after the first; by default as few as possible. */
  readonly lengthBytes?: 0 | 2 | 8;
  /** What the length field says; by default the truth. */
  readonly claimedLength?: bigint;
}

export const encodeFrame = (payload: Uint8Array, fields: FrameFields): Buffer => {
  const { isFinal = true, isMasked = true, opcode, reserved = 0 } = fields;
  const length = fields.claimedLength ?? BigInt(payload.length);
  const lengthBytes = fields.lengthBytes ?? (length < 126n ? 0 : length < 65_536n ? 2 : 8);
  const headBytes = 2 + lengthBytes;
  const frame = Buffer.alloc(headBytes + (isMasked ? maskKey.length : 0) + payload.length);
  frame[0] = (isFinal ? FIN : 0) | (reserved << 4) | opcode;
  const short = lengthBytes === 0 ? Number(length & 0x7fn) : lengthBytes === 2 ? 126 : 127;
  frame[1] = (isMasked ? MASKED : 0) | short;
  if (lengthBytes === 2) frame.writeUInt16BE(Number(length & 0xffffn), 2);
  else if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt.asUintN(64, length), 2);
  if (!isMasked) {
    frame.set(payload, headBytes);
    return frame;
  }
  frame.set(maskKey, headBytes);
  const begin = headBytes + maskKey.length;
  for (let i = 0; i < payload.length; i++) frame[begin + i] = payload[i]! ^ maskKey[i & 3]!;
  return frame;
};

export const textFrame = (text: string): Buffer => encodeFrame(Buffer.from(text), { opcode: opcodes.text });

/** A client's message: bytes that are made once and can be written many times. */
export const encodeMessage = (message: object): Buffer => textFrame(JSON.stringify(message));

const closeFrame = encodeFrame(Buffer.from([1000 >> 8, 1000 & 0xff]), { opcode: opcodes.close });

export interface ContextVoice {
  readonly voice: string;
  /** By default the service's. */
  readonly format?: AudioFormat;
}

/** @param fields of the `start_context` object besides voice, model and format */
export const encodeStart = (
  { voice, format }: ContextVoice,
  contextId?: string,
  fields: object = {},
): Buffer =>
  encodeMessage({
    start_context: {
      voice_id: voice,
      model_id: 'default',
      ...(format !== undefined && { response_format: responseFormat(format) }),
      ...fields,
    },
    ...(contextId !== undefined && { context_id: contextId }),
  });

/** The error of an utterance that a full service refuses. */
export const unavailable = 'Service unavailable';

export const socketPath = '/v1/tts/ws';

/** A handshake that a server can only accept or refuse by its key. */
export const encodeHandshake = (key: string, path = socketPath): Buffer =>
  Buffer.from(
    [
      `GET ${path} HTTP/1.1`,
      'Host: rig',
      `X-Api-Key: ${key}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      '\r\n',
    ].join('\r\n'),
  );

const receiveBuffer = Buffer.allocUnsafe(64 * 1024);
const headerBytesMax = 10;

const audioHead = '{"audio_chunk":"';
/** The position of a byte that differs between audio and other messages, and its value for audio. */
const kindAt = 2;
const audioKind = audioHead.charCodeAt(kindAt);
/** Bytes of an audio frame of a context without an id, besides base64. */
export const audioOverheadBytes = audioHead.length + '"}'.length;

/** The server closed the WebSocket. */
export class SocketClosedError extends Error {
  /** Of its close frame; `null`: there was none. */
  readonly code: number | null;

  constructor(code: number | null) {
    super(`the server closed the WebSocket${code === null ? '' : ` with ${code}`}`);
    this.code = code;
  }
}

/**
 * A service that stops closes its WebSockets with 1001: clients connect again. If a client writes in the same moment, a reset may discard
 * the close frame. The client sees the reset, or the end of the connection if a proxy saw it.
 */
export const isGoingAway = (error: Error): boolean =>
  error instanceof SocketClosedError
    ? error.code === 1001 || error.code === null
    : ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '');

/** How a client leaves: with a close frame; with a FIN, at once; with a FIN, reading on; with a RST. */
export type Leaving = 'close-frame' | 'fin' | 'half-close' | 'reset';

export interface SocketHandlers {
  /** A whole message with audio, and the length of its payload. Without this handler, `onMessage` receives audio too. */
  readonly onAudio?: (bytes: number) => void;
  readonly onMessage: (json: string) => void;
  /** The connection failed, or the server closed it. */
  readonly onError: (error: Error) => void;
}

export interface SocketOptions extends HttpTarget {
  /** By default that of the specification. */
  readonly path?: string;
  readonly key: string;
}

export class SocketConnection {
  readonly #socket: Socket;
  readonly #handlers: SocketHandlers;
  readonly #opened: Promise<void>;
  #onOpen: () => void = () => undefined;
  #head: string | null = '';
  readonly #header = new Uint8Array(headerBytesMax);
  #headerLength = 0;
  #opcode = 0;
  #length = 0;
  #offset = 0;
  #inPayload = false;
  #isAudio = false;
  #parts: Buffer[] = [];
  #messages = 0;
  #isOver = false;

  constructor({ host = '127.0.0.1', port, path, key }: SocketOptions, handlers: SocketHandlers) {
    this.#handlers = handlers;
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: receiveBuffer,
        callback: (length) => {
          this.#parse(length);
          return true;
        },
      },
    });
    this.#opened = new Promise((resolve, reject) => {
      this.#onOpen = resolve;
      this.#socket.once('error', reject).once('close', () => reject(new Error('the handshake failed')));
    });
    this.#opened.catch(() => undefined);
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new SocketClosedError(null)));
    this.#socket.write(encodeHandshake(key, path));
  }

  /** Resolves when the handshake is done. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** It was closed, or failed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Text messages received so far, of all kinds. */
  get messages(): number {
    return this.#messages;
  }

  /** @param frames made by `encodeMessage` or `encodeFrame` */
  write(frames: Uint8Array): void {
    this.#socket.write(frames);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** No handler is called afterwards. Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  /** No handler is called afterwards. @param onGone called once, when both ends have closed the connection */
  leave(how: Leaving, onGone: () => void): void {
    const isGone = this.#socket.destroyed;
    this.#isOver = true;
    if (isGone) {
      onGone();
      return;
    }
    this.#socket.once('close', onGone);
    this.#socket.resume();
    switch (how) {
      case 'close-frame':
        this.#socket.end(closeFrame);
        return;
      case 'fin':
        this.#socket.destroy();
        return;
      case 'half-close':
        this.#socket.end();
        return;
      case 'reset':
        this.#socket.resetAndDestroy();
    }
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.close();
    this.#handlers.onError(error);
  }

  #parse(length: number): void {
    let i = this.#head === null ? 0 : this.#parseHead(length);
    while (i < length && !this.#isOver) {
      if (this.#inPayload) i = this.#parsePayload(i, length);
      else this.#parseHeader(receiveBuffer[i++]!);
    }
  }

  #parseHead(length: number): number {
    const head = (this.#head ?? '') + receiveBuffer.toString('latin1', 0, length);
    this.#head = head;
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return length;
    const excess = head.length - end - 4;
    if (!head.startsWith('HTTP/1.1 101 ')) {
      this.#fail(new Error(`the server answered ${head}`));
      return length;
    }
    this.#head = null;
    this.#onOpen();
    return length - excess;
  }

  #parseHeader(byte: number): void {
    const header = this.#header;
    header[this.#headerLength++] = byte;
    if (this.#headerLength < 2) return;
    const short = header[1]! & 0x7f;
    const wanted = short === 126 ? 4 : short === 127 ? headerBytesMax : 2;
    if (this.#headerLength < wanted) return;
    this.#headerLength = 0;
    this.#opcode = header[0]! & 0x0f;
    this.#length = short;
    if (wanted > 2) {
      this.#length = 0;
      for (let i = 2; i < wanted; i++) this.#length = this.#length * 256 + header[i]!;
    }
    this.#offset = 0;
    this.#isAudio = false;
    this.#inPayload = true;
    const isWhole = (header[0]! & FIN) !== 0 && this.#opcode !== 0;
    if (!isWhole) this.#fail(new Error('the server sent a message in parts'));
    else if (this.#length === 0) this.#endMessage();
  }

  #parsePayload(from: number, length: number): number {
    const count = Math.min(length - from, this.#length - this.#offset);
    const kindIndex = from + kindAt - this.#offset;
    const seesKind = this.#offset <= kindAt && kindIndex < from + count;
    if (seesKind && this.#opcode === opcodes.text && this.#handlers.onAudio !== undefined)
      this.#isAudio = receiveBuffer[kindIndex] === audioKind;
    if (!this.#isAudio) this.#parts.push(Buffer.from(receiveBuffer.subarray(from, from + count)));
    this.#offset += count;
    if (this.#offset === this.#length) this.#endMessage();
    return from + count;
  }

  #endMessage(): void {
    this.#inPayload = false;
    const [only] = this.#parts;
    const payload = this.#parts.length === 1 ? only! : Buffer.concat(this.#parts);
    this.#parts = [];
    switch (this.#opcode) {
      case opcodes.text:
        this.#messages++;
        if (this.#isAudio) this.#handlers.onAudio?.(this.#length);
        else this.#handlers.onMessage(payload.toString('utf8'));
        return;
      case opcodes.ping:
        this.#socket.write(encodeFrame(payload, { opcode: opcodes.pong }));
        return;
      case opcodes.close:
        this.#fail(new SocketClosedError(payload.length < 2 ? 1005 : payload.readUInt16BE(0)));
        return;
    }
  }
}

/** Handshakes at a time: the backlog of a listening socket may refuse more. */
const handshakesMax = 100;

/** Opens many. @throws when a handshake fails */
export const openMany = async <T extends { opened(): Promise<void> }>(
  count: number,
  open: (index: number) => T,
): Promise<T[]> => {
  const all: T[] = [];
  while (all.length < count) {
    const length = Math.min(handshakesMax, count - all.length);
    const batch = Array.from({ length }, (_, i) => open(all.length + i));
    all.push(...batch);
    await Promise.all(batch.map((one) => one.opened()));
  }
  return all;
};
