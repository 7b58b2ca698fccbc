/**
 * The port, and what its connections are served with: plain, or the newest certificate.
 *
 *   built --listen--> accepting --stopAccepting--> closed to new ones --close--> closed
 *
 * The library cannot exchange an app's certificate. So with TLS one app accepts, and gives each connection as it comes,
 * before a byte is read, to an app that has the certificate of the day; those of earlier ones keep what they have.
 */
import { limits } from '../limits.js';
import { appWith, type Certificate } from './certificate.js';
import {
  addChild,
  closeListenSocket,
  createApp,
  listenExclusively,
  localPort,
  removeChild,
  type ListenSocket,
  type TemplatedApp,
} from './uws.js';

interface CertifiedApp {
  readonly certificate: Certificate;
  readonly app: TemplatedApp;
}

export class Listener {
  readonly #addRoutes: (app: TemplatedApp) => void;
  readonly #accepting = createApp();
  /** The newest last. */
  readonly #certified: CertifiedApp[] = [];
  #socket: ListenSocket | null = null;

  /**
   * @param addRoutes called for each app
   * @param certificate `null`: no TLS
   * @throws {CertificateError} it is of a kind that the library does not take
   */
  constructor(addRoutes: (app: TemplatedApp) => void, certificate: Certificate | null) {
    this.#addRoutes = addRoutes;
    if (certificate === null) addRoutes(this.#accepting);
    else this.#use(certificate);
  }

  /** @returns the port, or `null` when it cannot be had */
  listen(host: string, port: number): number | null {
    this.#socket = listenExclusively(this.#accepting, host, port);
    return this.#socket === null ? null : localPort(this.#socket);
  }

  /**
   * New connections get this certificate; those there are keep theirs.
   *
   * @returns whether it is another one than before
   * @throws {CertificateError} and everything stays as it is
   */
  renew(certificate: Certificate): boolean {
    if (this.#certified.at(-1)?.certificate.pem === certificate.pem) return false;
    this.#use(certificate);
    return true;
  }

  stopAccepting(): void {
    if (this.#socket !== null) closeListenSocket(this.#socket);
    this.#socket = null;
  }

  /** Ends all connections. */
  close(): void {
    this.stopAccepting();
    this.#accepting.close();
    for (const { app } of this.#certified) app.close();
  }

  #use(certificate: Certificate): void {
    const app = appWith(certificate);
    this.#addRoutes(app);
    const before = this.#certified.at(-1);
    if (before !== undefined) removeChild(this.#accepting, before.app);
    addChild(this.#accepting, app);
    this.#certified.push({ certificate, app });
    if (this.#certified.length > limits.certificatesInUseMax) this.#certified.shift()?.app.close();
  }
}
