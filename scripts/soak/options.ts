/** The command line of a soak. */
import { parseCommandLine, UsageError } from '../command.js';
import { calibration } from './calibrate.js';
import { clientsPerKey } from './keys.js';
import { defaultWarmUpMinutes, minutesToJudgeMemory, phasesOf } from './phases.js';

export const usage = `Usage: npm run soak -- [--minutes N] [--sockets N] [--contexts N] [--streams N] [--seed S]
                   [--share F] [--warm-up N] [--rests N] [--out FOLDER]
                   [--url URL --key K[,K...] [--ops-url URL]]

  --minutes N    how long it is measured (default 10); starting, calibrating, warming up, rests and ending come on top
  --sockets N    WebSockets on which hardly anything happens (default 2000)
  --contexts N   clients that stream over WebSockets, in real time; by default as many as this machine holds,
                 found by trying, less a part
  --share F      how much of what the machine holds is taken, from 0.05 to 1 (default 0.4). Near 1, what comes late
                 may be want of capacity.
  --warm-up N    minutes of the same load before, that memory is not judged by (default ${String(defaultWarmUpMinutes)} where memory
                 is judged, which is from ${String(minutesToJudgeMemory)} minutes on, else 0)
  --rests N      how often all clients fall silent after the warm-up, for half a minute that is not measured, so that
                 the memory that the service keeps can be read (default one each 5 minutes where that is judged, else 0)
  --streams N    clients over HTTP (default 8)
  --seed S       a whole number; the same seed gives the same schedule (default 1)
  --out FOLDER   where soak.json and soak.html go (default: the folder it is run in)
  --url URL      soaks a service that runs already, such as http://127.0.0.1:8080, with the keys of --key; each key
                 carries six clients, those of the surge (half as many contexts again, where memory is judged)
                 included. Its process and its store are then not looked at.
  --ops-url URL  where that service has its metrics

Exit codes: 0 no invariant was broken, 1 one was, 2 the command was not understood.
`;

export interface Remote {
  readonly url: URL;
  readonly keys: readonly string[];
  readonly opsUrl: string | null;
}

export interface SoakOptions {
  readonly minutes: number;
  readonly sockets: number;
  /** `null`: as many as the machine holds. */
  readonly contexts: number | null;
  /** Of the clients that the machine holds; nothing where their number is given. */
  readonly share: number;
  /** `null`: as many as memory wants, where it is judged. */
  readonly warmUpMinutes: number | null;
  /** `null`: as many as memory is judged by, where it is. */
  readonly rests: number | null;
  readonly streams: number;
  readonly seed: number;
  readonly out: string;
  /** `null`: the service is started, and ended. */
  readonly remote: Remote | null;
}

const number = (name: string, text: string, min: number, max: number): number => {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`--${name} is a number from ${String(min)} to ${String(max)}, not "${text}"`);
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
      share: { type: 'string' },
      'warm-up': { type: 'string' },
      rests: { type: 'string' },
      streams: { type: 'string', default: '8' },
      seed: { type: 'string', default: '1' },
      out: { type: 'string', default: '.' },
      url: { type: 'string' },
      key: { type: 'string' },
      'ops-url': { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
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

/** A soak that judges memory begins with more clients than were asked for: they, too, must have slots. */
const refuseTooManyClients = (options: SoakOptions, { keys, opsUrl }: Remote): void => {
  const { surge } = phasesOf(options, opsUrl === null ? 'nowhere' : 'under load');
  const contexts = options.contexts === null ? 1 : Math.ceil(options.contexts * (surge?.factor ?? 1));
  const clients = contexts + options.streams;
  if (clients > keys.length * clientsPerKey)
    throw new UsageError(
      `--contexts and --streams come to ${String(clients)} clients${surge === null || options.contexts === null ? '' : ' at most'}, ` +
        `and a key carries ${String(clientsPerKey)}: give --key more of them, with commas, or take fewer clients`,
    );
};

/**
 * @returns `null` when the help is asked for
 * @throws {UsageError} in words for a terminal
 */
export const readOptions = (args: readonly string[]): SoakOptions | null => {
  const values = parse(args);
  if (values.help) return null;
  if (values.share !== undefined && values.contexts !== undefined)
    throw new UsageError('--share is of what the machine holds, and --contexts tells another number');
  if (values.rests !== undefined && values.url !== undefined)
    throw new UsageError('--rests is for a service that the soak starts: it reads the memory of its process');
  const options: SoakOptions = {
    minutes: number('minutes', values.minutes, 0.05, 100_000),
    sockets: whole('sockets', values.sockets, 16_000),
    contexts: values.contexts === undefined ? null : whole('contexts', values.contexts, 4_000),
    share: values.share === undefined ? calibration.share : number('share', values.share, 0.05, 1),
    warmUpMinutes: values['warm-up'] === undefined ? null : number('warm-up', values['warm-up'], 0, 100_000),
    rests: values.rests === undefined ? null : whole('rests', values.rests, 1_000),
    streams: whole('streams', values.streams, 1_000),
    seed: whole('seed', values.seed, 2 ** 32 - 1),
    out: values.out,
    remote: readRemote(values),
  };
  if (options.remote !== null) refuseTooManyClients(options, options.remote);
  return options;
};
