/**
 * Events of the Wyoming protocol: a line of JSON, then as many bytes of JSON data and of payload as the line says.
 *
 *   {"type": "synthesize", "version": "1.8.0", "data_length": 17}\n{"text": "Hello"}
 */
import typia, { type tags } from 'typia';
import { decode, parseJson } from '../../api/body.js';
import { isObject } from '../../api/issues.js';
import { scanJson } from '../../api/json.js';
import type { PartOfAccount } from '../../byte-budget.js';
import { ByteQueue } from '../../front/byte-queue.js';
import type { Bounds } from '../../limits.js';

const PROTOCOL_VERSION = '1.8.0';

export interface WyomingEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** @param data JSON values @param payload bytes of audio */
export const encodeEvent = (type: string, data: object = {}, payload?: Uint8Array): Buffer => {
  const json = Buffer.from(Object.keys(data).length === 0 ? '' : JSON.stringify(data));
  const line = {
    type,
    version: PROTOCOL_VERSION,
    ...(json.length > 0 && { data_length: json.length }),
    ...(payload !== undefined && { payload_length: payload.length }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), json, payload ?? Buffer.alloc(0)]);
};

/** The bytes are not an event, so the start of the next one is unknown. */
export class EventFault extends Error {
  override readonly name = 'EventFault';
}

type Length = number & tags.Type<'uint32'>;

interface Line {
  type: string;
  data?: Record<string, unknown> | null;
  data_length?: Length | null;
  payload_length?: Length | null;
}

const isLine = typia.createIs<Line>();

/** The head of an event whose data may still be to come. */
interface Head extends WyomingEvent {
  readonly dataBytes: number;
  readonly payloadBytes: number;
}

export type EventBounds = Pick<Bounds, 'bodyBytesMax' | 'bodyDepthMax' | 'bodyTokensMax'>;

const NEWLINE = 0x0a;
/** An event whose line is not read counts as this much: most are shorter. */
const UNREAD_EVENT_BYTES = 16 * 1024;

/** Cuts the bytes of a connection into events. It drops payloads unread: no event for this service needs one. */
export class EventReader {
  readonly #bounds: EventBounds;
  readonly #queue: ByteQueue;
  /** The first bytes that wait, which have no line end. */
  #scanned = 0;
  #head: Head | null = null;
  #payloadLeft = 0;

  /** @param budget of the memory for bytes that wait */
  constructor(bounds: EventBounds, budget: PartOfAccount) {
    this.#bounds = bounds;
    this.#queue = new ByteQueue(budget);
  }

  /** Bytes that came and are in no event yet. */
  get heldBytes(): number {
    return this.#queue.length;
  }

  /** The size of the next event, about. */
  get nextBytes(): number {
    return this.#head?.dataBytes ?? Math.min(this.heldBytes, UNREAD_EVENT_BYTES);
  }

  /** The beginning of an event has come, and not all of it. */
  get isMidEvent(): boolean {
    return this.heldBytes > 0 || this.#head !== null || this.#payloadLeft > 0;
  }

  /** Gives its memory back if no bytes wait. The buffer of a line counts for the event that was read from it. */
  trim(): void {
    if (this.heldBytes === 0 && this.#head === null) this.close();
  }

  /** Drops the bytes that wait, and gives their memory back. Idempotent. */
  close(): void {
    this.#queue.clear();
    this.#scanned = 0;
  }

  /** @returns false if there is no memory for these bytes */
  push(bytes: Buffer): boolean {
    const skipped = this.heldBytes === 0 ? Math.min(this.#payloadLeft, bytes.length) : 0;
    this.#payloadLeft -= skipped;
    return this.#queue.push(bytes.subarray(skipped));
  }

  /** @returns the next whole event, `null` until it is there @throws {EventFault} */
  next(): WyomingEvent | null {
    const skipped = Math.min(this.#payloadLeft, this.heldBytes);
    this.#payloadLeft -= skipped;
    this.#queue.cut(skipped);
    if (this.#payloadLeft > 0) return null;
    this.#head ??= this.#readLine();
    if (this.#head === null || this.heldBytes < this.#head.dataBytes) return null;
    const { dataBytes, payloadBytes, type, data } = this.#head;
    const more = dataBytes === 0 ? {} : this.#json(this.#queue.cut(dataBytes));
    if (!isObject(more)) throw new EventFault('the data of an event must be a JSON object');
    this.#head = null;
    this.#payloadLeft = payloadBytes;
    return { type, data: { ...data, ...more } };
  }

  #readLine(): Head | null {
    const held = this.#queue.bytes;
    const end = held.indexOf(NEWLINE, this.#scanned);
    if ((end < 0 ? held.length : end) > this.#bounds.bodyBytesMax)
      throw new EventFault('the line of an event is too long');
    this.#scanned = end < 0 ? held.length : 0;
    if (end < 0) return null;
    const line = this.#json(this.#queue.cut(end + 1));
    if (!isLine(line))
      throw new EventFault('an event begins with a line of JSON: {"type": ..., "data_length": ...}');
    const dataBytes = line.data_length ?? 0;
    if (dataBytes > this.#bounds.bodyBytesMax) throw new EventFault('the data of an event are too long');
    return { type: line.type, data: line.data ?? {}, dataBytes, payloadBytes: line.payload_length ?? 0 };
  }

  #json(bytes: Buffer): unknown {
    const { bodyDepthMax: depthMax, bodyTokensMax: tokensMax } = this.#bounds;
    if (scanJson(bytes, { depthMax, tokensMax }).excess !== null)
      throw new EventFault('an event nests too deeply, or has too many values');
    const text = decode(bytes);
    if (text === null) throw new EventFault('an event is not in UTF-8');
    const parsed = parseJson(text);
    if (!('value' in parsed)) throw new EventFault('an event is not JSON');
    return parsed.value;
  }
}
