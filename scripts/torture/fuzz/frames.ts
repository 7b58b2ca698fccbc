/** WebSocket frames as a client writes them, every field of which may be wrong. */

export interface FrameFields {
  readonly opcode: number;
  readonly isFinal?: boolean;
  /** The three reserved bits, 0 to 7. */
  readonly reserved?: number;
  readonly isMasked?: boolean;
  /** Bytes of the length field after the first; by default as few as will do. */
  readonly lengthBytes?: 0 | 2 | 8;
  /** What the length field says; by default the truth. */
  readonly claimedLength?: bigint;
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

export const encodeFrame = (payload: Uint8Array, fields: FrameFields): Buffer => {
  const { opcode, isFinal = true, reserved = 0, isMasked = true } = fields;
  const length = fields.claimedLength ?? BigInt(payload.length);
  const lengthBytes = fields.lengthBytes ?? (length < 126n ? 0 : length < 65_536n ? 2 : 8);
  const head = Buffer.alloc(2 + lengthBytes);
  head[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  const short = lengthBytes === 0 ? Number(length & 0x7fn) : lengthBytes === 2 ? 126 : 127;
  head[1] = (isMasked ? 0x80 : 0) | short;
  if (lengthBytes === 2) head.writeUInt16BE(Number(length & 0xffffn), 2);
  else if (lengthBytes === 8) head.writeBigUInt64BE(BigInt.asUintN(64, length), 2);
  if (!isMasked) return Buffer.concat([head, payload]);
  const masked = Buffer.from(payload);
  for (let i = 0; i < masked.length; i++) masked[i]! ^= mask[i & 3]!;
  return Buffer.concat([head, mask, masked]);
};

export const textFrame = (text: string): Buffer => encodeFrame(Buffer.from(text), { opcode: opcodes.text });
