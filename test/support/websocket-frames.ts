/** Frames of RFC 6455, right and wrong ones, on a raw connection. */
import { encodeFrame, opcodes } from '../../scripts/rig/socket.js';
import { RawClient, requestBytes } from './raw-client.js';

export { opcodes };

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

const lengthBytes = { 7: 0, 16: 2, 64: 8 } as const;

/** A frame as a client sends it. */
export const frame = (opcode: number, options: FrameOptions = {}): Buffer => {
  const { isLast: isFinal = true, isMasked = true, length, lengthBits, payload = '', reserved = 0 } = options;
  return encodeFrame(Buffer.from(payload), {
    ...{ opcode, isFinal, isMasked, reserved },
    ...(lengthBits !== undefined && { lengthBytes: lengthBytes[lengthBits] }),
    ...(length !== undefined && { claimedLength: length }),
  });
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
