/**
 * Tokens with which a page in a browser may speak: for one key, from one origin, for a minute. A token is signed and not
 * stored, so there is no number of them to bound. It does not name its origin: the signature fits no other.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../config.js';
import type { Bounds } from '../limits.js';
import { writeSecret } from './secret-file.js';
import { newToken } from './tokens.js';

export interface BrowserToken {
  readonly token: string;
  readonly expiresAtMs: number;
}

/** As `newToken` makes it. */
const secretShape = /^[\w-]{43}$/;

/**
 * The secret that signs, in a file: a service that takes over from another, on the same data folder, knows its tokens.
 * Several hosts need the same file.
 */
const readSecret = (dataDir: string): string => {
  const path = join(dataDir, 'browser-secret');
  if (!existsSync(path)) writeSecret(path, newToken());
  const secret = statSync(path).isFile() ? readFileSync(path, 'utf8').trim() : '';
  if (!secretShape.test(secret))
    throw new ConfigError(`${path} is no secret: remove it, and the next start makes another`);
  return secret;
};

export class BrowserTokens {
  readonly #secret: string;
  readonly #bounds: Pick<Bounds, 'browserTokenMsMax'>;
  readonly #nowMs: () => number;

  constructor(dataDir: string, bounds: Pick<Bounds, 'browserTokenMsMax'>, nowMs: () => number = Date.now) {
    this.#secret = readSecret(dataDir);
    this.#bounds = bounds;
    this.#nowMs = nowMs;
  }

  issue(keyId: number, origin: string): BrowserToken {
    const expiresAtMs = this.#nowMs() + this.#bounds.browserTokenMsMax;
    const claims = `${keyId}.${expiresAtMs}`;
    return { token: `${claims}.${this.#sign(claims, origin).toString('base64url')}`, expiresAtMs };
  }

  /** @param origin as the browser reports it @returns the key's id; `null`: the token is not valid here and now */
  keyIdOf(token: string, origin: string): number | null {
    const [, claims = '', keyId = '', expiresAtMs = '', signature = ''] =
      /^((\d{1,15})\.(\d{1,15}))\.([\w-]{43})$/.exec(token) ?? [];
    const isOurs = timingSafeEqual(this.#sign(claims, origin), signatureBytes(signature));
    return isOurs && this.#nowMs() < Number(expiresAtMs) ? Number(keyId) : null;
  }

  #sign(claims: string, origin: string): Buffer {
    return createHmac('sha256', this.#secret).update(`${claims}.${origin}`).digest();
  }
}

const SIGNATURE_BYTES = 32;

/** So many bytes in any case: the comparison needs two of one length. */
const signatureBytes = (text: string): Buffer => {
  const bytes = Buffer.alloc(SIGNATURE_BYTES);
  bytes.write(text, 'base64url');
  return bytes;
};
