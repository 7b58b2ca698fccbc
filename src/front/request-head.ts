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

/** The headers that are read. Of several the first one counts, but for `x-forwarded-for`. */
const wanted: ReadonlySet<string> = new Set([
  ...[
    'host',
    'content-length',
    'content-type',
    'transfer-encoding',
    'x-api-key',
    'xi-api-key',
    'authorization',
  ],
  ...['access-control-request-method', 'cookie', 'sec-fetch-site', 'x-forwarded-for'],
]);

export const readRequestHead = (req: HttpRequest) => {
  const seen = new Map<string, string>();
  let isAmbiguous = false as boolean;
  req.forEach((name, value) => {
    if (!wanted.has(name)) return;
    if (seen.has(name)) isAmbiguous ||= name === 'host' || name === 'content-length';
    // The proxy in front of us wrote the last one.
    if (!seen.has(name) || name === 'x-forwarded-for') seen.set(name, value);
  });
  const valueOf = (name: string): string => seen.get(name) ?? '';
  const length = seen.get('content-length');
  if (seen.has('transfer-encoding')) return 'lengthRequired';
  if (isAmbiguous || valueOf('host') === '') return 'badRequest';
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return 'badRequest';
  // Headers are as they were sent, and empty if absent.
  return {
    apiKey: valueOf('x-api-key'),
    /** The header of a dialect. */
    xiApiKey: valueOf('xi-api-key'),
    authorization: valueOf('authorization'),
    contentType: seen.get('content-type'),
    host: valueOf('host'),
    cookie: valueOf('cookie'),
    /** How a browser relates the page that asks to this address. */
    fetchSite: valueOf('sec-fetch-site'),
    /** What proxies say of the client's address. */
    forwardedFor: valueOf('x-forwarded-for'),
    /** A browser asks whether a page of another origin may send a request. */
    isPreflight: seen.has('access-control-request-method'),
    /** Without the question mark; empty if absent. */
    query: req.getQuery(),
    /** The value of the parameter of a path such as `/v1/voices/:id`; empty if the path has none. */
    parameter: req.getParameter(0) ?? '',
    /** Declared bytes of the body; 0 if nothing was declared. */
    contentLength: Number(length ?? 0),
  };
};

export type RequestHead = Readonly<Exclude<ReturnType<typeof readRequestHead>, HeadFault>>;
