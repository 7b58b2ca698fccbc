/** Addresses of the listeners, as a client on this machine can use them. */
import { isIP } from 'node:net';
import type { Config } from './config.js';

/** The name in a `host` header, in lower case: without the port and the brackets of IPv6. */
export const hostNameOf = (header: string): string => {
  const host = header.toLowerCase();
  return (/^\[([0-9a-f:.]+)\](?::\d{1,5})?$/.exec(host) ?? /^([^:]+)(?::\d{1,5})?$/.exec(host))?.[1] ?? '';
};

/**
 * Whether a listener that asks for no key may answer under a name. Another site can point its own name to this machine (DNS
 * rebinding); it cannot do so with an address.
 *
 * @param name in lower case
 * @param configured further names of this machine
 */
export const isOwnName = (name: string, configured: readonly string[]): boolean =>
  isIP(name) !== 0 || name === 'localhost' || configured.some((own) => own.toLowerCase() === name);

export const urlOf = (scheme: string, host: string, port: number): string => {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${scheme}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
};

const schemeOf = ({ tls }: Pick<Config, 'tls'>): string => (tls === null ? 'http' : 'https');

export const serviceUrl = (config: Pick<Config, 'host' | 'tls'>, port: number): string =>
  urlOf(schemeOf(config), config.host, port);

/**
 * Where browsers find the console.
 *
 * @param port that was bound, if the configured one is 0
 * @returns `null` if the console is off
 */
export const consoleUrl = (config: Pick<Config, 'console' | 'tls'>, port?: number): string | null => {
  if (config.console === null) return null;
  const { host, origin, port: configured } = config.console;
  return origin ?? urlOf(schemeOf(config), host, port ?? configured);
};

/** @param ports by the names of the dialects' listeners @returns the base address that clients of each dialect need */
export const dialectUrls = (
  config: Pick<Config, 'host' | 'tls' | 'wyoming'>,
  ports: Readonly<Record<string, number>>,
): readonly { readonly title: string; readonly url: string }[] => {
  const scheme = schemeOf(config);
  const urls: Readonly<Record<string, (port: number) => readonly [title: string, url: string]>> = {
    // Its own packages add `/v1`.
    elevenlabs: (port) => ['ElevenLabs', urlOf(scheme, config.host, port)],
    openai: (port) => ['OpenAI', `${urlOf(scheme, config.host, port)}/v1`],
    browser: (port) => ['Browsers', urlOf(scheme, config.host, port)],
    wyoming: (port) => ['Wyoming', urlOf('tcp', config.wyoming?.host ?? config.host, port)],
  };
  return Object.entries(ports).flatMap(([name, port]) => {
    const [title, url] = urls[name]?.(port) ?? [];
    return title === undefined || url === undefined ? [] : [{ title, url }];
  });
};
