/** Certificates as an operator makes them: `openssl` on the command line. Tests that want them ask for the program. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/config.js';

export interface TestCertificate extends TlsFiles {
  /** What its clients are to trust. */
  readonly ca: string;
}

const openssl = (...args: readonly string[]): void => {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
};

const P256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];

/** Signed by itself, for localhost and 127.0.0.1. @param kind of the key, as `openssl req -newkey` wants it */
export const makeCertificate = (folder: string, name: string, kind = P256): TestCertificate => {
  const [certPath, keyPath] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
  openssl(
    ...['req', '-x509', '-newkey', ...kind, '-nodes', '-days', '2'],
    ...['-subj', `/CN=${name}`, '-addext', names, '-keyout', keyPath, '-out', certPath],
  );
  return { certPath, keyPath, ca: readFileSync(certPath, 'utf8') };
};

/** The same key, encrypted. @returns its path */
export const encryptKey = (keyPath: string): string => {
  const path = `${keyPath}.encrypted`;
  openssl('pkey', '-in', keyPath, '-aes256', '-passout', 'pass:secret', '-out', path);
  return path;
};
