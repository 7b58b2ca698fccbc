/**
 * The composition root: builds every stage, starts them in order, and ends them in the opposite one.
 *
 *   built --start--> serving --drain--> closed
 *
 * Nothing else wires stages together.
 */
import { createAdmission } from './accounts/admission.js';
import { makeFirstKey } from './accounts/first-key.js';
import { Ledger } from './store/sqlite/ledger.js';
import { openStore, type Store } from './store/sqlite/store.js';
import type { Config } from './config.js';
import { Dispatcher } from './speech/dispatcher.js';
import { CertificateError, doubtOf, readCertificate, type Certificate } from './front/certificate.js';
import { catalogueOf, type VoicePack, type Voices } from './threads/voices.js';
import { VoiceReload } from './threads/reload.js';
import type { Readiness } from './front/health-routes.js';
import { createServer, type Server } from './front/server.js';
import type { Bounds } from './limits.js';
import type { Log } from './log.js';
import { readMachine } from './machine.js';
import { Metrics, type Figures } from './metrics.js';
import { EventLoopDelay, HeapTrim, pssBytes } from './process.js';
import { OpsServer } from './ops/ops-server.js';
import { checkReload, planFor, type Models, type Plan } from './plan.js';
import { inMiB } from './worst-case.js';
import { readPacks } from '../workers/engines/manifest.js';

export interface AppParts {
  readonly config: Config;
  readonly log: Log;
  /** Gets the key that the first start of an empty store makes, the only time that it is seen. */
  readonly onFirstKey: (key: string) => void;
  /** Entries of the threads, where a test puts its own. */
  readonly synthesisEntry?: URL;
  readonly actorEntry?: URL;
}

const readVoices = async (modelsDir: string): Promise<Voices> => {
  const { packs, release } = await readPacks(modelsDir);
  return { packs, release, catalogue: catalogueOf(packs) };
};

const modelsOf = (packs: readonly VoicePack[]): Models => ({
  modelBytes: packs.reduce((sum, { modelBytes }) => sum + modelBytes, 0),
  packs: packs.length,
});

/** What all pools come to when they are full, and which of them are smaller here than in limits.ts. */
const tell = (
  { bounds, factor, memoryMaxBytes, synthesisThreads, worstCase }: Plan,
  config: Config,
  log: Log,
): void => {
  const { contextsMax, socketsMax, connectionsMax } = bounds;
  const memoryMaxMiB = Math.round(memoryMaxBytes / 2 ** 20);
  const pools = { contextsMax, socketsMax, connectionsMax, files: worstCase.files };
  log.info(
    { mib: inMiB(worstCase), memoryMaxMiB, poolsFactor: Math.round(factor * 1000) / 1000, ...pools },
    'worst case',
  );
  if (synthesisThreads < config.synthesisThreads)
    log.warn(
      { synthesisThreads, cores: config.synthesisThreads },
      'fewer synthesis threads than cores, for want of memory',
    );
};

const warnOf = (certificate: Certificate, log: Log): void => {
  const doubt = doubtOf(certificate, new Date());
  const { validFrom, validTo } = certificate;
  if (doubt !== null) log.warn({ validFrom, validTo }, doubt);
};

/** Checked before anything is written to it. */
const openWithKey = (dataDir: string, onFirstKey: AppParts['onFirstKey']): Store => {
  const store = openStore(dataDir);
  try {
    makeFirstKey(dataDir, onFirstKey);
    return store;
  } catch (error) {
    store.close();
    throw error;
  }
};

export class App {
  readonly #log: Log;
  readonly #config: Config;
  readonly #bounds: Bounds;
  readonly #eventLoop = new EventLoopDelay();
  readonly #store: Store;
  readonly #ledger: Ledger;
  readonly #dispatcher: Dispatcher;
  readonly #reload: VoiceReload;
  readonly #server: Server;
  readonly #ops: OpsServer;
  #heapTrim: HeapTrim | undefined;
  #drained: Promise<boolean> | undefined;
  #hurry: () => void = () => undefined;

  private constructor(
    parts: Pick<AppParts, 'config' | 'log'> & {
      readonly bounds: Bounds;
      readonly store: Store;
      readonly ledger: Ledger;
      readonly dispatcher: Dispatcher;
      readonly reload: VoiceReload;
      readonly server: Server;
      readonly ops: OpsServer;
    },
  ) {
    this.#log = parts.log;
    this.#config = parts.config;
    this.#bounds = parts.bounds;
    this.#store = parts.store;
    this.#ledger = parts.ledger;
    this.#dispatcher = parts.dispatcher;
    this.#reload = parts.reload;
    this.#server = parts.server;
    this.#ops = parts.ops;
  }

  /**
   * Serves when it resolves.
   *
   * @throws {CertificateError} the certificate or its key cannot be used
   * @throws {MachineError} the worst case is more than the machine has
   * @throws {VoicePackError} a model file is missing or damaged
   * @throws {StoreError} the data folder or the store cannot be used
   * @throws {ListenError} an address cannot be listened on
   */
  static async start(parts: AppParts): Promise<{ app: App; port: number; opsPort: number }> {
    const { config, log } = parts;
    /** Set when all is loaded, and it listens. */
    let serving: Readiness | null = null;
    const readiness: Readiness = {
      reasons: () => serving?.reasons() ?? ['voices are loading'],
      warnings: () => serving?.warnings() ?? [],
    };
    const metrics = new Metrics();
    const { opsHost: host, opsPort: port } = config;
    const ops = await OpsServer.listen({ host, port, metrics, readiness, log });
    try {
      const app = await App.#load(parts, metrics, ops);
      const bound = await app.#listen();
      // Not before: whoever asks at the ops port may send speech, or stop the process that this one follows.
      serving = app.#server.readiness;
      metrics.watch(() => app.#figures());
      return { app, port: bound, opsPort: ops.port };
    } catch (error) {
      await ops.close();
      throw error;
    }
  }

  /** Everything but the ops listener, ready to serve. */
  static async #load(parts: AppParts, metrics: Metrics, ops: OpsServer): Promise<App> {
    const { config, log } = parts;
    const certificate = config.tls === null ? null : readCertificate(config.tls);
    if (certificate !== null) warnOf(certificate, log);
    const voices = await readVoices(config.modelsDir);
    const plan = planFor(config, readMachine(), modelsOf(voices.packs));
    tell(plan, config, log);
    const { bounds, synthesisThreads } = plan;
    // First of all: its threads load while the store is opened, which waits for the disk.
    const dispatcher = new Dispatcher({
      config: { ...config, synthesisThreads },
      voices,
      bounds,
      log,
      metrics,
      synthesisEntry: parts.synthesisEntry ?? new URL('../workers/synthesis.js', import.meta.url),
      actorEntry: parts.actorEntry ?? new URL('../workers/actors.js', import.meta.url),
    });
    let store: Store | undefined;
    let ledger: Ledger | undefined;
    let app: App;
    try {
      store = openWithKey(config.dataDir, parts.onFirstKey);
      ledger = new Ledger({ dataDir: config.dataDir, limits: bounds, log });
      const admission = createAdmission({
        store,
        ledger,
        limits: bounds,
        creditsPerCharacter: config.creditsPerCharacter,
        clock: Date.now,
        log,
      });
      const readiness: Readiness = {
        reasons: () => [...dispatcher.faults(), ...admission.faults()],
        warnings: () => dispatcher.warnings(),
      };
      const server = createServer({
        config,
        certificate,
        bounds,
        speech: dispatcher,
        admission,
        readiness,
        log,
        metrics,
      });
      const readNext = async (): Promise<Voices> => {
        const next = await readVoices(config.modelsDir);
        try {
          checkReload(plan, config, modelsOf(dispatcher.packs), modelsOf(next.packs));
          return next;
        } catch (error) {
          next.release();
          throw error;
        }
      };
      const reload = new VoiceReload({ dispatcher, read: readNext, log });
      app = new App({ log, config, bounds, store, ledger, dispatcher, reload, server, ops });
    } catch (error) {
      // A thread can be ended once it has loaded, or could not.
      await dispatcher.ready().catch(() => undefined);
      await dispatcher.close(bounds.stepEndMsMax);
      await ledger?.close();
      store?.close();
      throw error;
    }
    try {
      await dispatcher.ready();
    } catch (error) {
      await app.drain();
      throw error;
    }
    return app;
  }

  async #listen(): Promise<number> {
    this.#heapTrim = await HeapTrim.start(this.#bounds.heapTrimMs, this.#log);
    try {
      return (await this.#server.listen()).port;
    } catch (error) {
      await this.drain();
      throw error;
    }
  }

  /** Reads the certificate and its key again, for connections to come. One that cannot be used changes nothing. */
  renewCertificate(): void {
    if (this.#config.tls === null) return;
    try {
      const certificate = readCertificate(this.#config.tls);
      if (!this.#server.renewCertificate(certificate)) return;
      this.#log.info({ validTo: certificate.validTo }, 'new connections get the new TLS certificate');
      warnOf(certificate, this.#log);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      this.#log.error({ reason: error.message }, 'the TLS certificate stays as it is');
    }
  }

  /** Reads the voices again. Streams go on; should it fail, so do the voices that there are. Told in the log. */
  reloadVoices(): void {
    this.#reload.request();
  }

  /** What is going on now, for the log. */
  async status() {
    const { reasons, streams, sockets, contexts, bufferedBytes, bufferedAudioMs, restarts, eventLoopDelay } =
      this.#figures();
    const { rss, heapUsed } = process.memoryUsage();
    const toMiB = (bytes: number) => Math.round(bytes / 2 ** 20);
    const delayMs = (quantile: 0.5 | 0.99 | 1) => Math.round(eventLoopDelay(quantile) * 1e4) / 10;
    return {
      ready: reasons.length === 0,
      reasons,
      requestsInFlight: this.#server.inFlight,
      streams: Object.fromEntries(streams),
      sockets,
      openContexts: contexts,
      runningSegments: this.#dispatcher.runningSegments,
      ...this.#dispatcher.voiceStatus(),
      threads: this.#dispatcher.threads,
      threadsWhole: this.#dispatcher.isWhole,
      threadRestarts: restarts,
      ledgerEntriesQueued: this.#ledger.queued,
      bufferedBytes,
      bufferedAudioMs: Math.round(bufferedAudioMs),
      eventLoopDelayMs: { p50: delayMs(0.5), p99: delayMs(0.99), worst: delayMs(1) },
      pssMiB: toMiB(await pssBytes()),
      rssMiB: toMiB(rss),
      frontHeapMiB: toMiB(heapUsed),
    };
  }

  #figures(): Figures {
    return {
      ...this.#server.figures,
      reasons: this.#server.readiness.reasons(),
      contexts: this.#dispatcher.openContexts,
      olderVoiceContexts: this.#dispatcher.voiceStatus().contextsOfOlderVoices,
      hungThreads: this.#dispatcher.voiceStatus().hungThreads,
      bufferedAudioMs: this.#dispatcher.unsentAudioMs,
      ledgerEntriesQueued: this.#ledger.queued,
      eventLoopDelay: (quantile) => this.#eventLoop.seconds(quantile),
      restarts: { ...this.#dispatcher.restarts, ledger: this.#ledger.restarts },
    };
  }

  /**
   * Takes nothing new, lets what is in flight end for at most `config.drainMsMax`, and closes every stage. A second
   * call ends the waiting.
   *
   * @returns false when a synthesis thread is still inside a model run: the process must then end by signal
   */
  drain(): Promise<boolean> {
    if (this.#drained === undefined) this.#drained = this.#drain();
    else this.#hurry();
    return this.#drained;
  }

  async #drain(): Promise<boolean> {
    this.#reload.close();
    this.#server.stopAccepting();
    const inFlight = this.#server.inFlight;
    if (inFlight > 0) this.#log.info({ inFlight }, 'draining');
    const hurried = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    const timer = setTimeout(() => this.#hurry(), this.#config.drainMsMax);
    await Promise.race([this.#server.whenIdle(), hurried]);
    clearTimeout(timer);
    this.#server.close();
    const clean = await this.#dispatcher.close(this.#bounds.stepEndMsMax);
    await this.#ledger.close();
    this.#store.close();
    // Last: until here it tells who asks that the service is draining.
    await this.#ops.close();
    this.#eventLoop.close();
    this.#heapTrim?.close();
    return clean;
  }
}
