/**
 * The service's side of its connections: HTTP requests and WebSockets.
 *
 *   built --listen--> serving --stopAccepting--> draining --close--> closed
 */
import { createServer as createNetServer, type AddressInfo } from 'node:net';
import type { Admission } from '../accounts/admission.js';
import { parseSpeechRequest } from '../api/speech-request.js';
import { parseVoicePlatform } from '../api/voice-platform.js';
import type { Speech } from '../speech/speech.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs, type Clock } from '../monotonic.js';
import { ByteBudget } from '../byte-budget.js';
import { createTickActions } from '../tick.js';
import type { Certificate } from './certificate.js';
import { Connections } from './connections.js';
import { Cors } from './cors.js';
import type { Exchange } from './exchange.js';
import { Farewell } from './farewell.js';
import { frontFigures, type FrontFigures } from './figures.js';
import { healthRoute, readyRoute, type Readiness } from './health-routes.js';
import { openApiRoute, speakersRoute } from './json-routes.js';
import { Listener } from './listener.js';
import { Pulse } from './pulse.js';
import { Registry } from './registry.js';
import { addRoutes, type Route } from './routes.js';
import type { Services } from './services.js';
import { speechRoute, type Parser } from './speech-route.js';
import { rawResponder, streamResponder } from './stream-responder.js';
import type { TemplatedApp } from './uws.js';
import { wholeResponder } from './whole-responder.js';
import { addSocketRoute } from './ws/socket-route.js';
import { SOCKET_PATH, Sockets } from './ws/sockets.js';

/** The address cannot be listened on. The message is one line for the operator. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** As of the operating system: `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL` ... */
  readonly code: string;

  /** @param variables that say where to listen */
  constructor(host: string, port: number, code: string, variables = 'HOST and PORT') {
    const why =
      code === 'EADDRINUSE'
        ? 'the port is in use'
        : code === 'EACCES'
          ? 'no permission for this port'
          : code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND'
            ? 'this machine has no such address'
            : code;
    super(`cannot listen on ${host}:${port}: ${why} (see ${variables})`);
    this.code = code;
  }
}

export interface ServerParts {
  readonly config: {
    readonly host: string;
    readonly port: number;
    readonly dataDir: string;
    readonly corsOrigins: readonly string[];
  };
  /** Checked; without one the server speaks plain HTTP. */
  readonly certificate?: Certificate | null;
  readonly speech: Speech;
  readonly admission: Admission;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bounds: Bounds;
  readonly clock?: Clock;
}

export interface Server {
  /** What is open at the moment. */
  readonly figures: FrontFigures;
  /** That of the stages below, and its own: it drains. */
  readonly readiness: Readiness;
  /**
   * @returns the port, chosen by the system when the configured one is 0
   * @throws {ListenError}
   */
  listen(): Promise<{ readonly port: number }>;
  /**
   * New connections get this certificate; those there are keep the one that they have. Of a server with TLS.
   *
   * @returns whether it is another one than before
   * @throws {CertificateError} and nothing changes
   */
  renewCertificate(certificate: Certificate): boolean;
  /**
   * No new connections. A moment later, so that the request of one who had just connected is served, speech on those
   * there are is answered 503, and WebSockets are closed (1001) as soon as nothing is spoken on them: at once, where no
   * connection is without a request. What is in flight goes on. Idempotent.
   */
  stopAccepting(): void;
  /** Requests that are not answered to the end, and WebSockets. */
  readonly inFlight: number;
  /** Resolves when nothing is in flight. */
  whenIdle(): Promise<void>;
  /** Ends what there is, now. Idempotent. */
  close(): void;
}

/** Asks the system whether an address can be had, and why not, which the library does not tell. */
const probe = (host: string, port: number): Promise<{ port: number } | { code: string }> =>
  new Promise((resolve) => {
    const server = createNetServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? error.message }));
    server.listen({ host, port, exclusive: true }, () => {
      const found = (server.address() as AddressInfo).port;
      server.close(() => resolve({ port: found }));
    });
  });

const speechBody: Parser = (body, head, bounds) => parseSpeechRequest(body, head.contentType, bounds);

const platformBody: Parser = (body, head, bounds) =>
  parseVoicePlatform(body, head.contentType, new URLSearchParams(head.query).get('voice'), bounds);

/** Re-arming and deadlines are looked at this often in the time between two re-arms. */
const BEATS_A_REARM = 4;

export const createServer = (parts: ServerParts): Server => {
  const { config, speech, admission, readiness, log, bounds } = parts;
  const clock = parts.clock ?? monotonicMs;
  const services: Services = {
    log,
    metrics: parts.metrics,
    clock,
    bounds,
    cors: new Cors(config.corsOrigins),
    registry: new Registry<Exchange>(),
    pulse: new Pulse(bounds.stallRearmMs / BEATS_A_REARM, clock),
    tick: createTickActions(),
    bodyBudget: new ByteBudget(bounds.bodyBytesInFlightMax),
    textBudget: new ByteBudget(bounds.requestCharactersInFlightMax),
    resultBudget: new ByteBudget(bounds.resultMemoryInFlightBytesMax),
    spoolBudget: new ByteBudget(bounds.resultSpoolBytesMax),
    spoolFileBudget: new ByteBudget(bounds.resultSpoolFilesMax),
  };
  let closed = false;
  const { connectionsMax } = bounds;
  const connections = new Connections({ connectionsMax, clock, log, metrics: parts.metrics });
  const sockets = new Sockets({ services, speech, admission });
  const farewell = new Farewell(bounds.drainLingerMs, () => sockets.drain());
  const speechParts = { speech, admission, isDraining: () => farewell.isRefusing };
  const ready: Readiness = {
    reasons: () => (farewell.hasBegun ? [...readiness.reasons(), 'draining'] : readiness.reasons()),
    warnings: () => readiness.warnings(),
  };
  const speechRoutes = [
    ['/v1/tts', speechBody, wholeResponder(config.dataDir)],
    ['/v1/tts/stream', speechBody, streamResponder],
    ['/v1/tts/integrations/voiceplatform', platformBody, rawResponder],
  ] as const;
  const routes: readonly Route[] = [
    ...speechRoutes.map(([path, parse, responder]) => ({
      path,
      method: 'post' as const,
      handler: speechRoute(speechParts, parse, responder),
    })),
    { path: '/v1/tts/speakers', method: 'get', handler: speakersRoute(admission, speech) },
    { path: '/openapi.json', method: 'get', handler: openApiRoute(admission, speech, bounds) },
    { path: '/healthz', method: 'get', handler: healthRoute },
    { path: '/readyz', method: 'get', handler: readyRoute(ready) },
  ];
  const addAllRoutes = (app: TemplatedApp): void => {
    // Before the catch-all: the library takes handlers in the order of their registration.
    addSocketRoute(app, SOCKET_PATH, {
      services,
      admission,
      sockets,
      isDraining: () => farewell.isRefusing,
      onEnded: () => connections.webSocketEnded(),
    });
    addRoutes(app, services, routes);
  };
  const listener = new Listener({
    addRoutes: addAllRoutes,
    connections,
    certificate: parts.certificate ?? null,
  });

  return {
    readiness: ready,
    get figures() {
      const paths = speechRoutes.map(([path]) => path);
      return frontFigures(services, sockets, paths);
    },
    async listen() {
      const { host, port } = config;
      // A port that can be shared could be another's, and the library shares none that the system picks.
      const probed = listener.isShared ? await probe(host, port) : { port };
      const bound = 'port' in probed ? listener.listen(host, probed.port) : null;
      if (bound === null) {
        const refused = 'code' in probed ? probed : await probe(host, port);
        throw new ListenError(host, port, 'code' in refused ? refused.code : 'EADDRINUSE');
      }
      return { port: bound };
    },
    renewCertificate: (certificate) => listener.renew(certificate),
    stopAccepting() {
      listener.stopAccepting();
      farewell.begin(connections.open - this.inFlight);
    },
    get inFlight() {
      return services.registry.size + sockets.size;
    },
    whenIdle: async () => {
      if (farewell.hasBegun) await farewell.whenRefusing;
      await Promise.all([services.registry.whenIdle(), sockets.whenIdle()]);
    },
    close() {
      if (closed) return;
      listener.stopAccepting();
      farewell.hurry();
      closed = true;
      sockets.shutDown();
      // Cut by us, not left by the client: the log says so, and what a result was charged is taken back.
      for (const exchange of services.registry.members) exchange.drop('failed');
      listener.close();
    },
  };
};
