/**
 * The service's side of its connections: HTTP requests and WebSockets.
 *
 *   built --listen--> serving --stopAccepting--> lingering --(time over, or close)--> refusing --close--> closed
 *
 * Listeners of other protocols (src/dialects) share its budgets, its requests in flight, its WebSockets and its drain.
 */
import type { Admission } from '../accounts/admission.js';
import { specificationErrors } from '../api/error-shape.js';
import type { Buckets } from '../buckets.js';
import type { Config } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Figures, Metrics } from '../metrics.js';
import { monotonicMs, type Clock } from '../monotonic.js';
import type { Speech } from '../speech/speech.js';
import type { Certificate } from './certificate.js';
import { Cors } from './cors.js';
import { ConnectionPool } from './connections.js';
import { KeysInUse } from './keys-in-use.js';
import { handshakesOfAddresses, Listener } from './listener.js';
import { replyError } from './reply.js';
import { addRoutes } from './routes.js';
import { createServices, type Registry, type InFlight, type Services } from './services.js';
import { specificationRoutes, speechPaths, type Readiness } from './specification.js';
import { addSocketRoute, type SocketAuthentication } from './ws/socket-route.js';
import { SOCKET_PATH, Sockets } from './ws/sockets.js';

export interface ServerParts {
  readonly config: Pick<Config, 'host' | 'port' | 'dataDir' | 'corsOrigins'>;
  /** Checked; without one the server speaks plain HTTP. */
  readonly certificate?: Certificate | null;
  /** Makes the listeners of other protocols. Absent: there are none. */
  readonly further?: (shared: Shared) => readonly FurtherListener[];
  readonly speech: Speech;
  readonly admission: Admission;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bounds: Bounds;
  readonly clock?: Clock;
}

/** What all listeners share. */
export interface Shared {
  readonly services: Services;
  readonly sockets: Sockets;
  readonly isDraining: () => boolean;
  /** Connections of the listeners of the service. */
  readonly connections: ConnectionPool;
  /** Of all listeners, the console's included. */
  readonly handshakes: Buckets;
}

/**
 * A listener of another protocol. Its requests are members of `services.registry`, its WebSockets are among `sockets`, and its
 * connections are among `connections`: so it drains and ends with the server.
 */
export interface FurtherListener {
  readonly name: string;
  /** Names of its routes in the metrics: those that speak, and those that are WebSockets. */
  readonly speechRoutes: readonly string[];
  readonly socketRoutes: readonly string[];
  readonly listener: Pick<Listener, 'listen' | 'renew' | 'stopAccepting' | 'close'>;
}

export interface Listening {
  readonly port: number;
  /** Of the further listeners, by name. */
  readonly dialectPorts: Readonly<Record<string, number>>;
}

/**
 * When refusals begin after the port is closed. A client that has just connected has its request on the way, and a proxy
 * that gets a 503 tries no other service: so refusals wait where connections have no request.
 */
class Linger {
  readonly whenRefusing: Promise<void>;
  readonly #lingerMs: number;
  readonly #onRefusing: () => void;
  #resolve: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  hasBegun = false;
  isRefusing = false;

  constructor(lingerMs: number, onRefusing: () => void) {
    this.#lingerMs = lingerMs;
    this.#onRefusing = onRefusing;
    this.whenRefusing = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** Idempotent. @param silentConnections connections without a request in flight */
  begin(silentConnections: number): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (silentConnections <= 0) this.refuse();
    else this.#timer = setTimeout(() => this.refuse(), this.#lingerMs);
  }

  /** Refusals begin now. Idempotent. */
  refuse(): void {
    this.hasBegun = true;
    if (this.isRefusing) return;
    this.isRefusing = true;
    clearTimeout(this.#timer);
    this.#onRefusing();
    this.#resolve();
  }
}

/** Adds up what the requests of a listener have in progress. */
export const figuresOf = (
  registry: Registry<InFlight>,
  speechRoutes: readonly string[],
): { readonly streams: Map<string, number>; readonly bufferedBytes: number } => {
  const streams = new Map(speechRoutes.map((route) => [route, 0]));
  let bufferedBytes = 0;
  for (const { hasContext, route, sender } of registry.members) {
    if (hasContext) streams.set(route, (streams.get(route) ?? 0) + 1);
    bufferedBytes += sender?.queuedBytes ?? 0;
  }
  return { streams, bufferedBytes };
};

/** Authenticates by the key in the header. */
const byKey =
  (admission: Pick<Admission, 'authenticate'>): SocketAuthentication =>
  (exchange, head) => {
    const caller = admission.authenticate(head.apiKey);
    if (caller.ok) return caller;
    if (caller.code === 'keyUnknown') return { key: null };
    replyError(exchange, caller.code);
    return null;
  };

export const createServer = (parts: ServerParts) => {
  const { admission, bounds, config, log, metrics, readiness, speech } = parts;
  const { clock = monotonicMs, certificate = null } = parts;
  const cors = new Cors(config.corsOrigins);
  const pool = new ConnectionPool(bounds.connectionsMax);
  const connections = pool.listener();
  const handshakes = handshakesOfAddresses(bounds, clock);
  const keys = new KeysInUse({ admission, clock, bounds });
  const services = createServices({
    ...{ log, metrics, clock, bounds, connections, cors, keys },
    errors: specificationErrors(bounds),
  });
  let isClosed = false;
  const sockets = new Sockets({ services, speech, admission });
  const linger = new Linger(bounds.drainLingerMs, () => sockets.drain());
  const isDraining = (): boolean => linger.isRefusing;
  const ready: Readiness = {
    reasons: () => (linger.hasBegun ? [...readiness.reasons(), 'draining'] : readiness.reasons()),
    warnings: () => readiness.warnings(),
  };
  const routes = specificationRoutes({
    speech,
    admission,
    isDraining,
    readiness: ready,
    bounds,
    spoolFolder: config.dataDir,
  });
  const shared: Shared = { services, sockets, isDraining, connections: pool, handshakes };
  const further = parts.further?.(shared) ?? [];
  const speechRoutes = [...speechPaths, ...further.flatMap((other) => other.speechRoutes)];
  const socketRoutes = [SOCKET_PATH, ...further.flatMap((other) => other.socketRoutes)];
  const listener = new Listener({
    ...{ host: config.host, port: config.port, certificate },
    ...{ bounds, clock, connections, handshakes, log, metrics },
    addRoutes(app) {
      // Before the catch-all: the library takes handlers in the order of their registration.
      addSocketRoute(app, SOCKET_PATH, {
        services,
        authenticate: byKey(admission),
        sockets,
        isDraining,
      });
      addRoutes(app, services, routes);
    },
  });
  const listeners = [listener, ...further.map((other) => other.listener)];
  const stopAccepting = (): void => {
    for (const each of listeners) each.stopAccepting();
    const openSockets = socketRoutes.reduce((sum, route) => sum + sockets.ofRoute(route).open, 0);
    linger.begin(pool.open - services.registry.size - openSockets);
  };

  return {
    /** The readiness of the stages below, and `draining`. */
    readiness: ready,
    /** What is open now. */
    get figures(): Pick<Figures, 'streams' | 'sockets' | 'bufferedBytes'> {
      const { streams, bufferedBytes } = figuresOf(services.registry, speechRoutes);
      for (const route of socketRoutes) streams.set(route, sockets.ofRoute(route).speaking);
      return {
        streams,
        sockets: sockets.size,
        bufferedBytes: bufferedBytes + services.resultBudget.taken + sockets.bufferedBytes,
      };
    },
    /** For a further listener. */
    shared,
    /**
     * @returns the ports, chosen by the system where the configured one is 0
     * @throws {ListenError}
     */
    async listen(): Promise<Listening> {
      const port = await listener.listen();
      const dialectPorts: Record<string, number> = {};
      for (const other of further) dialectPorts[other.name] = await other.listener.listen();
      return { port, dialectPorts };
    },
    /**
     * New connections get this certificate; open ones keep theirs. Only for a server with TLS.
     *
     * @returns false if it is the one before
     * @throws {CertificateError} and nothing changes
     */
    renewCertificate(renewed: Certificate): boolean {
      if (!listener.renew(renewed)) return false;
      for (const other of further) other.listener.renew(renewed);
      return true;
    },
    /**
     * Takes no new connections, and soon no new speech: then requests for speech are answered 503, and WebSockets close
     * (1001) as soon as they speak nothing. This begins after `drainLingerMs`, so that a client that has just connected is
     * served, or at once if every connection has a request in flight. What is in flight goes on. Idempotent.
     */
    stopAccepting,
    /** Requests without a complete answer, and WebSockets. */
    get inFlight(): number {
      return services.registry.size + sockets.size;
    },
    /** Resolves when nothing is in flight. */
    whenIdle: async (): Promise<void> => {
      if (linger.hasBegun) await linger.whenRefusing;
      await Promise.all([services.registry.whenIdle(), sockets.whenIdle()]);
    },
    /** Ends everything now. Idempotent. */
    close(): void {
      if (isClosed) return;
      stopAccepting();
      linger.refuse();
      isClosed = true;
      sockets.shutDown();
      // The service cuts them, not the client: the log says so, and a result's charge is taken back.
      for (const exchange of services.registry.members) exchange.drop('failed');
      for (const each of listeners) each.close();
    },
  };
};

export type Server = ReturnType<typeof createServer>;
