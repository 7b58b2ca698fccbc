/** What a soak loads: a service that it starts, a service that runs already, or several hosts. */
import { countHandles } from '../rig/process-facts.js';
import { describeExit, type Service } from '../rig/service.js';
import { type Disturb, SoakHosts } from './hosts.js';
import type { Findings, Handles, Leftovers, ServiceEnd, StoreFindings } from './invariants.js';
import type { Monitor } from './monitor.js';
import type { Remote, SoakOptions } from './options.js';
import { otherKeysNeeded, type KeyRing } from './population.js';
import {
  awaitLeftovers,
  logFindingsOf,
  mixedPacks,
  readStore,
  startService,
  waitForLeftovers,
} from './service-access.js';

export interface Subject {
  readonly baseUrl: string;
  readonly opsUrl: string | null;
  /** Whose process the soak reads; `null`: none. */
  readonly service: Service | null;
  readonly dialectPorts: Readonly<Record<string, number>>;
  /** With keys for clients over HTTP; more keys come with `withKeys`. */
  readonly keys: KeyRing;
  /** The same keys with so many more for clients over WebSockets. */
  withKeys(sockets: number): Promise<KeyRing>;
  /** Resolves when a service ends that should run. */
  readonly failed: Promise<string>;
  /** What the soak does to it while it is loaded. */
  readonly begin?: (disturb: Disturb) => void;
  handles(): Handles;
  /** When all clients have left. */
  leftovers(monitor: Monitor): Promise<Leftovers>;
  log(): Findings['log'];
  /** @param keys whose use the store must have */
  end(keys: readonly string[]): Promise<ServiceEnd>;
  /** Ends it without questions. Idempotent. */
  stop(): Promise<void>;
}

const never = new Promise<string>(() => undefined);

const remoteSubject = ({ keys, opsUrl, url }: Remote): Subject => {
  const ring: KeyRing = { sockets: keys, http: keys, idle: keys[0]!, isShared: true };
  return {
    ...{ baseUrl: url.origin, opsUrl, service: null, dialectPorts: {}, keys: ring, failed: never },
    withKeys: () => Promise.resolve(ring),
    handles: () => ({ files: null, threads: null }),
    leftovers: awaitLeftovers,
    log: () => null,
    end: () => Promise.resolve({ end: null, store: null }),
    stop: () => Promise.resolve(),
  };
};

/** Makes keys as they are needed: idle, HTTP, WebSocket. */
export const keyMaker = async (make: (count: number) => Promise<string[]>, httpClients: number) => {
  const all = await make(1 + otherKeysNeeded(httpClients));
  const http = all.slice(1);
  const first = all.length;
  const ring = (): KeyRing => ({ sockets: all.slice(first), http, idle: all[0]!, isShared: false });
  const withKeys = async (sockets: number): Promise<KeyRing> => {
    const missing = first + sockets - all.length;
    if (missing > 0) all.push(...(await make(missing)));
    return ring();
  };
  return { keys: ring(), withKeys };
};

const ownSubject = async ({ load, streams, voiceSet }: SoakOptions): Promise<Subject> => {
  // Calibration goes beyond what the machine carries, and counts what comes late.
  const service = await startService(
    load === null ? 'late' : 'refuse',
    ['--inspect=127.0.0.1:0'],
    voiceSet === 'mixed' ? { MODELS_DIR: await mixedPacks() } : {},
  );
  if (service.inspectorUrl === null) throw new Error('the service started without its inspector');
  return {
    ...{ baseUrl: service.url, opsUrl: service.opsPort === 0 ? null : service.opsUrl, service },
    ...(await keyMaker((count) => service.makeKeys(count), streams)),
    dialectPorts: service.dialectPorts,
    failed: service.exited.then((exit) => `the service ended with ${describeExit(exit)}`),
    handles: () => countHandles(service.pid) ?? { files: null, threads: null },
    leftovers: awaitLeftovers,
    log: () => logFindingsOf([service.log]),
    end: async (keys) => {
      let store: StoreFindings | null = null;
      // A bad exit breaks an invariant; it is not an error of the soak.
      const exit = await service.stop(async () => void (store = await readStore(service, keys)));
      return { end: describeExit(exit), store };
    },
    stop: async () => {
      await service.stop().catch(() => undefined);
    },
  };
};

const hostsSubject = async ({ streams }: SoakOptions): Promise<Subject> => {
  const hosts = await SoakHosts.start();
  return {
    ...{ baseUrl: hosts.url, opsUrl: null, service: null, dialectPorts: {} },
    ...(await keyMaker((count) => hosts.makeKeys(count), streams)),
    failed: hosts.failed,
    begin: (disturb) => hosts.begin(disturb),
    handles: () => ({ files: null, threads: null }),
    leftovers: () => waitForLeftovers(() => hosts.leftovers()),
    log: () => logFindingsOf(hosts.logs),
    end: (keys) => hosts.end(keys),
    stop: () => hosts.stop(),
  };
};

export const startSubject = (options: SoakOptions): Promise<Subject> => {
  if (options.remote !== null) return Promise.resolve(remoteSubject(options.remote));
  return options.hosts ? hostsSubject(options) : ownSubject(options);
};
