/**
 * Reads the environment once into a frozen configuration. An unusable value ends the start with one line that names the
 * variable and the values that it takes.
 */
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { limits } from './limits.js';

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const executionProviders = ['auto', 'cpu', 'cuda', 'webgpu'] as const;
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const overloadPolicies = ['refuse', 'late'] as const;

export type OverloadPolicy = (typeof overloadPolicies)[number];
export type ExecutionProvider = (typeof executionProviders)[number];
/** What runs the models, once it is chosen. */
export type Provider = Exclude<ExecutionProvider, 'auto'>;
export type LogLevel = (typeof logLevels)[number];

/** Paths of PEM files. */
export interface TlsFiles {
  /** The certificate, followed by its intermediate certificates. */
  readonly certPath: string;
  /** The private key, not encrypted. */
  readonly keyPath: string;
}

/** Which graphs run on the GPU by WebGPU: all, or these (`PACK/GRAPH`). */
export type GpuGraphs = 'all' | readonly string[];

/** A listener that speaks the HTTP API of another service, at the address of `HOST`. */
export interface HttpDialectConfig {
  /** 0 picks a free port. */
  readonly port: number;
  /** The ids of our voices, by the names that its clients use. */
  readonly voices: ReadonlyMap<string, string>;
}

const LAST_PORT = 65_535;

type Environment = Readonly<Record<string, string | undefined>>;

const nonEmpty = (env: Environment, name: string, fallback: string) => env[name]?.trim() || fallback;

/** @param other what else the variable takes, for the message */
const integer = (
  env: Environment,
  name: string,
  fallback: number,
  min: number,
  max: number,
  other = '',
): number => {
  const raw = nonEmpty(env, name, '');
  if (raw === '') return fallback;
  const value = /^\d+$/.test(raw) ? Number(raw) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new ConfigError(`${name} must be a whole number from ${min} to ${max}${other}, not "${raw}"`);
  return value;
};

const optionalInteger = (env: Environment, name: string, min: number, max: number): number | null =>
  nonEmpty(env, name, '') === '' ? null : integer(env, name, 0, min, max);

const oneOf = <T extends string>(env: Environment, name: string, values: readonly T[], fallback: T): T => {
  const raw = nonEmpty(env, name, fallback);
  const value = values.find((candidate) => candidate === raw.toLowerCase());
  if (value === undefined) throw new ConfigError(`${name} must be one of ${values.join(', ')}, not "${raw}"`);
  return value;
};

/** What commas separate. */
const listed = (env: Environment, name: string): readonly string[] => {
  const raw = nonEmpty(env, name, '');
  return raw === '' ? [] : raw.split(',').map((part) => part.trim());
};

const originShape = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/;

/** An origin in the form that browsers send; `null`: it is none. */
export const canonicalOrigin = (text: string): string | null => {
  const given = text.trim().toLowerCase();
  if (!originShape.test(given) || !URL.canParse(given)) return null;
  // `origin` omits a default port, as browsers do; for schemes that it does not know it is "null".
  const { origin } = new URL(given);
  return origin === 'null' ? given : origin;
};

/** Origins in the form that browsers send, or `*` alone. */
const origins = (env: Environment, name: string): readonly string[] => {
  const parts = listed(env, name);
  if (parts.length === 1 && parts[0] === '*') return parts;
  return parts.map((part) => {
    const origin = canonicalOrigin(part);
    if (origin === null)
      throw new ConfigError(
        `${name} must be * or origins such as https://example.com, separated by commas, not "${env[name]?.trim()}"`,
      );
    return origin;
  });
};

const nameShape = /^[a-z0-9._-]{1,253}$/i;

const hostNames = (env: Environment, name: string): readonly string[] => {
  const given = listed(env, name).filter((part) => part !== '');
  if (!given.every((part) => nameShape.test(part)))
    throw new ConfigError(
      `${name} must be host names such as syrinx.internal, without ports, separated by commas`,
    );
  return given;
};

const consoleOrigin = (env: Environment): string | null => {
  const [origin, ...others] = origins(env, 'CONSOLE_ORIGIN');
  if (origin === undefined) return null;
  if (others.length > 0 || !/^https?:/.test(origin))
    throw new ConfigError('CONSOLE_ORIGIN must be one origin such as https://console.example.com');
  return origin;
};

const consoleConfig = (env: Environment) => {
  if (nonEmpty(env, 'CONSOLE_PORT', '').toLowerCase() === 'off') return null;
  return {
    /** `CONSOLE_HOST`: the address to listen on. */
    host: nonEmpty(env, 'CONSOLE_HOST', '127.0.0.1'),
    /** `CONSOLE_PORT`: 0 picks a free port. */
    port: integer(env, 'CONSOLE_PORT', 8081, 0, LAST_PORT, ', or off'),
    /** `CONSOLE_ORIGIN`: where browsers find the console behind a proxy; `null`: at the address it listens on. */
    origin: consoleOrigin(env),
    /** `WEBHOOK_ALLOW`: internal addresses and networks that webhooks of accounts may reach; empty: none. */
    webhookAllow: networks(env, 'WEBHOOK_ALLOW'),
    /** One of the variables of the listener is set. Otherwise a machine that is too small for the console runs without it. */
    isGiven: ['CONSOLE_HOST', 'CONSOLE_PORT', 'CONSOLE_ORIGIN'].some(
      (name) => nonEmpty(env, name, '') !== '',
    ),
  };
};

export type ConsoleConfig = NonNullable<ReturnType<typeof consoleConfig>>;

const gpuConfig = (env: Environment, provider: ExecutionProvider) => {
  const device = nonEmpty(env, 'GPU_DEVICE', '').toLowerCase();
  if (device !== '' && !/^(?:\d{1,2}|[0-9a-f]{4}:[0-9a-f]{4})$/.test(device))
    throw new ConfigError(
      'GPU_DEVICE must be the number of a CUDA device, or VENDOR:DEVICE as `lspci -nn` shows them, such as ' +
        `10de:2684, not "${device}"`,
    );
  const raw = nonEmpty(env, 'GPU_GRAPHS', '');
  const names = listed(env, 'GPU_GRAPHS');
  if (raw !== 'all' && names.some((name) => !/^[^/\s]+\/[^/\s]+$/.test(name)))
    throw new ConfigError(
      `GPU_GRAPHS must be all, or a list such as syrinx-en/decoder,syrinx-en/frames, not "${raw}"` +
        (raw === 'measured' ? ': the service no longer measures which graphs are faster on the GPU' : ''),
    );
  const graphs: GpuGraphs = raw === 'all' || (raw === '' && provider === 'webgpu') ? 'all' : names;
  return {
    /** `GPU_DEVICE`: where a machine has several GPUs; `null`: the provider chooses. */
    device: device || null,
    /** `GPU_GRAPHS`; by default all if WebGPU is asked for by name, else none. */
    graphs,
    /** `GPU_BATCH_MAX`: the most segments that a run on the GPU speaks for. */
    batchMax: integer(env, 'GPU_BATCH_MAX', 16, 1, 64),
    batchMaxGiven: nonEmpty(env, 'GPU_BATCH_MAX', '') !== '',
    /** `GPU_MEMORY_MAX_MIB`: the most memory of the GPU in the worst case; `null`: not checked. */
    memoryMaxMiB: optionalInteger(env, 'GPU_MEMORY_MAX_MIB', 64, 2 ** 24),
  };
};

export type GpuConfig = ReturnType<typeof gpuConfig>;

/** `NAME=voice,NAME=voice`: names of other services for our voices. The packs are read later, so voices are not checked here. */
const voiceNames = (env: Environment, name: string): ReadonlyMap<string, string> => {
  const names = new Map<string, string>();
  for (const part of listed(env, name)) {
    const [id = '', voice = '', ...more] = part.split('=').map((piece) => piece.trim());
    if (id === '' || voice === '' || more.length > 0 || names.has(id))
      throw new ConfigError(
        `${name} must be a list such as alloy=rook_conv,nova=wren_conv, each name once, not "${env[name]?.trim()}"`,
      );
    names.set(id, voice);
  }
  return names;
};

const httpDialect = (port: number | null, voices: ReadonlyMap<string, string>): HttpDialectConfig | null =>
  port === null ? null : { port, voices };

const isNetwork = (text: string): boolean => {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
};

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** Addresses and networks, separated by commas. */
const networks = (env: Environment, name: string): readonly string[] => {
  const given = listed(env, name).filter((part) => part !== '');
  const wrong = given.find((part) => !isNetwork(part));
  if (wrong !== undefined)
    throw new ConfigError(
      `${name} must be addresses or networks such as 192.168.1.7,192.168.1.0/24, not "${wrong}"`,
    );
  return given;
};

/** Its clients have no keys. So other machines may use it only if the operator names them, and the account that pays. */
const wyomingConfig = (env: Environment) => {
  const port = optionalInteger(env, 'WYOMING_PORT', 0, LAST_PORT);
  if (port === null) return null;
  const host = nonEmpty(env, 'WYOMING_HOST', '127.0.0.1');
  const allow = networks(env, 'WYOMING_ALLOW');
  const account = nonEmpty(env, 'WYOMING_ACCOUNT', '') || null;
  const isReachable = !isLoopback(host);
  if (isReachable && (allow.length === 0 || account === null))
    throw new ConfigError(
      `WYOMING_HOST is ${host}, which other machines reach, and Wyoming has no keys: ` +
        'set WYOMING_ALLOW to the addresses that may connect and WYOMING_ACCOUNT to the account that pays',
    );
  return {
    /** `WYOMING_HOST`: the address to listen on. */
    host,
    /** Other machines reach this address. */
    isReachable,
    /** `WYOMING_PORT`: 0 picks a free port. */
    port,
    /** `WYOMING_ALLOW`: addresses (`192.168.1.7`) and networks (`192.168.1.0/24`) that may connect; empty: all. */
    allow,
    /** `WYOMING_ACCOUNT`: the account that pays; `null`: not given. */
    account,
  };
};

export type WyomingConfig = NonNullable<ReturnType<typeof wyomingConfig>>;

/** Both or neither: no service is better than one without the encryption that its operator relies on. */
const tlsFiles = (env: Environment): TlsFiles | null => {
  const certPath = nonEmpty(env, 'TLS_CERT', '');
  const keyPath = nonEmpty(env, 'TLS_KEY', '');
  if (certPath === '' && keyPath === '') return null;
  if (certPath === '' || keyPath === '')
    throw new ConfigError(
      `${certPath === '' ? 'TLS_CERT' : 'TLS_KEY'} is missing: TLS needs both a certificate and its private key`,
    );
  return { certPath: resolve(certPath), keyPath: resolve(keyPath) };
};

/** The message does not show the value, which may have a password. */
const storeUrl = (env: Environment): string | null => {
  const url = nonEmpty(env, 'STORE_URL', '');
  if (url === '') return null;
  if (!/^postgres(?:ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError(
      'STORE_URL must be the address of a PostgreSQL database: postgres://USER:PASSWORD@HOST/DATABASE',
    );
  const { hash, pathname, search } = new URL(url);
  // The rest of the password would count as part of the place, which the log shows.
  if (hash !== '' || (pathname === '' ? search : pathname).includes('@'))
    throw new ConfigError('STORE_URL has #, ? or / in its password: write them as %23, %3F and %2F');
  return url;
};

/** When all listeners want mp3 or Opus, actor threads need a fifth to a quarter of the cores; a third leaves room. */
const CORES_AN_ACTOR_THREAD = 3;

/**
 * @param env the process environment, or a substitute
 * @throws {ConfigError} with the variable, the values that it takes and its value
 */
export const readConfig = (env: Environment) => {
  const cores = availableParallelism();
  const executionProvider = oneOf(env, 'EXECUTION_PROVIDER', executionProviders, 'auto');
  return Object.freeze({
    /** `HOST`: the address to listen on. */
    host: nonEmpty(env, 'HOST', '127.0.0.1'),
    /** `PORT`: 0 picks a free port. */
    port: integer(env, 'PORT', 8080, 0, LAST_PORT),
    /** `OPS_HOST`: the address of the ops listener (metrics, health), which needs no key. */
    opsHost: nonEmpty(env, 'OPS_HOST', '127.0.0.1'),
    /** `OPS_PORT`: its port; 0 picks a free port. */
    opsPort: integer(env, 'OPS_PORT', 9464, 0, LAST_PORT),
    /** `OPS_NAMES`: names under which it answers, beside addresses, localhost and `OPS_HOST`. */
    opsNames: hostNames(env, 'OPS_NAMES'),
    /** The console in the browser; `null`: `CONSOLE_PORT` is `off`. */
    console: consoleConfig(env),
    /** `ELEVENLABS_PORT` and `ELEVENLABS_VOICES`; `null`: off. */
    elevenLabs: httpDialect(
      optionalInteger(env, 'ELEVENLABS_PORT', 0, LAST_PORT),
      voiceNames(env, 'ELEVENLABS_VOICES'),
    ),
    /** `OPENAI_PORT` and `OPENAI_VOICES`; `null`: off. */
    openAi: httpDialect(optionalInteger(env, 'OPENAI_PORT', 0, LAST_PORT), voiceNames(env, 'OPENAI_VOICES')),
    /** `BROWSER_PORT`: the listener for pages with tokens; 0 picks a free port, `null`: off. */
    browserPort: optionalInteger(env, 'BROWSER_PORT', 0, LAST_PORT),
    /** The listener for Home Assistant; `null`: `WYOMING_PORT` is not set. */
    wyoming: wyomingConfig(env),
    /** `DATA_DIR`: the store and the first key. */
    dataDir: resolve(nonEmpty(env, 'DATA_DIR', './data')),
    /** `STORE_URL`: the PostgreSQL database of the store; `null`: it is SQLite in `dataDir`. */
    storeUrl: storeUrl(env),
    /** `MODELS_DIR`: one folder per voice pack. */
    modelsDir: resolve(nonEmpty(env, 'MODELS_DIR', './models')),
    /** `SYNTHESIS_THREADS`: by default one per core. */
    synthesisThreads: integer(env, 'SYNTHESIS_THREADS', cores, 1, 256),
    /** `SYNTHESIS_THREADS` is set. Otherwise the plan may take fewer, to fit the memory. */
    synthesisThreadsGiven: nonEmpty(env, 'SYNTHESIS_THREADS', '') !== '',
    /** `ACTOR_THREADS`: by default one for three cores. */
    actorThreads: integer(env, 'ACTOR_THREADS', Math.ceil(cores / CORES_AN_ACTOR_THREAD), 1, 64),
    /** `CREDITS_PER_CHARACTER`: the price of a code point of text. */
    creditsPerCharacter: integer(env, 'CREDITS_PER_CHARACTER', 1, 0, 1_000_000),
    /** `CORS_ORIGINS`: origins of web pages that may call the service; `*` for all, none by default. */
    corsOrigins: origins(env, 'CORS_ORIGINS'),
    /** `LOG_LEVEL` */
    logLevel: oneOf(env, 'LOG_LEVEL', logLevels, 'info'),
    /** `EXECUTION_PROVIDER`: `auto` uses CUDA if it works, otherwise WebGPU if `GPU_GRAPHS` is set, otherwise the CPU. */
    executionProvider,
    gpu: gpuConfig(env, executionProvider),
    /** `TLS_CERT` and `TLS_KEY`: with them the service speaks only TLS; `null` without. */
    tls: tlsFiles(env),
    /** `MEMORY_MAX_MIB`: the most memory of the worst case; `null`: four fifths of the machine's memory. */
    memoryMaxMiB: optionalInteger(env, 'MEMORY_MAX_MIB', 64, 2 ** 24),
    /** `PACKS_LOADED_MAX`: how many voice packs a thread may have loaded; `null`: the memory decides. */
    packsLoadedMax: optionalInteger(env, 'PACKS_LOADED_MAX', 2, 10_000),
    /** `CONTEXTS_MAX`: bound of open contexts; `null`: the memory sets it. */
    contextsMax: optionalInteger(env, 'CONTEXTS_MAX', 1, 1_000_000),
    /** `SOCKETS_MAX`: bound of open WebSockets; `null`: memory and open files set it. */
    socketsMax: optionalInteger(env, 'SOCKETS_MAX', 1, 1_000_000),
    /** `OVERLOAD`: at its capacity the service refuses further speech; `late` admits all, and speech comes late. */
    overload: oneOf(env, 'OVERLOAD', overloadPolicies, 'refuse'),
    /** `SOCKETS_PER_KEY`: bound of open WebSockets of one key; `null`: only the account's part bounds them. */
    socketsPerKey: optionalInteger(env, 'SOCKETS_PER_KEY', 1, 1_000_000),
    /** `KEYS_PER_ACCOUNT`: keys that an account may have, and may get in a day. */
    keysPerAccountMax: integer(env, 'KEYS_PER_ACCOUNT', limits.keysPerAccountMax, 1, 1_000_000),
    /** `DRAIN_SECONDS`, in milliseconds: how long work in flight may go on after SIGTERM. */
    drainMsMax: 1_000 * integer(env, 'DRAIN_SECONDS', limits.drainMsMax / 1_000, 1, 86_400),
  });
};

export type Config = ReturnType<typeof readConfig>;
