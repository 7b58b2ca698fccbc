/** Checks a listener's certificate and key before the library gets them: the library refuses files without a reason. */
import { createPrivateKey, sign, X509Certificate, type KeyObject } from 'node:crypto';
import type { TlsFiles } from '../config.js';
import type { Log } from '../log.js';
import { monotonicMs } from '../monotonic.js';
import { readRegular } from '../regular-file.js';
import { createApp, type TemplatedApp } from './uws.js';

/** The certificate or the key cannot be used. The message is one line for the operator. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

const READ_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'no permission to read it',
  EISDIR: 'it is a folder',
};

const readPem = (name: string, path: string): string => {
  try {
    return readRegular(path).toString();
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const fault = READ_FAULTS[code];
    throw new CertificateError(`${name}: ${fault === undefined ? message : `cannot read ${path}: ${fault}`}`);
  }
};

const parseCertificate = (path: string, pem: string): X509Certificate => {
  const what = `TLS_CERT: ${path} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)`;
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new CertificateError(what);
  try {
    return new X509Certificate(pem);
  } catch {
    throw new CertificateError(`${what} that can be read`);
  }
};

const parseKey = (path: string, pem: string): KeyObject => {
  if (/^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    throw new CertificateError(
      `TLS_KEY: ${path} is encrypted, and the service cannot ask for a passphrase; decrypt it into a file that only the ` +
        `service may read: (umask 077; openssl pkey -in ${path} -out key.pem)`,
    );
  try {
    return createPrivateKey(pem);
  } catch {
    throw new CertificateError(`TLS_KEY: ${path} holds no private key in PEM (-----BEGIN PRIVATE KEY-----)`);
  }
};

const notServed = (certPath: string): CertificateError =>
  new CertificateError(
    `TLS_CERT: ${certPath} and its key are of a kind that is not served; ` +
      'take RSA of at least 2048 bits, P-256, P-384 or Ed25519',
  );

/** The first prepares the key, and one may be interrupted. */
const SIGNATURES = 3;
/** The library's RSA takes so many times as long as the runtime's, where that uses AVX-512. */
const SIGNATURE_FACTOR = 2.5;
/** The rest of a handshake, with the slowest curve that a client can choose. */
const KEY_EXCHANGE_MS = 1.2;

const handshakeMsOf = (key: KeyObject): number => {
  const times = Array.from({ length: SIGNATURES }, () => {
    const startMs = monotonicMs();
    sign(null, Buffer.alloc(32), key);
    return monotonicMs() - startMs;
  });
  return SIGNATURE_FACTOR * Math.min(...times) + KEY_EXCHANGE_MS;
};

/**
 * Reads both files and checks that they belong together.
 *
 * @throws {CertificateError} names the fault and the file
 */
export const readCertificate = (files: TlsFiles) => {
  const { certPath, keyPath } = files;
  const certPem = readPem('TLS_CERT', certPath);
  const keyPem = readPem('TLS_KEY', keyPath);
  const certificate = parseCertificate(certPath, certPem);
  const key = parseKey(keyPath, keyPem);
  if (!certificate.checkPrivateKey(key))
    throw new CertificateError(
      `TLS_KEY: the key in ${keyPath} does not belong to the (first) certificate in ${certPath}`,
    );
  let handshakeMs: number;
  try {
    handshakeMs = handshakeMsOf(key);
  } catch {
    throw notServed(certPath);
  }
  return {
    files,
    /** What a handshake takes of the front thread at most: 1.3 ms with P-256, 5.5 with RSA of 4096 bits. */
    handshakeMs,
    /** Certificate and key, to see whether they changed. */
    pem: certPem + keyPem,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
};

export type Certificate = ReturnType<typeof readCertificate>;

/** @returns a warning about a certificate that works, or `null` */
export const doubtOf = ({ validFrom, validTo }: Certificate, now: Date): string | null => {
  if (validTo < now) return 'the TLS certificate has expired: clients will refuse it';
  if (validFrom > now) return 'the TLS certificate is not valid yet: clients will refuse it';
  return null;
};

/**
 * An app that encrypts its connections with the certificate.
 *
 * @throws {CertificateError} the library refuses it
 */
export const appWith = ({ files }: Certificate): TemplatedApp => {
  try {
    return createApp(files);
  } catch {
    throw notServed(files.certPath);
  }
};

export const warnOfCertificate = (certificate: Certificate, log: Log): void => {
  const doubt = doubtOf(certificate, new Date());
  const { validFrom, validTo } = certificate;
  if (doubt !== null) log.warn({ validFrom, validTo }, doubt);
};
