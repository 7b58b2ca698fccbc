/**
 * Mail between the front thread and an actor thread: everything written within one tick travels as one message.
 * Small fields are msgpackr-encoded; the bytes of all frames lie in one buffer, which is transferred, not copied.
 */
import { Packr } from 'msgpackr';
import type { ActorCommand, Frame } from './messages.js';

const packr = new Packr({ useRecords: false });

type FrameWithBytes = Extract<Frame, { bytes: Uint8Array }>;
/** A frame on its way: `bytes` replaced by their number. */
type PackedFrame = Exclude<Frame, FrameWithBytes> | (Omit<FrameWithBytes, 'bytes'> & { readonly size: number });

export interface FrameMail {
  readonly heads: Uint8Array;
  readonly body: ArrayBuffer;
}

export const packCommands = (commands: readonly ActorCommand[]): Uint8Array => packr.pack(commands);

export const unpackCommands = (mail: Uint8Array): ActorCommand[] => packr.unpack(mail) as ActorCommand[];

export const packFrames = (frames: readonly Frame[]): FrameMail => {
  let total = 0;
  for (const frame of frames) if ('bytes' in frame) total += frame.bytes.length;
  const body = new Uint8Array(total);
  let offset = 0;
  const heads: PackedFrame[] = frames.map((frame) => {
    if (!('bytes' in frame)) return frame;
    const { bytes, ...head } = frame;
    body.set(bytes, offset);
    offset += bytes.length;
    return { ...head, size: bytes.length };
  });
  return { heads: packr.pack(heads), body: body.buffer };
};

export const unpackFrames = (mail: FrameMail): Frame[] => {
  const heads = packr.unpack(mail.heads) as PackedFrame[];
  let offset = 0;
  return heads.map((packed) => {
    if (!('size' in packed)) return packed;
    const { size, ...head } = packed;
    const bytes = new Uint8Array(mail.body, offset, size);
    offset += size;
    return { ...head, bytes } as Frame;
  });
};

/** Collects what is posted within one tick and hands it over once, at the end of the tick. */
export class TickBatch<T> {
  #items: T[] = [];
  #scheduled = false;
  readonly #send: (items: T[]) => void;

  constructor(send: (items: T[]) => void) {
    this.#send = send;
  }

  add(item: T): void {
    this.#items.push(item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const items = this.#items;
    this.#items = [];
    this.#send(items);
  }
}
