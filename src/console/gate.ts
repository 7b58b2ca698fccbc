/**
 * Which requests the console takes at all. A page of another site must not use the cookie of a signed-in user, and
 * must not read an answer. This includes a site that points its own name to this machine (DNS rebinding).
 */
import { hostNameOf, isOwnName } from '../address.js';
import type { RequestHead } from '../front/request-head.js';
import type { Refusal } from './contract.js';

export interface GateParts {
  /** `CONSOLE_HOST` */
  readonly host: string;
  /** `CONSOLE_ORIGIN` */
  readonly origin: string | null;
  readonly scheme: 'http' | 'https';
  /** For messages. */
  readonly url: () => string;
}

export class Gate {
  readonly #parts: GateParts;
  readonly #behindProxy: string | null;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#behindProxy = parts.origin === null ? null : new URL(parts.origin).hostname.replace(/^\[|\]$/g, '');
  }

  /** Whether a page may be shown to this request. @returns `null`, or why not */
  refusePage({ host }: Pick<RequestHead, 'host'>): Refusal | null {
    if (this.#isOurs(hostNameOf(host))) return null;
    return {
      code: 'forbidden',
      message: `The console answers at ${this.#parts.url()}, not under this name. To use another name, set CONSOLE_ORIGIN.`,
    };
  }

  /** Whether a call may be answered. @param origin as the browser reports it; empty if it does not */
  refuseCall(head: Pick<RequestHead, 'host' | 'fetchSite'>, origin: string): Refusal | null {
    const refusal = this.refusePage(head);
    if (refusal !== null) return refusal;
    const own = this.#parts.origin ?? `${this.#parts.scheme}://${head.host.toLowerCase()}`;
    const isSame = head.fetchSite === '' || head.fetchSite === 'same-origin';
    if (isSame && (origin === '' || origin === own)) return null;
    return {
      code: 'forbidden',
      message: 'The console answers only its own page. Open the console in this browser and try again.',
    };
  }

  #isOurs(name: string): boolean {
    if (this.#behindProxy !== null) return name === this.#behindProxy;
    return isOwnName(name, [this.#parts.host]);
  }
}
