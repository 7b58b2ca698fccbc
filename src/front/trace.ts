/**
 * The place of a request in the caller's trace (W3C Trace Context): its `traceparent` goes into the log, and the answer
 * names our part of the work. `tracestate` is neither kept nor answered.
 *
 * Of all that a client sends, only the trace becomes a header. The service parses it into bytes and formats these bytes, so
 * the header contains only hexadecimal digits and hyphens.
 */
import { randomBytes } from 'node:crypto';
import type { Header } from './cors.js';
import type { HttpRequest } from './uws.js';

/** Sampled, and a random trace id. The standard wants the others cleared. */
const KNOWN_FLAGS = 0x03;

const shape = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** @returns `null` if the standard calls the value invalid */
export const parseTraceparent = (value: string) => {
  const [, version, traceId = '', parentId = '', flags = '', more] = shape.exec(value) ?? [];
  // A later version may have more fields.
  if (version === undefined || (version === '00' && more !== undefined)) return null;
  const [trace, parent] = [Buffer.from(traceId, 'hex'), Buffer.from(parentId, 'hex')];
  if (!trace.some((byte) => byte > 0) || !parent.some((byte) => byte > 0)) return null;
  return {
    traceId: trace.toString('hex'),
    /** The caller's span. */
    parentSpanId: parent.toString('hex'),
    /** Ours. */
    spanId: randomBytes(8).toString('hex'),
    /** Those of the caller that the standard defines. */
    flags: Buffer.of(Number.parseInt(flags, 16) & KNOWN_FLAGS).toString('hex'),
  };
};

export type Trace = NonNullable<ReturnType<typeof parseTraceparent>>;

/** @returns `null` if the request has no valid `traceparent`, or several */
export const readTrace = (req: Pick<HttpRequest, 'getHeader' | 'forEach'>): Trace | null => {
  const value = req.getHeader('traceparent');
  if (value === '') return null;
  let count = 0;
  req.forEach((name) => {
    if (name === 'traceparent') count++;
  });
  return count === 1 ? parseTraceparent(value) : null;
};

export const traceHeaders = (trace: Trace | null): readonly Header[] =>
  trace === null ? [] : [['traceparent', `00-${trace.traceId}-${trace.spanId}-${trace.flags}`]];

/** Fields of a log line. */
export const traceFields = (trace: Trace | null): Partial<Omit<Trace, 'flags'>> => {
  if (trace === null) return {};
  const { traceId, parentSpanId, spanId } = trace;
  return { traceId, parentSpanId, spanId };
};
