/**
 * The head of a request, read while the library still has it, and refused when two servers could read it two ways
 * (request smuggling). The library itself refuses a length that is no number, a length beside a transfer coding,
 * and a missing host; it takes the rest as it comes.
 */
import type { HttpRequest } from './uws.js';

export interface RequestHead {
  /** Empty when absent. */
  readonly apiKey: string;
  readonly contentType: string | undefined;
  /** Declared bytes of the body; `undefined` for a chunked one, 0 when nothing was declared. */
  readonly contentLength: number | undefined;
}

/** @returns `null` when the request is to be answered 400 and its connection closed */
export const readRequestHead = (req: HttpRequest): RequestHead | null => {
  let apiKey: string | undefined;
  let contentType: string | undefined;
  let host: string | undefined;
  let length: string | undefined;
  let coding: string | undefined;
  let twice = false;
  req.forEach((name, value) => {
    switch (name) {
      case 'host':
        twice ||= host !== undefined;
        host = value;
        break;
      case 'content-length':
        twice ||= length !== undefined;
        length = value;
        break;
      case 'transfer-encoding':
        twice ||= coding !== undefined;
        coding = value;
        break;
      case 'x-api-key':
        apiKey ??= value;
        break;
      case 'content-type':
        contentType ??= value;
        break;
      default:
    }
  });
  if (twice || !host) return null;
  if (length !== undefined && (coding !== undefined || !/^\d{1,15}$/.test(length))) return null;
  // Anything else the library would take for chunked: of `gzip, chunked` it would hand us the gzip.
  if (coding !== undefined && (coding as string).toLowerCase() !== 'chunked') return null;
  return {
    apiKey: apiKey ?? '',
    contentType,
    contentLength: coding === undefined ? Number(length ?? 0) : undefined,
  };
};
