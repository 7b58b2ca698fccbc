/** What a terminal gets in place of JSON: readable log lines, the first key, and a welcome. Loaded only for a terminal. */
import { isColorSupported, prettyFactory } from 'pino-pretty';
import wrap from 'wrap-ansi';
import { consoleUrl, dialectUrls, serviceUrl, urlOf } from './address.js';
import type { Config } from './config.js';

/** For threads, which do not know the size of the terminal, and for terminals that do not tell it. */
const COLUMNS_DEFAULT = 80;

/** Continues a long text on further lines, below its beginning. */
const indented = (text: string, indent: string): string => {
  const columns = process.stdout.columns || COLUMNS_DEFAULT;
  return wrap(text, Math.max(1, columns - indent.length)).replaceAll('\n', `\n${indent}`);
};

/** Text without characters that control a terminal or hide in it. */
const harmless = (text: string): string =>
  text.replaceAll(/\p{C}/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);

const isWord = (text: string): boolean => /^[^\s"]+$/.test(text);

/** `name=value`, for an object one for each of its fields; nothing for `null` and for an empty list. */
const fieldsOf = (name: string, value: unknown): string[] => {
  if (value === null) return [];
  if (Array.isArray(value)) return value.length === 0 ? [] : fieldsOf(name, value.join(','));
  if (typeof value === 'object')
    return Object.entries(value).flatMap(([key, inner]) => fieldsOf(`${name}.${key}`, inner));
  const text = harmless(typeof value === 'string' ? value : JSON.stringify(value));
  return [`${name}=${isWord(text) ? text : JSON.stringify(text)}`];
};

const pretty = prettyFactory({
  colorize: isColorSupported,
  translateTime: 'SYS:HH:MM:ss',
  hideObject: true,
  messageFormat: ({ level: _level, time: _time, msg, stack, ...fields }, _key, _label, { colors }) => {
    const text = Object.entries(fields)
      // Ids are long, and seldom what a reader looks for: last.
      .sort(([a], [b]) => Number(a.endsWith('Id')) - Number(b.endsWith('Id')))
      .flatMap(([name, value]) => fieldsOf(name, value));
    const frames = typeof stack === 'string' ? stack.split('\n').map((frame) => `\n${harmless(frame)}`) : [];
    return [harmless(String(msg)), ' ', colors.gray(text.join(' ')), ...frames].join('');
  },
});

const LINE_INDENT = '    ';

/** @param line of the log, as JSON */
export const readable = (line: string): string => `${indented(pretty(line).trimEnd(), LINE_INDENT)}\n`;

export const firstKeyText = (key: string): string =>
  `\nYour first API key, shown only this once. Keep it:\n\n  ${key}\n`;

/** The link is not in a row of the welcome: a terminal that wraps it would break it. */
export const claimText = (url: string): string =>
  `Open the console with this link, once and within 30 minutes:\n\n  ${url}\n`;

/** Voices in the welcome. */
const VOICES_SHOWN_MAX = 24;
const DEFAULT_URL = 'http://127.0.0.1:8080';

export interface WelcomeFacts {
  readonly config: Pick<Config, 'console' | 'host' | 'opsHost' | 'tls' | 'wyoming'>;
  readonly port: number;
  readonly dialectPorts: Readonly<Record<string, number>>;
  readonly opsPort: number;
  /** `null` if the console is off. */
  readonly consolePort: number | null;
  /** `null` once the console has an operator. */
  readonly claimUrl: string | null;
  readonly voices: readonly string[];
  /** `null` unless this start made it. */
  readonly firstKey: string | null;
}

/** Where the service listens, and what to try next. The commands are never broken into lines: they can be copied. */
export const welcome = (facts: WelcomeFacts): string => {
  const { claimUrl, config, consolePort, dialectPorts, firstKey, opsPort, port, voices } = facts;
  const { host, opsHost } = config;
  const url = serviceUrl(config, port);
  const everywhere = host === '0.0.0.0' || host === '::' ? ', on all addresses of this machine' : '';
  const consoleAt = consolePort === null ? null : consoleUrl(config, consolePort);
  const more = voices.length - VOICES_SHOWN_MAX;
  const lines = [
    ['Speech', `${url}${everywhere}`],
    ...(consoleAt === null ? [] : [['Console', consoleAt] as const]),
    ...dialectUrls(config, dialectPorts).map(({ title, url: at }) => [title, at] as const),
    ['Metrics', `${urlOf('http', opsHost, opsPort)}/metrics`],
    ['Voices', [...voices.slice(0, VOICES_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')],
  ] as const;
  const labelWidth = 2 + Math.max(...lines.map(([name]) => name.length));
  const rows = lines.map(([name, value]) => {
    const label = `  ${name.padEnd(labelWidth)}`;
    return `${label}${indented(value, ' '.repeat(label.length))}`;
  });
  const withKey = firstKey === null ? ' with your key (npm run keys -- create makes one),\n' : ', ';
  return `
syrinx is ready.

${rows.join('\n')}

${claimUrl === null ? '' : `${claimText(claimUrl)}\n`}To hear it${withKey}in another terminal in this folder:

  export SYRINX_KEY=${firstKey ?? 'svc_sk_...'}
  npm run say -- ${url === DEFAULT_URL ? '' : `--url ${url} `}"Good morning. The kettle is on."

Press Ctrl-C to end the service. README.md has more.

`;
};
