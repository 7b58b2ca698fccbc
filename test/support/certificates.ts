/** Certificates made by the `openssl` command, which a test must ask for with `missingTool`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/config.js';

export interface TestCertificate extends TlsFiles {
  /** For the clients' `ca`. */
  readonly ca: string;
}

const openssl = (...args: readonly string[]): void => {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
};

const P256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];

/** Makes a self-signed certificate for localhost and 127.0.0.1. @param kind the key, as for `openssl req -newkey` */
export const makeCertificate = (folder: string, name: string, kind = P256): TestCertificate => {
  const [certPath, keyPath] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
  openssl(
    ...['req', '-x509', '-newkey', ...kind, '-nodes', '-days', '2'],
    ...['-subj', `/CN=${name}`, '-addext', names, '-keyout', keyPath, '-out', certPath],
  );
  return { certPath, keyPath, ca: readFileSync(certPath, 'utf8') };
};

/** Encrypts a key. @returns the path of the encrypted key */
export const encryptKey = (keyPath: string): string => {
  const path = `${keyPath}.encrypted`;
  openssl('pkey', '-in', keyPath, '-aes256', '-passout', 'pass:secret', '-out', path);
  return path;
};
