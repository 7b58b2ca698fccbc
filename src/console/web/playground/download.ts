/** What came, as a file in the format that was asked for. */
import type { AudioFormat, Encoding } from '../../../api/formats.js';
import { riffHeaderBytes } from './decoder.js';

const files: Readonly<Record<Encoding, { readonly extension: string; readonly type: string }>> = {
  mp3: { extension: 'mp3', type: 'audio/mpeg' },
  wav: { extension: 'wav', type: 'audio/wav' },
  pcm: { extension: 'pcm', type: 'application/octet-stream' },
  linear16: { extension: 'wav', type: 'audio/wav' },
  opus: { extension: 'opus', type: 'audio/ogg' },
  mulaw: { extension: 'ulaw', type: 'audio/basic' },
  alaw: { extension: 'alaw', type: 'application/octet-stream' },
};

export const extensionOf = (encoding: Encoding): string => files[encoding].extension;

/** A stream does not know its length: its header has no sizes, and `linear16` has a header on each record. */
const riffFile = (parts: readonly Uint8Array<ArrayBuffer>[]): Blob => {
  const [first] = parts;
  if (first === undefined) return new Blob();
  const header = first.slice(0, riffHeaderBytes(first));
  const bodies = parts.map((part) => part.subarray(riffHeaderBytes(part)));
  const bytes = bodies.reduce((sum, body) => sum + body.length, 0);
  const view = new DataView(header.buffer);
  view.setUint32(4, header.length - 8 + bytes, true);
  view.setUint32(header.length - 4, bytes, true);
  return new Blob([header, ...bodies], { type: files.wav.type });
};

/** Hands the browser a file to keep. */
export const download = (
  name: string,
  { encoding }: AudioFormat,
  parts: readonly Uint8Array<ArrayBuffer>[],
): void => {
  const isRiff = encoding === 'wav' || encoding === 'linear16';
  const file = isRiff ? riffFile(parts) : new Blob([...parts], { type: files[encoding].type });
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = `${name}.${extensionOf(encoding)}`;
  link.click();
  // The browser has taken the file by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
};
