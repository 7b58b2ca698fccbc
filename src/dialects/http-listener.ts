/**
 * The listener of a dialect over HTTP: the routes and the error bodies of another service's API, over the services of this
 * one. Address and certificate are those of the public port.
 */
import type { ErrorShape } from '../api/error-shape.js';
import type { Config } from '../config.js';
import type { Certificate } from '../front/certificate.js';
import { Cors, type CorsHeaders } from '../front/cors.js';
import { Listener, type AddressVariables } from '../front/listener.js';
import { addRoutes, type Route } from '../front/routes.js';
import type { FurtherListener, ServerParts, Shared } from '../front/server.js';
import type { Services } from '../front/services.js';
import { addSocketRoute, type SocketRouteParts } from '../front/ws/socket-route.js';

/** What every dialect is built of. */
export interface DialectParts extends Pick<ServerParts, 'admission' | 'bounds' | 'speech'> {
  readonly config: Pick<Config, 'host' | 'dataDir' | 'corsOrigins'>;
  /** `null`: no TLS. */
  readonly certificate: Certificate | null;
  readonly shared: Shared;
}

export interface SocketPath extends Pick<SocketRouteParts, 'authenticate'> {
  readonly path: string;
}

export interface HttpDialect {
  /** Its routes are counted and logged as `name:/path`. */
  readonly name: string;
  readonly variables: AddressVariables;
  readonly port: number;
  readonly errors: ErrorShape;
  readonly routes: readonly Route[];
  /** Its paths that speak. */
  readonly speechPaths: readonly string[];
  readonly socketPaths: readonly SocketPath[];
  /** Whose pages may call it: by default those of `CORS_ORIGINS`. */
  readonly corsOrigins?: readonly string[];
}

/**
 * Packages for browsers name themselves in headers of their own, so pages may send all headers. `*` leaves out
 * `authorization`. A page must see `x-should-retry`, or its client repeats what cannot succeed.
 */
const corsHeaders: CorsHeaders = {
  request: 'authorization, *',
  response: 'x-request-id, retry-after, traceparent, x-should-retry',
};

export const httpListener = (
  { bounds, certificate, config, shared }: DialectParts,
  dialect: HttpDialect,
): FurtherListener => {
  const { handshakes, isDraining, sockets } = shared;
  const { name, port, variables } = dialect;
  const connections = shared.connections.listener();
  const routePrefix = `${name}:`;
  const cors = new Cors(dialect.corsOrigins ?? config.corsOrigins, corsHeaders);
  const services: Services = {
    ...shared.services,
    ...{ connections, cors, routePrefix },
    errors: dialect.errors,
  };
  const { clock, log, metrics } = services;
  return {
    name,
    speechRoutes: dialect.speechPaths.map((path) => routePrefix + path),
    socketRoutes: dialect.socketPaths.map(({ path }) => routePrefix + path),
    listener: new Listener({
      ...{ host: config.host, port, variables, certificate },
      ...{ bounds, clock, connections, handshakes, log, metrics },
      addRoutes(app) {
        for (const { path, authenticate } of dialect.socketPaths)
          addSocketRoute(app, path, { services, sockets, isDraining, authenticate });
        addRoutes(app, services, dialect.routes);
      },
    }),
  };
};
