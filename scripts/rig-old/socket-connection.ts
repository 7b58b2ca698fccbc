/**
 * One WebSocket, as cheap as a client can be, because it shares the machine with what it measures: a raw socket, one
 * receive buffer for all of them, and a parser that counts audio and keeps no byte of it unless it is asked to.
 */
import { randomBytes } from 'node:crypto';
import { type Socket, connect } from 'node:net';

const receiveBuffer = Buffer.allocUnsafe(64 * 1024);

const opcodes = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FIN = 0x80;
const MASKED = 0x80;
const headerBytesMax = 10;
const maskKey = randomBytes(4);

const audioHead = '{"audio_chunk":"';
/** Which byte of a message tells audio from all else, and what it is there. */
const kindAt = 2;
const audioKind = audioHead.charCodeAt(kindAt);
/** What an audio frame of a context without an id has besides base64. */
export const audioOverheadBytes = audioHead.length + '"}'.length;

const encodeFrame = (opcode: number, payload: Uint8Array): Buffer => {
  const { length } = payload;
  const isShort = length < 126;
  if (length > 0xffff) throw new RangeError('a frame of the benchmark is short');
  const head = isShort
    ? [FIN | opcode, MASKED | length]
    : [FIN | opcode, MASKED | 126, length >> 8, length & 0xff];
  const frame = Buffer.alloc(head.length + maskKey.length + length);
  frame.set(head);
  frame.set(maskKey, head.length);
  const begin = head.length + maskKey.length;
  for (let i = 0; i < length; i++) frame[begin + i] = payload[i]! ^ maskKey[i & 3]!;
  return frame;
};

/** A client's frame: bytes that are made once and written as often as it is sent. */
export const encodeMessage = (message: object): Buffer =>
  encodeFrame(opcodes.text, Buffer.from(JSON.stringify(message)));

/** A message that is no text. */
export const encodeBinaryMessage = (payload: Uint8Array): Buffer => encodeFrame(opcodes.binary, payload);

const closeFrame = encodeFrame(opcodes.close, Buffer.from([1000 >> 8, 1000 & 0xff]));

/** How a client goes: politely; at once; with a FIN, reading on; with a RST. */
export type Leaving = 'close-frame' | 'fin' | 'half-close' | 'reset';

export interface SocketHandlers {
  /** A whole message that holds audio came, so many bytes of payload. Not called when all messages are wanted. */
  readonly onAudio: (bytes: number) => void;
  /** Any other message. */
  readonly onMessage: (json: string) => void;
  /** The connection is of no more use. */
  readonly onError: (error: Error) => void;
}

export interface SocketOptions {
  /** By default this machine. */
  readonly host?: string;
  readonly port: number;
  readonly path: string;
  readonly key: string;
  /** Audio comes to `onMessage` too. */
  readonly wantsAll: boolean;
}

export class SocketConnection {
  readonly #socket: Socket;
  readonly #handlers: SocketHandlers;
  readonly #wantsAll: boolean;
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

  constructor({ host = '127.0.0.1', port, path, key, wantsAll }: SocketOptions, handlers: SocketHandlers) {
    this.#handlers = handlers;
    this.#wantsAll = wantsAll;
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
    this.#socket.on('close', () => this.#fail(new Error('the server closed the WebSocket')));
    const head = [
      `GET ${path} HTTP/1.1`,
      `host: ${host}`,
      `x-api-key: ${key}`,
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    ];
    this.#socket.write(`${head.join('\r\n')}\r\n\r\n`);
  }

  /** Resolves when the handshake is done. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** Text messages so far, of all kinds. */
  get messages(): number {
    return this.#messages;
  }

  /** @param frames as `encodeMessage` made them */
  write(frames: Uint8Array): void {
    this.#socket.write(frames);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Idempotent; nothing is called back after it. */
  close(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  /** Goes; no handler is called any more. @param onGone called once, when the connection is closed from both ends */
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
    if (seesKind && this.#opcode === opcodes.text && !this.#wantsAll)
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
        if (this.#isAudio) this.#handlers.onAudio(this.#length);
        else this.#handlers.onMessage(payload.toString('utf8'));
        return;
      case opcodes.ping:
        this.#socket.write(encodeFrame(opcodes.pong, payload));
        return;
      case opcodes.close:
        this.#fail(new Error(`the server closed the WebSocket with ${String(payload.readUInt16BE(0))}`));
        return;
    }
  }
}
