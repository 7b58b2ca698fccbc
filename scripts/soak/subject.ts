/** What a soak loads: a service that it starts, a service that runs already, or several hosts (`hosts.ts`). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { describeExit, freeDialectPorts, Service } from '../rig/service.js';
import { makeMixedPacks } from '../voices/fixtures/mixed.js';
import type { Leftovers, LogFindings, ServiceEnd, StoreFindings } from './invariants.js';
import type { Monitor } from './monitor.js';
import type { Remote, SoakOptions } from './options.js';
import { otherKeysNeeded, type KeyRing } from './population.js';
import { logFindingsOf, readStore } from './service-access.js';

/** Begins or ends a time when something else on the machine delays audio. */
export type Disturb = (isDisturbed: boolean) => Promise<void>;

export interface Subject {
  readonly baseUrl: string;
  readonly opsUrl: string | null;
  /** Whose process the soak reads; `null`: none. */
  readonly service: Service | null;
  readonly dialectPorts: Readonly<Record<string, number>>;
  /** Keys for idle clients, those over HTTP, and so many over WebSockets. */
  keysFor(sockets: number): Promise<KeyRing>;
  /** Resolves when a service ends that should run. */
  readonly failed: Promise<string>;
  /** What the soak does to it while it is loaded. */
  readonly begin?: (disturb: Disturb) => void;
  /** Now, when all clients have left. */
  leftovers(monitor: Monitor): Promise<Leftovers>;
  log(): LogFindings | null;
  /** @param keys whose use the store must have */
  end(keys: readonly string[]): Promise<ServiceEnd>;
  /** Ends it without questions. Idempotent. */
  stop(): Promise<unknown>;
}

const leftoversOf = async (monitor: Monitor): Promise<Leftovers> => {
  const status = await monitor.status();
  const { serviceStreams, serviceContexts } = await monitor.sample();
  return {
    requestsInFlight: status?.requestsInFlight ?? null,
    openContexts: status?.openContexts ?? null,
    streams: serviceStreams,
    contexts: serviceContexts,
  };
};

export const remoteSubject = ({ keys, opsUrl, url }: Remote): Subject => ({
  ...{ baseUrl: url.origin, opsUrl, service: null, dialectPorts: {} },
  failed: new Promise(() => undefined),
  // Filled evenly from both ends: no key has more than `clientsPerKey` + 1 clients.
  keysFor: () => Promise.resolve({ sockets: keys, http: keys.toReversed(), idle: keys[0]!, isShared: true }),
  leftovers: leftoversOf,
  log: () => null,
  end: () => Promise.resolve({ end: null, store: null }),
  stop: () => Promise.resolve(),
});

/** Makes keys as they are needed: idle, HTTP, WebSocket. */
export const keyMaker = (make: (count: number) => Promise<string[]>, httpClients: number) => {
  const first = 1 + otherKeysNeeded(httpClients);
  const all: string[] = [];
  return async (sockets: number): Promise<KeyRing> => {
    const missing = first + sockets - all.length;
    if (missing > 0) all.push(...(await make(missing)));
    return { sockets: all.slice(first), http: all.slice(1, first), idle: all[0]!, isShared: false };
  };
};

/** @returns a folder of example packs of all formats, which goes with this process */
const mixedPacks = async (): Promise<string> => {
  const scratch = mkdtempSync(join(tmpdir(), 'syrinx-soak-'));
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
  const models = join(scratch, 'models');
  await makeMixedPacks(models);
  return models;
};

/** With as many threads as by default, and all its ports. */
export const startOwn = async ({ load, streams, voiceSet }: SoakOptions): Promise<Subject> => {
  const { synthesisThreads, actorThreads } = readConfig(process.env);
  const service = await Service.start({
    synthesisThreads,
    actorThreads,
    env: {
      // Calibration goes beyond what the machine carries, and counts what comes late.
      OVERLOAD: load === null ? 'late' : 'refuse',
      ...freeDialectPorts,
      ...(voiceSet === 'mixed' && { MODELS_DIR: await mixedPacks() }),
    },
    nodeOptions: ['--inspect=127.0.0.1:0'],
    ownGroup: true,
    showsErrors: true,
  });
  return {
    ...{ baseUrl: service.url, opsUrl: service.opsPort === 0 ? null : service.opsUrl, service },
    dialectPorts: service.dialectPorts,
    keysFor: keyMaker((count) => service.makeKeys(count), streams),
    failed: service.exited.then((exit) => `the service ended with ${describeExit(exit)}`),
    leftovers: leftoversOf,
    log: () => logFindingsOf([service.log]),
    end: async (keys) => {
      let store: StoreFindings | null = null;
      // A bad exit breaks an invariant; it is not an error of the soak.
      const exit = await service.stop(async () => void (store = await readStore(service, keys)));
      return { end: describeExit(exit), store };
    },
    stop: () => service.stop().catch(() => undefined),
  };
};
