/** Follows the pages of one Ogg stream: they are numbered, so what is lost, doubled or out of place shows. */

import type { AudioCheck } from './audio-check.js';

const headBytes = 27;
const at = { type: 5, granule: 6, serial: 14, sequence: 18, segments: 26 } as const;
const LAST_PAGE = 4;
const granulesPerMs = 48;

export class OggPages implements AudioCheck {
  #rest: Buffer = Buffer.alloc(0);
  #serial: number | null = null;
  #pages = 0;
  #granule = 0;
  #isOver = false;

  /** From its beginning to the end of the last page. */
  get durationMs(): number {
    return this.#granule / granulesPerMs;
  }

  /** The page that ends the stream was the last one, and nothing came behind it. */
  get isComplete(): boolean {
    return this.#isOver && this.#rest.length === 0;
  }

  /** @returns what is wrong with the stream, `null` when nothing is */
  push(bytes: Buffer): string | null {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const length = this.#pageLength();
      if (length === null) return null;
      const fault = this.#readPage();
      if (fault !== null) return fault;
      this.#rest = this.#rest.subarray(length);
    }
  }

  /** Of the page that the rest begins with; `null` until all of it is there. */
  #pageLength(): number | null {
    const rest = this.#rest;
    if (rest.length < headBytes) return null;
    const segments = rest[at.segments]!;
    if (rest.length < headBytes + segments) return null;
    let length = headBytes + segments;
    for (let i = 0; i < segments; i++) length += rest[headBytes + i]!;
    return rest.length < length ? null : length;
  }

  #readPage(): string | null {
    const page = this.#rest;
    if (page.toString('latin1', 0, 4) !== 'OggS') return 'audio is not where a page must begin';
    if (this.#isOver) return 'a page comes after the last';
    const serial = page.readUInt32LE(at.serial);
    this.#serial ??= serial;
    if (serial !== this.#serial) return 'a page belongs to another stream';
    const sequence = page.readUInt32LE(at.sequence);
    if (sequence !== this.#pages)
      return `page ${String(sequence)} comes where ${String(this.#pages)} must be`;
    const granule = Number(page.readBigInt64LE(at.granule));
    if (granule < this.#granule) return 'time runs backwards';
    this.#granule = granule;
    this.#pages++;
    this.#isOver = (page[at.type]! & LAST_PAGE) !== 0;
    return null;
  }
}
