/** The headers of every answer of the console, and its cookies. */
import type { Header, OriginPolicy } from '../front/cors.js';
import type { RequestHead } from '../front/request-head.js';

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  // Audio that the page has put together, and samples of voices.
  "media-src 'self' blob:",
  "worker-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const securityHeaders: readonly Header[] = [
  ['content-security-policy', contentSecurityPolicy],
  ['x-frame-options', 'DENY'],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  // A route may give another.
  ['cache-control', 'no-store'],
];

/** No page of another origin may call the console, whatever `CORS_ORIGINS` says. */
export const consolePolicy: OriginPolicy = {
  requestHeaders: '',
  allows: () => false,
  headersFor: () => securityHeaders,
};

/** How long a browser keeps the cookie: the store ends sessions earlier, and never later. */
const SESSION_SECONDS = 30 * 86_400;
/** The most that browsers allow. */
const DEVICE_SECONDS = 400 * 86_400;

const valueOf = (cookies: string, name: string): string | null => {
  for (const pair of cookies.split(';')) {
    const at = pair.indexOf('=');
    if (at >= 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
};

export class Cookies {
  readonly #prefix: string;
  readonly #attributes: string;

  /** @param isSecure browsers reach the console by TLS, so the cookies can have the prefix `__Host-` */
  constructor(isSecure: boolean) {
    this.#prefix = isSecure ? '__Host-syrinx' : 'syrinx';
    this.#attributes = `; HttpOnly; SameSite=Strict; Path=/${isSecure ? '; Secure' : ''}`;
  }

  /** The token of the session; `null` if there is none. */
  session({ cookie }: Pick<RequestHead, 'cookie'>): string | null {
    return valueOf(cookie, `${this.#prefix}-session`);
  }

  /** The device of the last sign-in in this browser; `null` if there was none. */
  device({ cookie }: Pick<RequestHead, 'cookie'>): string | null {
    return valueOf(cookie, `${this.#prefix}-device`);
  }

  begin({ token, device }: { readonly token: string; readonly device: string }): readonly Header[] {
    return [this.#set('session', token, SESSION_SECONDS), this.#set('device', device, DEVICE_SECONDS)];
  }

  /** The device stays known. */
  end(): readonly Header[] {
    return [this.#set('session', '', 0)];
  }

  /** @param value base64url: nothing of a client's, because the library does not filter line breaks */
  #set(name: string, value: string, seconds: number): Header {
    return ['set-cookie', `${this.#prefix}-${name}=${value}; Max-Age=${seconds}${this.#attributes}`];
  }
}
