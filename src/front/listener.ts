/**
 * The port, and what its connections are served with: plain, or the newest certificate.
 *
 *   built --listen--> accepting --stopAccepting--> closed to new ones --close--> closed
 *
 * The library cannot exchange an app's certificate, and to hand a connection from one app to another corrupts its heap
 * when that one speaks TLS. So a renewal makes another app that listens on the same port, and then the one before
 * stops to: the port is never without one, and connections stay where they are.
 */
import { limits } from '../limits.js';
import { appWith, CertificateError, type Certificate } from './certificate.js';
import type { Connections } from './connections.js';
import {
  closeListenSocket,
  createApp,
  listenOn,
  localPort,
  type ListenSocket,
  type TemplatedApp,
} from './uws.js';

interface Serving {
  readonly certificate: Certificate | null;
  readonly app: TemplatedApp;
}

export interface ListenerParts {
  /** Called for each app. */
  readonly addRoutes: (app: TemplatedApp) => void;
  readonly connections: Pick<Connections, 'watch'>;
  /** `null`: no TLS. */
  readonly certificate: Certificate | null;
}

export class Listener {
  readonly #parts: ListenerParts;
  /** The newest last. */
  readonly #serving: Serving[] = [];
  #host = '';
  #socket: ListenSocket | null = null;

  /** @throws {CertificateError} it is of a kind that the library does not take */
  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#serving.push(this.#serve(parts.certificate));
  }

  /** Whether another process could listen on the same port: it is for the caller to see that none does. */
  get isShared(): boolean {
    return this.#parts.certificate !== null;
  }

  /** @returns the port, or `null` when it cannot be had */
  listen(host: string, port: number): number | null {
    this.#host = host;
    this.#socket = listenOn(this.#newest.app, host, port, this.isShared);
    return this.#socket === null ? null : localPort(this.#socket);
  }

  /**
   * New connections get this certificate; those there are keep theirs.
   *
   * @returns whether it is another one than before
   * @throws {CertificateError} and everything stays as it is
   */
  renew(certificate: Certificate): boolean {
    const before = this.#socket;
    if (before === null || this.#newest.certificate?.pem === certificate.pem) return false;
    const serving = this.#serve(certificate);
    const socket = listenOn(serving.app, this.#host, localPort(before), this.isShared);
    if (socket === null) throw new CertificateError('TLS_CERT: the port cannot be listened on a second time');
    closeListenSocket(before);
    this.#socket = socket;
    this.#serving.push(serving);
    if (this.#serving.length > limits.certificatesInUseMax) this.#serving.shift()?.app.close();
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

  get #newest(): Serving {
    return this.#serving.at(-1)!;
  }

  #serve(certificate: Certificate | null): Serving {
    const app = certificate === null ? createApp() : appWith(certificate);
    this.#parts.connections.watch(app);
    this.#parts.addRoutes(app);
    return { certificate, app };
  }
}
