/** The table of routes. Paths match exactly: case, trailing slash and percent signs included. */
import { preflightHeaders } from './cors.js';
import { wrapHandler, type Handler } from './handler.js';
import { reply, replyError } from './reply.js';
import type { Services } from './services.js';
import type { TemplatedApp } from './uws.js';

export interface Route {
  readonly path: string;
  /** A `get` route answers HEAD too. */
  readonly method: 'get' | 'post';
  readonly handler: Handler;
}

const NOT_FOUND_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>404 Not Found</title></head>
<body><h1>Not Found</h1><p>There is nothing at this address.</p></body>
</html>
`;

const notFound: Handler = (exchange) =>
  reply(exchange, { status: 404, contentType: 'text/html; charset=utf-8', body: NOT_FOUND_PAGE });

/** Of the methods that a route does not know, a browser's preflight is answered, without a key: it cannot send one. */
export const otherMethod =
  (allow: string): Handler =>
  (exchange, head) => {
    const isPreflight = exchange.method === 'options' && head.isPreflight;
    // 200 with an empty body: to a 204 the library would add a length, which a 204 must not have.
    if (isPreflight && exchange.services.cors.allows(exchange.origin))
      reply(exchange, { status: 200, contentType: null, body: '', headers: preflightHeaders(allow) });
    else replyError(exchange, 'methodNotAllowed', { headers: [['allow', allow]] });
  };

export const addRoutes = (app: TemplatedApp, services: Services, routes: readonly Route[]): void => {
  for (const { path, method, handler } of routes) {
    const wrapped = wrapHandler(services, path, handler);
    if (method === 'get') app.get(path, wrapped).head(path, wrapped);
    else app.post(path, wrapped);
    const allow = method === 'get' ? 'GET, HEAD' : 'POST';
    app.any(path, wrapHandler(services, path, otherMethod(allow)));
  }
  app.any('/*', wrapHandler(services, '*', notFound));
};
