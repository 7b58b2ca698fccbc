/**
 * Mail from an actor thread to the front thread. All frames of one tick travel as one message: as JSON, which takes half of the
 * time of a structured clone and also carries words and ids with lone surrogates. The bytes of all frames lie in one buffer,
 * which is transferred, not copied.
 */
import type { Frame } from './messages.js';

type FrameWithBytes = Extract<Frame, { bytes: Uint8Array }>;
/** A frame in the mail: its `bytes` are replaced by their number. */
type PackedFrame =
  | Exclude<Frame, FrameWithBytes>
  | (Omit<FrameWithBytes, 'bytes'> & { readonly size: number });

export interface FrameMail {
  readonly heads: string;
  readonly body: ArrayBuffer;
}

export const packFrames = (frames: readonly Frame[]): FrameMail => {
  let total = 0;
  for (const frame of frames) if ('bytes' in frame) total += frame.bytes.length;
  const body = new Uint8Array(total);
  let offset = 0;
  const heads = frames.map((frame): PackedFrame => {
    if (!('bytes' in frame)) return frame;
    const { bytes, ...head } = frame;
    body.set(bytes, offset);
    offset += bytes.length;
    return { ...head, size: bytes.length };
  });
  return { heads: JSON.stringify(heads), body: body.buffer };
};

export const unpackFrames = (mail: FrameMail): Frame[] => {
  const heads = JSON.parse(mail.heads) as PackedFrame[];
  let offset = 0;
  return heads.map((packed) => {
    if (!('size' in packed)) return packed;
    const { size, ...head } = packed;
    const bytes = new Uint8Array(mail.body, offset, size);
    offset += size;
    return { ...head, bytes } as Frame;
  });
};
