/**
 * Mail between the front thread and an actor thread. All commands, or all frames, of one tick travel as one message.
 * Small fields are encoded with msgpackr. The bytes of all frames lie in one buffer, which is transferred, not copied.
 *
 * A user's words and ids travel as JSON inside it: they may hold lone surrogates, which UTF-8 cannot carry.
 */
import { Packr } from 'msgpackr';
import type { ActorCommand, Frame, WordTimings } from './messages.js';

const packr = new Packr({ useRecords: false });

/** In a buffer of its own: a message carries the whole buffer of a view, and the packer's grows to twice the largest mail. */
const pack = (value: unknown): Uint8Array => new Uint8Array(packr.pack(value));

type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;
type PackedCommand =
  | Exclude<ActorCommand, SegmentCommand>
  | (Omit<SegmentCommand, 'words'> & { readonly words: string });

type FrameWithBytes = Extract<Frame, { bytes: Uint8Array }>;
/** A frame in the mail: its `bytes` are replaced by their number. */
type PackedFrame =
  | Exclude<Frame, FrameWithBytes>
  | (Omit<FrameWithBytes, 'bytes' | 'timings'> & { readonly size: number; readonly timings?: string });

export interface FrameMail {
  readonly heads: Uint8Array;
  readonly body: ArrayBuffer;
}

const packCommand = (command: ActorCommand): PackedCommand => {
  switch (command.type) {
    case 'segment':
      return { ...command, words: JSON.stringify(command.words) };
    case 'flush':
      return { ...command, flushId: JSON.stringify(command.flushId) };
    case 'open':
      return command.clientContextId === undefined
        ? command
        : { ...command, clientContextId: JSON.stringify(command.clientContextId) };
    case 'close':
    case 'cancel':
      return command;
  }
};

const unpackCommand = (command: PackedCommand): ActorCommand => {
  switch (command.type) {
    case 'segment':
      return { ...command, words: JSON.parse(command.words) as string[] };
    case 'flush':
      return { ...command, flushId: JSON.parse(command.flushId) as string };
    case 'open':
      return command.clientContextId === undefined
        ? command
        : { ...command, clientContextId: JSON.parse(command.clientContextId) as string };
    case 'close':
    case 'cancel':
      return command;
  }
};

export const packCommands = (commands: readonly ActorCommand[]): Uint8Array =>
  pack(commands.map(packCommand));

export const unpackCommands = (mail: Uint8Array): ActorCommand[] =>
  (packr.unpack(mail) as PackedCommand[]).map(unpackCommand);

export const packFrames = (frames: readonly Frame[]): FrameMail => {
  let total = 0;
  for (const frame of frames) if ('bytes' in frame) total += frame.bytes.length;
  const body = new Uint8Array(total);
  let offset = 0;
  const heads = frames.map((frame): PackedFrame => {
    if (frame.type === 'flushed') return { ...frame, flushId: JSON.stringify(frame.flushId) };
    if (!('bytes' in frame)) return frame;
    const { bytes, ...head } = frame;
    body.set(bytes, offset);
    offset += bytes.length;
    const packed = { ...head, size: bytes.length };
    return packed.type === 'timestamps' ? { ...packed, timings: JSON.stringify(packed.timings) } : packed;
  });
  return { heads: pack(heads), body: body.buffer };
};

export const unpackFrames = (mail: FrameMail): Frame[] => {
  const heads = packr.unpack(mail.heads) as PackedFrame[];
  let offset = 0;
  return heads.map((packed) => {
    if (packed.type === 'flushed') return { ...packed, flushId: JSON.parse(packed.flushId) as string };
    if (!('size' in packed)) return packed;
    const { size, timings, ...head } = packed;
    const bytes = new Uint8Array(mail.body, offset, size);
    offset += size;
    if (timings === undefined) return { ...head, bytes } as Frame;
    return { ...head, timings: JSON.parse(timings) as WordTimings, bytes } as Frame;
  });
};
