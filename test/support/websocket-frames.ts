/** Frames of RFC 6455, right and wrong ones, on a raw connection. */
import { randomBytes } from 'node:crypto';
import { RawClient, requestBytes } from './raw-client.js';

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface FrameOptions {
  readonly payload?: Uint8Array | string;
  /** By default true: no frame of the message follows. */
  readonly isLast?: boolean;
  /** Three bits. */
  readonly reserved?: number;
  readonly isMasked?: boolean;
  /** Bits of the length, in place of as few as possible. */
  readonly lengthBits?: 7 | 16 | 64;
  /** In place of the payload's. */
  readonly length?: bigint;
}

const lengthBytes = (length: bigint, bits: 7 | 16 | 64): Buffer => {
  if (bits === 7) return Buffer.of(Number(length));
  const bytes = Buffer.alloc(bits === 16 ? 3 : 9);
  bytes[0] = bits === 16 ? 126 : 127;
  if (bits === 16) bytes.writeUInt16BE(Number(length), 1);
  else bytes.writeBigUInt64BE(length, 1);
  return bytes;
};

/** A frame as a client sends it. */
export const frame = (opcode: number, options: FrameOptions = {}): Buffer => {
  const { isLast = true, isMasked = true, reserved = 0 } = options;
  const payload = Buffer.from(options.payload ?? '');
  const length = options.length ?? BigInt(payload.length);
  const head = lengthBytes(length, options.lengthBits ?? (length < 126n ? 7 : length < 65_536n ? 16 : 64));
  if (isMasked) head[0]! |= 0x80;
  const mask = isMasked ? randomBytes(4) : Buffer.alloc(0);
  if (isMasked) for (let at = 0; at < payload.length; at++) payload[at]! ^= mask[at % 4]!;
  return Buffer.concat([Buffer.of((isLast ? 0x80 : 0) | (reserved << 4) | opcode), head, mask, payload]);
};

export const closeFrame = (code: number | null, reason: Uint8Array | string = ''): Buffer => {
  const codeBytes = code === null ? Buffer.alloc(0) : Buffer.of(code >> 8, code & 0xff);
  return frame(opcodes.close, { payload: Buffer.concat([codeBytes, Buffer.from(reason)]) });
};

export interface ReceivedFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** @throws if a server may not send this */
export const readFrames = (bytes: Buffer): ReceivedFrame[] => {
  const frames: ReceivedFrame[] = [];
  let at = 0;
  while (at + 2 <= bytes.length) {
    const [first = 0, second = 0] = bytes.subarray(at);
    if ((first & 0xf0) !== 0x80 || second > 127)
      throw new Error(`a frame of a server begins ${first} ${second}`);
    const headBytes = second === 126 ? 4 : second === 127 ? 10 : 2;
    if (at + headBytes > bytes.length) break;
    const length =
      second === 126
        ? bytes.readUInt16BE(at + 2)
        : second === 127
          ? Number(bytes.readBigUInt64BE(at + 2))
          : second;
    const end = at + headBytes + length;
    if (end > bytes.length) break;
    frames.push({ opcode: first & 0x0f, payload: bytes.subarray(at + headBytes, end) });
    at = end;
  }
  return frames;
};

/** The lines of a handshake that asks for a WebSocket. */
export const upgradeLines = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
] as const;

/** A WebSocket whose client can send anything. */
export class RawSocket {
  readonly client: RawClient;
  readonly #headBytes: number;

  private constructor(client: RawClient, headBytes: number) {
    this.client = client;
    this.#headBytes = headBytes;
  }

  /** @throws if the handshake is refused */
  static async open(port: number, path: string, key: string): Promise<RawSocket> {
    const client = await RawClient.open(port);
    client.send(requestBytes({ path, key, headers: upgradeLines }));
    let headEnd = -1;
    await client.until(() => (headEnd = client.bytes().indexOf('\r\n\r\n')) >= 0);
    const head = client.bytes().toString('latin1', 0, headEnd);
    if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(head);
    return new RawSocket(client, headEnd + 4);
  }

  ping(payload: string): void {
    this.client.send(frame(opcodes.ping, { payload }));
  }

  get frames(): ReceivedFrame[] {
    return readFrames(this.client.bytes().subarray(this.#headBytes));
  }

  /** Waits until the server has sent so many frames, or ends the connection. */
  received(count: number): Promise<void> {
    return this.client.until(() => this.frames.length >= count);
  }
}
