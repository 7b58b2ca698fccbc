/**
 * What an error shows of what a client sent: little, and nothing that looks like a key. Errors end up in logs and in bug
 * reports; and if a proxy and the service ever read a connection in two ways, what is quoted could be another caller's.
 */
import type { Bounds } from '../limits.js';

export type QuoteBound = Pick<Bounds, 'quotedBytesMax'>;

/** Keys and tokens of the service, and keys of OpenAI and ElevenLabs, which a client may send by mistake. */
const keys = /(svc_(?:sk|op)_|(?<![a-z])sk[_-](?=[\w-]{8}))[\w-]*/g;

const cut = (text: string, bytesMax: number): { readonly shown: string; readonly bytes: number } => {
  const { read, written } = new TextEncoder().encodeInto(text, new Uint8Array(bytesMax));
  const shown = read < text.length ? `${text.slice(0, read)}…` : text;
  return { shown: shown.replace(keys, '$1…'), bytes: written };
};

/** A name or value that a client chose, for a message. */
export const quoted = (text: string, { quotedBytesMax }: QuoteBound): string =>
  cut(text, quotedBytesMax).shown;

/** UTF-16 units of all names and strings in a value: its JSON is at least as long. */
const unitsOf = (value: unknown): number => {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  const members: readonly unknown[] = Object.values(value);
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return [...names, ...members].reduce((units: number, part) => units + unitsOf(part), 0);
};

/** The quotes of one error that lists several faults: they share the bound. */
export class Quotes {
  #bytesLeft: number;

  constructor({ quotedBytesMax }: QuoteBound) {
    this.#bytesLeft = quotedBytesMax;
  }

  /** @returns as much of a name as there is room for */
  name(text: string): string {
    const { shown, bytes } = cut(text, this.#bytesLeft);
    this.#bytesLeft -= bytes;
    return shown;
  }

  /** @returns JSON text, or `null` if there is no room for all of it */
  value(value: unknown): string | null {
    // The largest inputs are refused without a copy.
    if (unitsOf(value) > this.#bytesLeft) return null;
    const text = JSON.stringify(value);
    const bytes = Buffer.byteLength(text);
    if (bytes > this.#bytesLeft || text.search(keys) >= 0) return null;
    this.#bytesLeft -= bytes;
    return text;
  }
}
