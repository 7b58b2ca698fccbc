/** The events of the Wyoming protocol, as its clients write and read them. It shares no code with the service. */

export interface WyomingEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly payload: Buffer;
}

/** As the library of the protocol writes it: spaces after colons and commas, and data after the line. */
export const encodeWyoming = (type: string, data?: Readonly<Record<string, unknown>>): Buffer => {
  const spaced = (value: unknown): string =>
    JSON.stringify(value, null, 1)
      .replace(/\n */g, ' ')
      .replace(/([{[]) /g, '$1')
      .replace(/ ([}\]])/g, '$1');
  const bytes = Buffer.from(data === undefined ? '' : spaced(data));
  const line = { type, version: '1.8.0', ...(data !== undefined && { data_length: bytes.length }) };
  return Buffer.concat([Buffer.from(`${spaced(line)}\n`), bytes]);
};

/** @returns the event at the start, and how many bytes it takes; `null` if it is not whole */
const firstEvent = (bytes: Buffer): { event: WyomingEvent; length: number } | null => {
  const lineEnd = bytes.indexOf('\n');
  if (lineEnd < 0) return null;
  const line = JSON.parse(bytes.toString('utf8', 0, lineEnd)) as Record<string, unknown>;
  const dataEnd = lineEnd + 1 + Number(line['data_length'] ?? 0);
  const length = dataEnd + Number(line['payload_length'] ?? 0);
  if (bytes.length < length) return null;
  const data = bytes.toString('utf8', lineEnd + 1, dataEnd);
  const event = {
    type: String(line['type']),
    data: (data === '' ? {} : JSON.parse(data)) as Record<string, unknown>,
    payload: Buffer.from(bytes.subarray(dataEnd, length)),
  };
  return { event, length };
};

/** Cuts the bytes of a connection into events. */
export class WyomingReader {
  #bytes: Buffer = Buffer.alloc(0);

  /** @returns the events that are whole now @throws {SyntaxError} if the bytes are no events */
  push(bytes: Buffer): WyomingEvent[] {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const events: WyomingEvent[] = [];
    for (let next = firstEvent(this.#bytes); next !== null; next = firstEvent(this.#bytes)) {
      events.push(next.event);
      this.#bytes = this.#bytes.subarray(next.length);
    }
    return events;
  }
}

/** Milliseconds of the samples of some events. */
export const audioMsOf = (events: readonly WyomingEvent[]): number =>
  events
    .filter(({ type }) => type === 'audio-chunk')
    .reduce((sum, { data, payload }) => sum + (payload.length / 2 / Number(data['rate'])) * 1_000, 0);
