/**
 * Routes of a listener and the wrapper that every request goes through. Paths match exactly: case, trailing slash and
 * percent signs included.
 */
import { preflightHeaders } from './cors.js';
import { Exchange } from './exchange.js';
import { afterChunks, reply, replyError, replyUnavailable } from './reply.js';
import { forwardedAddress, readRequestHead, type HeadFault, type RequestHead } from './request-head.js';
import type { Services } from './services.js';
import { spareOf, type HttpRequest, type HttpResponse, type TemplatedApp } from './uws.js';

/** Answers the exchange, now or later. An exception is answered 500. */
export type Handler = (exchange: Exchange, head: RequestHead) => void;

export interface Route {
  readonly path: string;
  /** A `get` route answers HEAD too. */
  readonly method: 'get' | 'post';
  readonly handler: Handler;
}

/**
 * Answers at the end of the tick. Where the next request begins is in doubt, and the library reads on in what it has
 * received as soon as this request is answered. While this one waits, anything that looks like another request ends the
 * connection without an answer.
 */
const refuseLater = (exchange: Exchange, fault: HeadFault): void => {
  const refuse = (): void => replyError(exchange, fault, { close: true });
  if (fault === 'badRequest') exchange.services.tick.add(exchange.guarded(refuse));
  else afterChunks(exchange, refuse);
};

/** Behind a proxy the client's address counts, which was not known when the connection opened. */
const isWelcome = (exchange: Exchange, head: RequestHead): boolean => {
  const address = exchange.services.isBehindProxy ? forwardedAddress(head) : '';
  return address === '' || exchange.comesFrom(address);
};

/**
 * Runs `handle` with an exchange of its own. An exception that left it would end the process.
 * @param route as the log names it: never what a client wrote
 */
export const withExchange = (
  services: Services,
  route: string,
  res: HttpResponse,
  req: HttpRequest,
  spare: HttpResponse | null,
  handle: Handler,
): void => {
  // Its client has reset the connection, and the system does not know its address any more. The handler of the one who
  // counted it last is still in its place, and is called.
  const peer = Buffer.from(res.getRemoteAddressAsText()).toString();
  if (peer === '') {
    res.close();
    return;
  }
  let exchange: Exchange | undefined;
  try {
    exchange = new Exchange(res, services, route, req, peer, spare);
    const head = readRequestHead(req);
    if (typeof head === 'string') refuseLater(exchange, head);
    else if (isWelcome(exchange, head)) handle(exchange, head);
    else replyUnavailable(exchange, 'connectionsOfAddressExhausted', { close: true });
  } catch (error) {
    if (exchange) exchange.fail(error);
    else res.close();
  }
};

/** Handles all requests of a pattern. */
export const addHandler = (
  app: TemplatedApp,
  services: Services,
  [pattern, route]: readonly [pattern: string, route: string],
  handlerOf: (req: HttpRequest) => Handler,
): void => {
  app.any(pattern, (res, req) => withExchange(services, route, res, req, spareOf(req), handlerOf(req)));
};

/** Answers 404 at all paths of a pattern that have no route. */
export const addNotFound = (app: TemplatedApp, services: Services, pattern: string): void =>
  addHandler(app, services, [pattern, '*'], () => (exchange) => reply(exchange, services.errors.notFound));

/** Answers 405, or a browser's preflight: without a key, because a preflight cannot send one. */
export const otherMethod =
  (allow: string): Handler =>
  (exchange, head) => {
    const isPreflight = exchange.method === 'options' && head.isPreflight;
    // 200 with an empty body: the library would add a length to a 204, which must have none.
    const { cors } = exchange.services;
    if (isPreflight && cors.allows(exchange.origin)) {
      const headers = preflightHeaders(allow, cors.requestHeaders);
      reply(exchange, { status: 200, contentType: null, body: '', headers });
    } else replyError(exchange, 'methodNotAllowed', { headers: [['allow', allow]] });
  };

export const addRoute = (app: TemplatedApp, services: Services, { path, method, handler }: Route): void => {
  const methods = method === 'get' ? ['get', 'head'] : [method];
  const other = otherMethod(methods.join(', ').toUpperCase());
  addHandler(app, services, [path, path], (req) => (methods.includes(req.getMethod()) ? handler : other));
};

/** All routes of a listener: any other path is answered 404. */
export const addRoutes = (app: TemplatedApp, services: Services, routes: readonly Route[]): void => {
  for (const route of routes) addRoute(app, services, route);
  addNotFound(app, services, '/*');
};
