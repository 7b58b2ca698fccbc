/** A longer value is given as it is written: no key, token, name or search is as long. */
const WRITTEN_UNITS_MAX = 1_024;

const decoded = (part: string): string => {
  if (part.length > WRITTEN_UNITS_MAX) return part;
  const text = part.replaceAll('+', ' ');
  if (!text.includes('%')) return text;
  const bytes = Buffer.from(text)
    .toString('latin1')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
};

/**
 * The query of a request. Only a value that is asked for is decoded, if it is short. `URLSearchParams` decodes everything, and throws and
 * catches an exception for each escape that is not UTF-8: 8 kB of these held the front thread for 10 ms, before a key was
 * checked.
 */
export class Query {
  readonly #text: string;

  /** @param text the library gives none for an address without a question mark, whatever its types say */
  constructor(text: string | undefined) {
    this.#text = text ?? '';
  }

  /** @returns the first value of this name, which is written without escapes; `null` without one */
  get(name: string): string | null {
    const text = this.#text;
    for (let start = 0; start <= text.length;) {
      const next = text.indexOf('&', start);
      const end = next < 0 ? text.length : next;
      const after = start + name.length;
      if (text.startsWith(name, start)) {
        if (after === end) return '';
        if (text[after] === '=') return decoded(text.slice(after + 1, end));
      }
      start = end + 1;
    }
    return null;
  }
}
