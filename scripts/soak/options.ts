/** The command line of a soak. */
import { parseCommandLine, UsageError } from '../../src/command-line.js';
import type { VoiceSet } from './measures.js';
import { defaultWarmUpMinutes, minutesToJudgeMemory, phasesOf } from './phases.js';
import { clientsPerKey } from './population.js';

export const usage = `Usage: npm run soak -- [--minutes N] [--sockets N] [--contexts N] [--streams N] [--seed S]
                   [--load F] [--warm-up N] [--rests N] [--out FOLDER]
                   [--voices shipped|mixed | --hosts 3]
                   [--url URL --key K[,K...] [--ops-url URL]]

  --minutes N    minutes to measure (default 10); start, calibration, warm-up, rests and end come on top
  --sockets N    idle WebSockets (default 2000)
  --contexts N   clients that stream over WebSockets in real time; by default 40 % of the number that this machine can
                 serve, which calibration finds
  --load F       another part of that number, from 0.05 to 20, with a service that refuses what it cannot carry: 2 is twice
                 as much as the machine carries. Below 1 the service may not refuse, and from 1 on refusals are counted, and what is
                 admitted is judged by the bars of an overload. With --contexts it only says which bars count.
  --warm-up N    minutes of the same load before, in which memory is not judged (default ${defaultWarmUpMinutes} where memory
                 is judged, which needs ${minutesToJudgeMemory} minutes or more, else 0)
  --rests N      rests after the warm-up: all clients pause for half a minute, which is not measured, to read the memory
                 that the service keeps (default one every 5 minutes where memory is judged, else 0)
  --streams N    clients over HTTP (default 8)
  --seed S       a whole number; the same seed gives the same schedule (default 1)
  --voices SET   shipped (default), or mixed: one voice of each format, from example packs beside those that are shipped
  --hosts 3      three hosts behind nginx with one PostgreSQL database; they are restarted one after the other all the time,
                 and clients whose WebSocket is closed connect again. Needs nginx and PostgreSQL.
  --out FOLDER   folder for soak.json (default: the current folder)
  --url URL      soaks a running service, such as http://127.0.0.1:8080, with the keys of --key. A key serves six
                 clients, including those of the surge (half as many contexts again, where memory is judged). The soak
                 does not read the process or the store of that service.
  --ops-url URL  address of that service's metrics

Exit codes: 0 no invariant was broken, 1 an invariant was broken, 2 wrong usage.
`;

export interface Remote {
  readonly url: URL;
  readonly keys: readonly string[];
  readonly opsUrl: string | null;
}

export interface SoakOptions {
  readonly minutes: number;
  readonly sockets: number;
  /** `null`: calibration decides. */
  readonly contexts: number | null;
  /** A part or a multiple of the capacity, in which the service may refuse; `null`: it may not. */
  readonly load: number | null;
  /** `null`: the default. */
  readonly warmUpMinutes: number | null;
  /** `null`: the default. */
  readonly rests: number | null;
  readonly streams: number;
  readonly voiceSet: VoiceSet;
  /** Three of them share a database, and are restarted. */
  readonly hosts: boolean;
  readonly seed: number;
  readonly out: string;
  /** `null`: the soak starts the service. */
  readonly remote: Remote | null;
}

const number = (name: string, text: string, min: number, max: number): number => {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`--${name} is a number from ${min} to ${max}, not "${text}"`);
  return value;
};

const whole = (name: string, text: string, max: number): number => {
  const value = number(name, text, 0, max);
  if (!Number.isInteger(value)) throw new UsageError(`--${name} is a whole number, not "${text}"`);
  return value;
};

const parse = (args: readonly string[]) =>
  parseCommandLine({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      sockets: { type: 'string', default: '2000' },
      contexts: { type: 'string' },
      load: { type: 'string' },
      'warm-up': { type: 'string' },
      rests: { type: 'string' },
      streams: { type: 'string', default: '8' },
      seed: { type: 'string', default: '1' },
      voices: { type: 'string', default: 'shipped' },
      hosts: { type: 'string' },
      out: { type: 'string', default: '.' },
      url: { type: 'string' },
      key: { type: 'string' },
      'ops-url': { type: 'string' },
    },
  }).values;

const readRemote = (values: ReturnType<typeof parse>): Remote | null => {
  const { url, key, 'ops-url': opsUrl = null } = values;
  if (url === undefined) {
    if (key !== undefined || opsUrl !== null) throw new UsageError('--key and --ops-url go with --url');
    return null;
  }
  if (key === undefined) throw new UsageError('--url needs --key');
  if (!URL.canParse(url) || new URL(url).protocol !== 'http:')
    throw new UsageError(`--url is an http:// address, not "${url}"`);
  if (opsUrl !== null && !URL.canParse(opsUrl))
    throw new UsageError(`--ops-url is an address, not "${opsUrl}"`);
  const keys = key.split(',').map((part) => part.trim());
  return { url: new URL(url), keys, opsUrl: opsUrl?.replace(/\/$/, '') ?? null };
};

/** @throws {UsageError} */
export const readOptions = (args: readonly string[]): SoakOptions => {
  const values = parse(args);
  const { contexts, hosts, load, rests, url, voices, 'warm-up': warmUp } = values;
  if (voices !== 'shipped' && voices !== 'mixed')
    throw new UsageError(`--voices is shipped or mixed, not "${voices}"`);
  if (hosts !== undefined && hosts !== '3') throw new UsageError(`--hosts is 3, not "${hosts}"`);
  const kinds = {
    '--url': url !== undefined,
    '--load': load !== undefined,
    '--voices mixed': voices === 'mixed',
  };
  const asked = Object.entries({ ...kinds, '--hosts': hosts !== undefined }).filter(([, isAsked]) => isAsked);
  if (asked.length > 1)
    throw new UsageError(`${asked.map(([name]) => name).join(' and ')} do not go together`);
  if (rests !== undefined && (hosts ?? url) !== undefined)
    throw new UsageError('--rests reads the memory of one service that the soak starts');
  const options: SoakOptions = {
    minutes: number('minutes', values.minutes, 0.05, 100_000),
    sockets: whole('sockets', values.sockets, 16_000),
    contexts: contexts === undefined ? null : whole('contexts', contexts, 4_000),
    load: load === undefined ? null : number('load', load, 0.05, 20),
    warmUpMinutes: warmUp === undefined ? null : number('warm-up', warmUp, 0, 100_000),
    rests: rests === undefined ? null : whole('rests', rests, 1_000),
    streams: whole('streams', values.streams, 1_000),
    voiceSet: voices,
    hosts: hosts !== undefined,
    seed: whole('seed', values.seed, 2 ** 32 - 1),
    out: values.out,
    remote: readRemote(values),
  };
  const { remote, streams } = options;
  if (remote === null) return options;
  // A soak that judges memory begins with more clients than were asked for; they need slots too.
  const { surge } = phasesOf(options, remote.opsUrl === null ? 'nowhere' : 'under load');
  const clients = Math.ceil((options.contexts ?? 1) * (surge?.factor ?? 1)) + streams;
  if (clients > remote.keys.length * clientsPerKey)
    throw new UsageError(
      `--contexts and --streams make ${clients} clients at most, and a key serves ${clientsPerKey}: ` +
        'give more keys, separated by commas, or use fewer clients',
    );
  return options;
};
