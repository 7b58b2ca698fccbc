/**
 * A port: it counts and bounds its connections, and serves them plain or with the newest certificate.
 *
 *   built --listen--> accepting --stopAccepting--> closed to new ones --close--> closed
 *
 * The library cannot exchange an app's certificate, and handing a TLS connection from one app to another corrupts its
 * heap. So a renewal builds another app that listens on the same port, and then the older app stops listening: the port is
 * never closed, and connections stay where they are.
 */
import { createServer as createNetServer, type AddressInfo, type Server } from 'node:net';
import { Buckets } from '../buckets.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import type { Clock } from '../monotonic.js';
import { networkOf } from '../network.js';
import { appWith, CertificateError, type Certificate } from './certificate.js';
import type { ConnectionRefusal, Connections } from './connections.js';
import { CountedWarning } from './counted-warning.js';
import {
  closeListenSocket,
  createApp,
  listenOn,
  localPort,
  type HttpResponse,
  type ListenSocket,
  type TemplatedApp,
} from './uws.js';

/** The variables that set an address. */
export interface AddressVariables {
  readonly host: string;
  readonly port: string;
}

const serviceAddress: AddressVariables = { host: 'HOST', port: 'PORT' };

/** The address is not available. The message is one line for the operator. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** The operating system's code: `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL` ... */
  readonly code: string;

  constructor(host: string, port: number, code: string, variables = serviceAddress) {
    const noAddress = `this machine has no such address; set ${variables.host} to one of its own, such as 127.0.0.1`;
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE:
        'the port is in use, perhaps by another syrinx; end the program that uses it, ' +
        `or set ${variables.port} to another port (0 picks a free one)`,
      EACCES: `no permission for this port; set ${variables.port} to one from 1024 on`,
      EADDRNOTAVAIL: noAddress,
      ENOTFOUND: noAddress,
    };
    super(
      `cannot listen on ${host}:${port}: ${reasons[code] ?? `${code} (see ${variables.host} and ${variables.port})`}`,
    );
    this.code = code;
  }
}

/**
 * Listens with a server of Node's.
 *
 * @param onFault called for each later fault, such as too many open files: without a listener it would end the process
 * @returns the port @throws {ListenError}
 */
export const listenWith = (
  server: Server,
  { host, port, variables }: Pick<ListenerParts, 'host' | 'port' | 'variables'>,
  onFault: (error: NodeJS.ErrnoException) => void,
): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new ListenError(host, port, code ?? message, variables)),
    );
    server.listen({ host, port, exclusive: true }, () => {
      server.removeAllListeners('error');
      server.on('error', onFault);
      resolve((server.address() as AddressInfo).port);
    });
  });

/** Asks the system whether an address is available, and why not: the library does not say. @throws {ListenError} */
const probe = async (parts: Pick<ListenerParts, 'host' | 'port' | 'variables'>): Promise<number> => {
  const server = createNetServer();
  const port = await listenWith(server, parts, () => undefined);
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** Whose handshakes are counted: the last ones. */
const ADDRESSES_MAX = 4_096;

/** Milliseconds of handshakes by address, for all listeners of a process: they share its front thread. */
export const handshakesOfAddresses = (
  { handshakeMsAtOnceMax: atOnceMax, handshakeMsPerSecond }: ListenerBounds,
  clock: Clock,
): Buckets =>
  new Buckets({ atOnceMax, everyMs: 1_000 / handshakeMsPerSecond, countedMax: ADDRESSES_MAX, clock });

interface Serving {
  readonly certificate: Certificate | null;
  readonly app: TemplatedApp;
}

type ListenerBounds = Pick<Bounds, 'certificatesInUseMax' | 'handshakeMsAtOnceMax' | 'handshakeMsPerSecond'>;

export interface ListenerParts {
  readonly host: string;
  readonly port: number;
  readonly variables?: AddressVariables;
  /** Called for each app. */
  readonly addRoutes: (app: TemplatedApp) => void;
  /** `null`: no TLS. */
  readonly certificate: Certificate | null;
  /** Counts its open connections. */
  readonly connections: Connections;
  /** Of `handshakesOfAddresses`. */
  readonly handshakes: Buckets;
  readonly bounds: ListenerBounds;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'refused'>;
}

export class Listener {
  readonly #parts: ListenerParts;
  readonly #warning: CountedWarning;
  /** The newest last. */
  readonly #serving: Serving[] = [];
  #socket: ListenSocket | null = null;

  /** @throws {CertificateError} the library refuses the certificate */
  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#warning = new CountedWarning(parts);
    this.#serving.push(this.#serve(parts.certificate));
  }

  /** @returns the port, chosen by the system if the configured one is 0 @throws {ListenError} */
  async listen(): Promise<number> {
    const { host, port, variables } = this.#parts;
    // A shared port could be another process's, and the library shares no port that the system picks.
    const available = this.#isShared ? await probe(this.#parts) : port;
    this.#socket = listenOn(this.#newest.app, host, available, this.#isShared);
    if (this.#socket !== null) return localPort(this.#socket);
    await probe(this.#parts);
    throw new ListenError(host, port, 'EADDRINUSE', variables);
  }

  /**
   * New connections get this certificate; open ones keep theirs.
   *
   * @returns false if it is the one before
   * @throws {CertificateError} and nothing changes
   */
  renew(certificate: Certificate): boolean {
    const before = this.#socket;
    if (before === null || this.#newest.certificate?.pem === certificate.pem) return false;
    const serving = this.#serve(certificate);
    const socket = listenOn(serving.app, this.#parts.host, localPort(before), this.#isShared);
    if (socket === null) throw new CertificateError('TLS_CERT: the port cannot be listened on a second time');
    closeListenSocket(before);
    this.#socket = socket;
    this.#serving.push(serving);
    if (this.#serving.length > this.#parts.bounds.certificatesInUseMax) this.#serving.shift()?.app.close();
    return true;
  }

  stopAccepting(): void {
    if (this.#socket !== null) closeListenSocket(this.#socket);
    this.#socket = null;
  }

  /** Ends all connections. */
  close(): void {
    this.stopAccepting();
    for (const { app } of this.#serving) app.close();
  }

  /** With TLS, two apps listen on the port during a renewal. */
  get #isShared(): boolean {
    return this.#parts.certificate !== null;
  }

  get #newest(): Serving {
    return this.#serving.at(-1)!;
  }

  #serve(certificate: Certificate | null): Serving {
    const { addRoutes, bounds, connections } = this.#parts;
    const app = certificate === null ? createApp() : appWith(certificate);
    // Even the slowest key must serve a stranger.
    const handshakeMs = Math.min(certificate?.handshakeMs ?? 0, bounds.handshakeMsAtOnceMax);
    app.filter((res, change) => {
      if (change > 0) this.#opened(res, handshakeMs);
      else connections.open--;
    });
    addRoutes(app);
    return { certificate, app };
  }

  /**
   * Counts a connection, or closes it beyond the bound before a byte of it is read. Otherwise the service would meet the
   * system's bound on open files: then the library's accept loop spins, and the store cannot open a file.
   */
  #opened(res: HttpResponse, handshakeMs: number): void {
    const { connections, metrics } = this.#parts;
    const address = networkOf(Buffer.from(res.getRemoteAddressAsText()).toString());
    const refusal = connections.refusalOf(address) ?? this.#refusalOfHandshake(address, handshakeMs);
    connections.open++;
    if (refusal === null) {
      connections.strangers.add(address);
      // It has ended without a request: an exchange puts a handler of its own in this place.
      res.onAborted(() => connections.strangers.remove(address));
      return;
    }
    // The filter is called again for this end.
    res.close();
    metrics.refused(refusal);
    this.#warning.add(
      { connectionsMax: connections.max, refusal, address },
      refusal === 'connectionPoolExhausted'
        ? 'too many connections: new ones are closed'
        : 'too many connections of one address without a key: new ones are closed',
    );
  }

  /** Its connections may have ended already, so their number does not bound the handshakes. */
  #refusalOfHandshake(address: string, handshakeMs: number): ConnectionRefusal | null {
    const { connections, handshakes } = this.#parts;
    if (handshakeMs === 0 || connections.known.get(address)) return null;
    if (handshakes.waitMs(address, handshakeMs) > 0) return 'connectionsOfAddressExhausted';
    handshakes.take(address, handshakeMs);
    return null;
  }
}
