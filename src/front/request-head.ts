/**
 * Reads the head of a request while the library still has it, and refuses a head that two servers could read in two ways
 * (request smuggling). The library itself refuses a length that is not a number, a length beside a transfer coding, and a
 * missing host; it accepts everything else.
 *
 * Only `content-length` says how long a body is. The library's reader of chunks takes bytes that are no digits as digits,
 * and any two bytes as the end of a chunk, so it could take a part of the next request for a body.
 */
import { isIP } from 'node:net';
import type { ErrorCode } from '../errors.js';
import type { HttpRequest } from './uws.js';

export interface RequestHead {
  /** `x-api-key`; empty if absent. */
  readonly apiKey: string;
  /** `xi-api-key`, the header of a dialect; empty if absent. */
  readonly xiApiKey: string;
  /** As sent; empty if absent. */
  readonly authorization: string;
  readonly contentType: string | undefined;
  readonly host: string;
  /** As sent; empty if absent. */
  readonly cookie: string;
  /** How a browser relates the page that asks to this address: `sec-fetch-site`; empty if absent. */
  readonly fetchSite: string;
  /** What proxies say of the client's address: `x-forwarded-for`; empty if absent. */
  readonly forwardedFor: string;
  /** A browser asks whether a page of another origin may send a request: `access-control-request-method`. */
  readonly isPreflight: boolean;
  /** As sent, without the question mark; empty if absent. */
  readonly query: string;
  /** The value of the parameter of a path such as `/v1/voices/:id`; empty if the path has none. */
  readonly parameter: string;
  /** Declared bytes of the body; 0 if nothing was declared. */
  readonly contentLength: number;
}

/**
 * The client's address as the proxy in front of us saw it, without the port that some proxies add. Empty without a proxy, or
 * if it is no address: what counts by address keeps it. What comes before it, a client can write.
 */
export const forwardedAddress = ({ forwardedFor }: Pick<RequestHead, 'forwardedFor'>): string => {
  const last = forwardedFor.slice(forwardedFor.lastIndexOf(',') + 1).trim();
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(last)?.[1] ?? /^([\d.]+):\d+$/.exec(last)?.[1] ?? last;
  return isIP(address) === 0 ? '' : address;
};

/** The token of an `authorization` header; its scheme may be absent. */
export const withoutBearer = (authorization: string): string => authorization.replace(/^Bearer +/i, '');

/**
 * The key of a listener that takes it in any header. Proxies choose the host by the first of these that is there
 * (`scripts/deploy`), so the order must be the same: with another, one key could take slots on each host.
 */
export const keyIn = ({
  apiKey,
  authorization,
  xiApiKey,
}: Pick<RequestHead, 'apiKey' | 'authorization' | 'xiApiKey'>): string =>
  apiKey || xiApiKey || withoutBearer(authorization);

/** After it, where the next request begins is in doubt: the connection must close. */
export type HeadFault = Extract<ErrorCode, 'badRequest' | 'lengthRequired'>;

export const readRequestHead = (req: HttpRequest): RequestHead | HeadFault => {
  const seen: Record<
    | 'apiKey'
    | 'xiApiKey'
    | 'authorization'
    | 'contentType'
    | 'requestedMethod'
    | 'cookie'
    | 'fetchSite'
    | 'forwardedFor'
    | 'host'
    | 'length'
    | 'coding',
    string | undefined
  > = {
    apiKey: undefined,
    xiApiKey: undefined,
    authorization: undefined,
    contentType: undefined,
    requestedMethod: undefined,
    cookie: undefined,
    fetchSite: undefined,
    forwardedFor: undefined,
    host: undefined,
    length: undefined,
    coding: undefined,
  };
  const repeated: string[] = [];
  const once = (field: 'host' | 'length', value: string): void => {
    if (seen[field] !== undefined) repeated.push(field);
    seen[field] = value;
  };
  req.forEach((name, value) => {
    switch (name) {
      case 'host':
        once('host', value);
        break;
      case 'content-length':
        once('length', value);
        break;
      case 'transfer-encoding':
        seen.coding = value;
        break;
      case 'x-api-key':
        seen.apiKey ??= value;
        break;
      case 'xi-api-key':
        seen.xiApiKey ??= value;
        break;
      case 'authorization':
        seen.authorization ??= value;
        break;
      case 'content-type':
        seen.contentType ??= value;
        break;
      case 'access-control-request-method':
        seen.requestedMethod ??= value;
        break;
      case 'cookie':
        seen.cookie ??= value;
        break;
      case 'sec-fetch-site':
        seen.fetchSite ??= value;
        break;
      case 'x-forwarded-for':
        // Of several headers, the proxy in front of us wrote the last.
        seen.forwardedFor = value;
        break;
      default:
    }
  });
  const { apiKey, xiApiKey, authorization, contentType, requestedMethod } = seen;
  const { cookie, fetchSite, forwardedFor, host, length, coding } = seen;
  if (coding !== undefined) return 'lengthRequired';
  if (repeated.length > 0 || !host) return 'badRequest';
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return 'badRequest';
  return {
    apiKey: apiKey ?? '',
    xiApiKey: xiApiKey ?? '',
    authorization: authorization ?? '',
    contentType,
    host,
    cookie: cookie ?? '',
    fetchSite: fetchSite ?? '',
    forwardedFor: forwardedFor ?? '',
    isPreflight: requestedMethod !== undefined,
    query: req.getQuery(),
    parameter: req.getParameter(0) ?? '',
    contentLength: Number(length ?? 0),
  };
};
