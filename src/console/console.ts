/**
 * The console's side of its connections: the page, its calls, the live view, and speech for the playground. It is a
 * listener of its own over the stages of the service; nothing of it answers on the public port.
 *
 *   built --listen--> serving --stopAccepting--> draining (live views end, speech goes on) --close--> closed
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConnectionPool } from '../front/connections.js';
import { Listener } from '../front/listener.js';
import type { Certificate } from '../front/certificate.js';
import { figuresOf, type Listening, type Server, type ServerParts } from '../front/server.js';
import { specificationErrors } from '../api/error-shape.js';
import { addHandler, addNotFound, addRoute, type Route } from '../front/routes.js';
import { Registry, type InFlight, type Services } from '../front/services.js';
import { addSocketRoute } from '../front/ws/socket-route.js';
import { consoleUrl, serviceUrl } from '../address.js';
import { WEBHOOKS_FOLDER } from '../accounts/webhooks.js';
import type { Config } from '../config.js';
import { describeFault } from '../fault.js';
import type { Figures } from '../metrics.js';
import { version } from '../version.js';
import type { Ledger } from '../store/ledger.js';
import type { Lexicons } from '../threads/lexicons.js';
import { startAdministration, type ConsoleAdministration } from './administration.js';
import { consoleErrors } from './answers.js';
import { readPage } from './assets.js';
import { CallOrder } from './call-order.js';
import { createCalls, type CallsParts } from './calls.js';
import type { LiveView } from './contract.js';
import { csvRoutes } from './csv-files.js';
import { describeRoute } from './description.js';
import { Door } from './dispatch.js';
import { Gate } from './gate.js';
import { consolePolicy, Cookies } from './headers.js';
import { Live } from './live.js';
import { playgroundPaths, playgroundRoutes, socketAuthentication } from './playground.js';
import { sayerOf } from './said.js';
import { Samples, sampleRoute } from './samples.js';
import { Sessions } from './sessions.js';
import { Throttle } from './throttle.js';
import { InstalledVoices, type VoicesParts } from './voices.js';

export const SOCKET_PATH = '/api/socket';

export interface ConsoleParts
  extends
    VoicesParts,
    Pick<CallsParts, 'browserTokens' | 'past'>,
    Pick<ServerParts, 'admission' | 'bounds' | 'log' | 'metrics' | 'speech'> {
  readonly config: Pick<Config, 'creditsPerCharacter' | 'dataDir' | 'storeUrl' | 'host' | 'tls'> & {
    readonly console: NonNullable<Config['console']>;
  };
  readonly certificate: Certificate | null;
  /** The console uses its budgets, its WebSockets and its readiness. */
  readonly server: Pick<Server, 'readiness' | 'shared'>;
  /** The compiled `workers/administration.ts`. */
  readonly administrationEntry: URL;
  readonly ledger: Pick<Ledger, 'settled'>;
  readonly lexicons: Pick<Lexicons, 'add' | 'hasRoomFor' | 'names' | 'of' | 'reload' | 'remove' | 'wordsOf'>;
  readonly live: () => Promise<LiveView>;
}

export class Console {
  readonly #parts: ConsoleParts;
  readonly #administration: ConsoleAdministration;
  readonly #services: Services;
  readonly #sessions: Sessions;
  readonly #live: Live;
  readonly #listener: Listener;
  #port = 0;
  #listening: Listening = { port: 0, dialectPorts: {} };
  readonly #alerts: NodeJS.Timeout;
  #isSending = false;
  #closed: Promise<void> | undefined;

  constructor(parts: ConsoleParts) {
    const { administrationEntry: entry, bounds, certificate, config, log, metrics, server } = parts;
    const { dataDir, storeUrl } = config;
    const { webhookAllow } = config.console;
    const administration = startAdministration({
      ...{ store: { dataDir, storeUrl }, bounds, log, entry, webhookAllow },
    });
    this.#alerts = setInterval(() => void this.#sendAlerts(), bounds.alertCheckMs);
    this.#alerts.unref();
    this.#administration = administration;
    const { clock } = server.shared.services;
    const { handshakes } = server.shared;
    this.#parts = parts;
    const { host, origin, port } = config.console;
    const connections = new ConnectionPool(bounds.consoleConnectionsMax).listener();
    this.#services = {
      ...server.shared.services,
      connections,
      isBehindProxy: origin !== null,
      bounds: { ...bounds, bodyBytesMax: bounds.consoleBodyBytesMax },
      cors: consolePolicy,
      errors: consoleErrors,
      registry: new Registry<InFlight>(),
    };
    const scheme = certificate === null ? 'http' : 'https';
    const gate = new Gate({ host, origin, scheme, url: () => this.url });
    const cookies = new Cookies(origin === null ? certificate !== null : origin.startsWith('https:'));
    const throttle = new Throttle(bounds, clock);
    const order = new CallOrder(bounds.consoleCallsWaitingMax);
    const sessions = new Sessions({ administration, cookies, order, clock, bounds, log });
    const door = new Door({ gate, throttle, order, cookies, sessions, bounds });
    const live = new Live({ door, sessions, read: parts.live, log });
    const voices = new InstalledVoices(parts);
    const about = () => ({
      version,
      serviceUrl: serviceUrl(config, this.#listening.port),
      listensOn: config.host,
      ports: this.#listening.dialectPorts,
      creditsPerCharacter: config.creditsPerCharacter,
    });
    const settled = (): Promise<void> => parts.ledger.settled();
    const packs = () => parts.generation().packs;
    const said = sayerOf({ administration, bounds, lexicons: parts.lexicons, packs });
    const calls = createCalls({
      ...parts,
      ...{ administration, said, throttle, voices, about, settled },
      turns: server.shared.services.turns,
      wordBounds: bounds,
      url: () => this.url,
      onEnded: () => void sessions.check(),
    });
    const assets = readPage(gate, async (exchange, head) => {
      if (sessions.hashIn(head) === null || !door.mayAsk(exchange, head)) return null;
      // Without an answer here, the page makes the call itself, and shows why it fails.
      const session = await sessions.find(exchange, head).catch(() => null);
      return session && { claimed: true, user: session.user, ...about() };
    });
    const samples = new Samples({ speech: parts.speech, textFor: (id) => voices.sampleTextOf(id), bounds });
    const routes: readonly Route[] = [
      ...door.callRoutes(calls),
      { path: '/api/administration.json', method: 'get', handler: describeRoute(door) },
      { path: '/api/live', method: 'get', handler: live.handler },
      { path: '/api/sample', method: 'get', handler: sampleRoute(door, samples) },
      ...csvRoutes({ door, sessions, administration, settled }),
      ...assets.routes,
    ];
    this.#sessions = sessions;
    this.#live = live;
    this.#listener = new Listener({
      ...{ host, port, certificate, connections, handshakes, bounds, clock, log, metrics },
      variables: { host: 'CONSOLE_HOST', port: 'CONSOLE_PORT' },
      addRoutes: (app) => {
        const { readiness, shared } = server;
        const playground = {
          ...{ ...parts, ...shared, administration, door, sessions, readiness },
          spoolFolder: config.dataDir,
        };
        // Speech is answered as on the public port, its errors included.
        const speech: Services = { ...this.#services, bounds, errors: specificationErrors(bounds) };
        for (const route of playgroundRoutes(playground)) addRoute(app, speech, route);
        addSocketRoute(app, SOCKET_PATH, {
          ...server.shared,
          services: speech,
          authenticate: socketAuthentication(playground),
        });
        for (const route of routes) addRoute(app, this.#services, route);
        for (const pattern of ['/api/*', '/assets/*']) addNotFound(app, this.#services, pattern);
        addHandler(app, this.#services, ['/*', '/*'], () => assets.page);
      },
    });
  }

  /** Its address for browsers, without a slash at the end. */
  get url(): string {
    return consoleUrl(this.#parts.config, this.#port) ?? '';
  }

  /** Administration threads that ended and were replaced. */
  get restarts(): number {
    return this.#administration.restarts;
  }

  /** Open streams and their buffers, for the metrics. */
  get figures(): Pick<Figures, 'streams' | 'bufferedBytes'> {
    const { streams, bufferedBytes } = figuresOf(this.#services.registry, playgroundPaths);
    const { speaking } = this.#parts.server.shared.sockets.ofRoute(SOCKET_PATH);
    return { streams: new Map([...streams, [SOCKET_PATH, speaking]]), bufferedBytes };
  }

  /**
   * @param listening where the service listens, for what the page shows
   * @returns the port, chosen by the system if the configured one is 0
   * @throws {ListenError}
   */
  async listen(listening: Listening): Promise<number> {
    this.#listening = listening;
    void this.#sessions.recall();
    this.#port = await this.#listener.listen();
    return this.#port;
  }

  /** The URL of a one-time link for the first operator; `null` if there is one. */
  async claimUrl(): Promise<string | null> {
    const link = await this.#administration.claimLink();
    return link === null ? null : `${this.url}/claim#${link.token}`;
  }

  /** As `Server.renewCertificate`. */
  renewCertificate(certificate: Certificate): boolean {
    return this.#listener.renew(certificate);
  }

  /** Takes no new connections. Drops calls that are still arriving: a stranger could hold up the stop. Open speech continues. Idempotent. */
  stopAccepting(): void {
    this.#listener.stopAccepting();
    for (const exchange of this.#services.registry.members)
      if (exchange.isArriving) exchange.drop('body-late');
    this.#live.close();
    this.#administration.stopSending();
  }

  /** Requests without a complete answer. Its WebSockets are among those of the server. */
  get inFlight(): number {
    return this.#services.registry.size;
  }

  /** Resolves when nothing is in flight. */
  whenIdle(): Promise<void> {
    return this.#services.registry.whenIdle();
  }

  /** Ends everything now, and its thread. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Without a webhook on this host, the administration thread is not started for it. */
  async #sendAlerts(): Promise<void> {
    const { config, log } = this.#parts;
    if (this.#isSending || !existsSync(join(config.dataDir, WEBHOOKS_FOLDER))) return;
    this.#isSending = true;
    try {
      await this.#administration.sendAlerts(this.#parts.past.requests.refusedCharacters());
    } catch (error) {
      log.warn(describeFault(error), 'alerts could not be sent: the next check tries again');
    } finally {
      this.#isSending = false;
    }
  }

  #close(): Promise<void> {
    clearInterval(this.#alerts);
    this.stopAccepting();
    this.#sessions.close();
    for (const exchange of this.#services.registry.members) exchange.drop('failed');
    this.#listener.close();
    return this.#administration.close();
  }
}
