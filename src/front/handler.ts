/** The wrapper that every route goes through. */
import { Exchange } from './exchange.js';
import { replyError } from './reply.js';
import { readRequestHead, type RequestHead } from './request-head.js';
import type { Services } from './services.js';
import type { HttpRequest, HttpResponse } from './uws.js';

/** Answers the exchange, now or later. What it throws is answered 500. */
export type Handler = (exchange: Exchange, head: RequestHead) => void;

/**
 * Where the next request begins is in doubt, and the library reads on in what it has received as soon as this one is
 * answered. While this one waits, anything that looks like another ends the connection unanswered.
 */
export const refuseLater = (exchange: Exchange): void => {
  exchange.services.tick.add(exchange.guarded(() => replyError(exchange, 'badRequest', { close: true })));
};

/** @param route as the log names it: never what a client wrote */
export const wrapHandler =
  (services: Services, route: string, handler: Handler) =>
  (res: HttpResponse, req: HttpRequest): void => {
    let exchange: Exchange | undefined;
    // An exception that leaves this function ends the process.
    try {
      exchange = new Exchange(res, services, route, req.getMethod(), req.getHeader('origin'));
      const head = readRequestHead(req);
      if (head) handler(exchange, head);
      else refuseLater(exchange);
    } catch (error) {
      if (exchange) exchange.fail(error);
      else res.close();
    }
  };
