/**
 * The composition root: builds every stage, starts them in order, and closes them in reverse order.
 *
 *   built --start--> serving --drain--> closed
 *
 * Nothing else wires stages together.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createAdmission, phrases } from './accounts/admission.js';
import { BrowserTokens } from './accounts/browser-tokens.js';
import { openWithKeys, type OpeningParts } from './accounts/opening.js';
import type { Store } from './store/ledger.js';
import { storeAt } from './store/driver.js';
import type { Config } from './config.js';
import { Console } from './console/console.js';
import { liveView } from './console/live.js';
import { History } from './history.js';
import { RecentRequests } from './recent-requests.js';
import { ConsoleRefusal } from './console/refusal.js';
import { openDialects } from './dialects/dialects.js';
import { Costs } from './speech/costs.js';
import { Dispatcher } from './speech/dispatcher.js';
import { CertificateError, readCertificate, warnOfCertificate } from './front/certificate.js';
import { chooseDevice, logDevice } from './threads/device.js';
import { shareEspeakData } from './threads/espeak-data.js';
import { lexiconFolder, Lexicons } from './threads/lexicons.js';
import { endReaders } from './threads/reader.js';
import { addHungPack, readVoices, type Voices } from './threads/voices.js';
import { VoiceReload, logFindings } from './threads/reload.js';
import type { Readiness } from './front/specification.js';
import { createServer, type Listening, type Server } from './front/server.js';
import { describeFault } from './fault.js';
import { limits, type Bounds } from './limits.js';
import type { ProcessLog } from './log.js';
import { readMachine } from './machine.js';
import { Metrics, type Figures } from './metrics.js';
import { EventLoopDelay, heapBytes, HeapTrim, pssBytes, residentBytes } from './process.js';
import { OpsServer } from './ops/ops-server.js';
import { logPlan, planConfigOf, planFor, type Plan } from './plan.js';
import { checkReload, readingBounds } from './plan-reload.js';

export interface AppParts {
  readonly config: Config;
  readonly log: ProcessLog;
  /** Receives the key that the first start on an empty store makes; the key is shown only this once. */
  readonly onFirstKey: (key: string) => void;
  /** Called while the start waits for its database, and with `null` when it waits no more. */
  readonly onStoreWait?: NonNullable<OpeningParts['onStoreWait']>;
  /** Aborted: a start in progress reads no more lexicons, and rejects with the reason if it still reads voices. */
  readonly stopping?: AbortSignal;
  /** Entries of the threads; a test can set its own. */
  readonly packsEntry?: URL;
  readonly synthesisEntry?: URL;
  readonly actorEntry?: URL;
  readonly administrationEntry?: URL;
}

/** Where a start that succeeded listens. */
export interface Started extends Listening {
  readonly app: App;
  readonly opsPort: number;
  /** `null` if the console is off. */
  readonly consolePort: number | null;
  /** One-time link for the console's first operator; `null` if there is one, or the console is off. */
  readonly claimUrl: string | null;
}

interface Stages {
  readonly log: ProcessLog;
  readonly config: Config;
  readonly bounds: Bounds;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly lexicons: Lexicons;
  readonly reload: VoiceReload;
  readonly server: Server;
  readonly ops: OpsServer;
  /** `null`: off. */
  readonly console: Console | null;
  /** Of the console. */
  readonly history: History | null;
}

export class App {
  readonly #stages: Stages;
  readonly #eventLoop = new EventLoopDelay();
  #heapTrim: HeapTrim | undefined;
  #drained: Promise<boolean> | undefined;
  #endWait: () => void = () => undefined;

  private constructor(stages: Stages) {
    this.#stages = stages;
  }

  /**
   * Resolves when the service listens.
   *
   * @throws {CertificateError} the certificate or its key cannot be used
   * @throws {MachineError} the machine is too small for the worst case
   * @throws {VoicePackError} the default voices are damaged, or there are none
   * @throws {StoreError} the data folder or the store cannot be used
   * @throws {ListenError} the service cannot listen on an address
   */
  static async start(parts: AppParts): Promise<Started> {
    /** Set once everything is loaded and the service listens. */
    let serving: Readiness | null = null;
    let reason = 'voices are loading';
    const onStoreWait: NonNullable<AppParts['onStoreWait']> = (fault) => {
      reason = fault === null ? 'voices are loading' : phrases[fault];
      parts.onStoreWait?.(fault);
    };
    const readiness: Readiness = {
      reasons: () => serving?.reasons() ?? [reason],
      warnings: () => serving?.warnings() ?? [],
    };
    const metrics = new Metrics();
    const { opsHost: host, opsNames: names, opsPort: port } = parts.config;
    const ops = await OpsServer.listen({
      host,
      names,
      port,
      metrics,
      readiness,
      bounds: limits,
      log: parts.log,
    });
    try {
      const app = await App.#load({ ...parts, onStoreWait }, metrics, ops);
      const listening = await app.#listen();
      // Not earlier: a caller that sees the service ready may send speech, or stop the process that this one replaces.
      serving = app.#stages.server.readiness;
      metrics.watch(() => app.#figures());
      app.#stages.history?.watch(() => app.#figures());
      return { app, opsPort: ops.port, claimUrl: await app.#claimUrl(), ...listening };
    } catch (error) {
      await ops.close();
      throw error;
    }
  }

  /** Builds everything except the ops listener, ready to serve. */
  static async #load(parts: AppParts, metrics: Metrics, ops: OpsServer): Promise<App> {
    const { config, log } = parts;
    const certificate = config.tls === null ? null : readCertificate(config.tls);
    if (certificate !== null) warnOfCertificate(certificate, log);
    const packsEntry = parts.packsEntry ?? new URL('../workers/packs.js', import.meta.url);
    const { modelsDir } = config;
    const packsData = { modelsDir, cacheDir: join(config.dataDir, 'voices'), bounds: limits };
    const [voices, device] = await Promise.all([
      readVoices(packsData, packsEntry, parts.stopping),
      chooseDevice(config, new URL('../workers/device.js', import.meta.url), limits.deviceTrialMsMax),
      shareEspeakData(),
    ]);
    logDevice(device, log);
    logFindings(voices.findings, log);
    const folder = lexiconFolder(config.dataDir);
    const planned = planConfigOf(config, device.provider, existsSync(folder));
    if (config.synthesisThreadsGiven && planned.synthesisThreads < config.synthesisThreads)
      log.warn('SYNTHESIS_THREADS counts as 1: two threads that use WebGPU at once would end the process');
    let plan: Plan;
    try {
      plan = planFor(planned, readMachine(), voices.packs);
    } catch (error) {
      voices.release();
      throw error;
    }
    logPlan(plan, planned, voices.packs.length, log);
    const { bounds, gpu, packsLoadedMax, synthesisThreads } = plan;
    const lexicons = new Lexicons({
      ...{ folder, bounds, log, entry: new URL('../workers/lexicons.js', import.meta.url) },
    });
    const lexiconsRead = lexicons.reload();
    parts.stopping?.addEventListener('abort', () => void lexicons.close(), { once: true });
    if (parts.stopping?.aborted === true) void lexicons.close();
    // First: its threads load while the store opens, which waits for the disk.
    const dispatcher = new Dispatcher({
      lexicons,
      costs: await Costs.read(join(config.dataDir, 'costs.json')),
      config: { ...config, gpu, synthesisThreads, executionProvider: device.provider },
      voices,
      packsLoadedMax,
      bounds,
      log,
      metrics,
      synthesisEntry: parts.synthesisEntry ?? new URL('../workers/synthesis.js', import.meta.url),
      actorEntry: parts.actorEntry ?? new URL('../workers/actors.js', import.meta.url),
    });
    let store: Store | undefined;
    let console: Console | null = null;
    let history: History | null = null;
    let app: App;
    try {
      const driver = storeAt(config, bounds);
      const opened = await openWithKeys({ ...parts, ...config, driver, bounds });
      ({ store } = opened);
      const admission = createAdmission({
        reader: store.reader,
        ledger: store.ledger,
        reservations: store.reservations,
        bounds,
        creditsPerCharacter: config.creditsPerCharacter,
        clock: Date.now,
        log,
      });
      const readiness: Readiness = {
        reasons: () => [...dispatcher.threads.faults(), ...admission.faults()],
        warnings: () => dispatcher.threads.generations.warnings(),
      };
      const browserTokens = config.browserPort === null ? null : new BrowserTokens(config.dataDir, bounds);
      const server = createServer({
        config,
        certificate,
        bounds,
        speech: dispatcher,
        admission,
        readiness,
        log,
        metrics,
        further: (shared) =>
          openDialects(
            config,
            { config, certificate, shared, speech: dispatcher, admission, bounds },
            browserTokens,
            opened.wyomingPayer,
          ),
      });
      const readNext = async (): Promise<Voices> => {
        const { loadedPacks } = dispatcher.threads.generations.current;
        const within = readingBounds(plan, planned, loadedPacks);
        const next = await readVoices({ ...packsData, bounds: within }, packsEntry);
        try {
          checkReload(plan, planned, loadedPacks, next.packs);
          return next;
        } catch (error) {
          next.release();
          throw error;
        }
      };
      dispatcher.threads.generations.on('pack-hung', (stamp, fault) => {
        try {
          addHungPack(packsData.cacheDir, stamp, fault);
        } catch (error) {
          log.error(describeFault(error), 'a voice pack that hangs threads will be read again');
        }
      });
      const reload = new VoiceReload({
        generations: dispatcher.threads.generations,
        read: readNext,
        onRequest: () => void lexicons.reload(),
        log,
      });
      if (config.console !== null && plan.hasConsole) {
        history = await History.open(bounds, join(config.dataDir, 'history.json'), log);
        const past = { history, requests: new RecentRequests(bounds) };
        metrics.keep(past);
        console = new Console({
          ...{ admission, bounds, browserTokens, certificate, lexicons, log, metrics, past, reload, server },
          config: { ...config, console: config.console },
          ledger: store.ledger,
          speech: dispatcher,
          generation: () => dispatcher.threads.generations.current,
          speechCpu: () => dispatcher.figures.speechCpu,
          live: () =>
            liveView(
              app.#figures(),
              metrics.lateChunks,
              past.history,
              dispatcher.threads,
              readiness.warnings(),
            ),
          administrationEntry:
            parts.administrationEntry ?? new URL('../workers/administration.js', import.meta.url),
        });
      }
      const made = {
        log,
        config,
        bounds,
        store,
        dispatcher,
        lexicons,
        reload,
        server,
        ops,
        console,
        history,
      };
      app = new App(made);
    } catch (error) {
      // A thread must not be ended while it loads.
      await dispatcher.threads.ready().catch(() => undefined);
      await lexicons.close();
      await dispatcher.close(bounds.stepEndMsMax);
      await console?.close();
      await store?.close();
      throw error;
    }
    try {
      await dispatcher.threads.ready();
      await lexiconsRead;
    } catch (error) {
      await app.drain();
      throw error;
    }
    return app;
  }

  async #listen(): Promise<Listening & Pick<Started, 'consolePort'>> {
    const { bounds, console, dispatcher, log, server } = this.#stages;
    this.#heapTrim = await HeapTrim.start({ bounds, log, quietMs: () => dispatcher.scheduler.quietMs });
    try {
      const listening = await server.listen();
      return { ...listening, consolePort: (await console?.listen(listening)) ?? null };
    } catch (error) {
      await this.drain();
      throw error;
    }
  }

  /** Without it the service works too: `npm run console -- link` makes a link at any time. */
  async #claimUrl(): Promise<string | null> {
    try {
      return (await this.#stages.console?.claimUrl()) ?? null;
    } catch (error) {
      if (!(error instanceof ConsoleRefusal)) throw error;
      this.#stages.log.error({ reason: error.message }, 'there is no link for the console now');
      return null;
    }
  }

  /** Reads the certificate and its key again, for new connections. An unusable one changes nothing. */
  renewCertificate(): void {
    if (this.#stages.config.tls === null) return;
    try {
      const certificate = readCertificate(this.#stages.config.tls);
      if (!this.#stages.server.renewCertificate(certificate)) return;
      this.#stages.console?.renewCertificate(certificate);
      this.#stages.log.info({ validTo: certificate.validTo }, 'new connections get the new TLS certificate');
      warnOfCertificate(certificate, this.#stages.log);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      this.#stages.log.error({ reason: error.message }, 'the TLS certificate stays as it is');
    }
  }

  /** Reads the voices and the lexicons again, without dropping a stream. A failure keeps the current ones; see the log. */
  reloadVoices(): void {
    this.#stages.reload.request();
  }

  /** The ids of the voices, the default first. */
  get voices(): readonly string[] {
    return this.#stages.dispatcher.threads.generations.current.voices.speakerIds;
  }

  /** The current state, for the log. */
  async status() {
    const {
      reasons,
      streams,
      sockets,
      contexts,
      bufferedBytes,
      bufferedAudioMs,
      capacityRatio,
      restarts,
      eventLoopDelay,
    } = this.#figures();
    const toMiB = (bytes: number | null) => bytes && Math.round(bytes / 2 ** 20);
    const delayMs = (quantile: 0.5 | 0.99 | 1) => Math.round(eventLoopDelay(quantile) * 1e4) / 10;
    return {
      ready: reasons.length === 0,
      reasons,
      requestsInFlight: this.#stages.server.inFlight,
      streams: Object.fromEntries(streams),
      sockets,
      openContexts: contexts,
      runningSegments: this.#stages.dispatcher.scheduler.runningSegments,
      ...this.#stages.dispatcher.threads.generations.status(),
      threads: this.#stages.dispatcher.threads.counts,
      threadsWhole: this.#stages.dispatcher.threads.isWhole,
      threadRestarts: restarts,
      ledgerEntriesQueued: this.#stages.store.ledger.queued,
      bufferedBytes,
      bufferedAudioMs: Math.round(bufferedAudioMs),
      capacityRatio: Math.round(capacityRatio * 1000) / 1000,
      eventLoopDelayMs: { p50: delayMs(0.5), p99: delayMs(0.99), worst: delayMs(1) },
      pssMiB: toMiB(await pssBytes()),
      rssMiB: toMiB(residentBytes()),
      frontHeapMiB: toMiB(heapBytes()),
    };
  }

  #figures(): Figures {
    const { generations } = this.#stages.dispatcher.threads;
    const { contextsOfOlderVoices, hungThreads } = generations.status();
    const { bufferedBytes, sockets, streams } = this.#stages.server.figures;
    const ofConsole = this.#stages.console?.figures;
    return {
      sockets,
      streams: new Map([...streams, ...(ofConsole?.streams ?? [])]),
      bufferedBytes: bufferedBytes + (ofConsole?.bufferedBytes ?? 0),
      reasons: this.#stages.server.readiness.reasons(),
      contexts: this.#stages.dispatcher.openContexts,
      olderVoiceContexts: contextsOfOlderVoices,
      hungThreads,
      gpuIsLost: generations.gpuIsLost,
      voicePacksRefused: generations.current.findings.length,
      voicePacks: generations.packs(),
      ...this.#stages.dispatcher.figures,
      ledgerEntriesQueued: this.#stages.store.ledger.queued,
      ledgerEntriesRefused: this.#stages.store.entriesRefused,
      logLinesLost: this.#stages.log.linesLost,
      eventLoopDelay: (quantile) => this.#eventLoop.seconds(quantile),
      restarts: {
        ...this.#stages.dispatcher.threads.restarts,
        ledger: this.#stages.store.ledger.restarts,
        administration: this.#stages.console?.restarts ?? 0,
      },
    };
  }

  /**
   * Stops accepting, waits up to `config.drainMsMax` for work in flight, and closes every stage. A second call ends the
   * wait.
   *
   * @returns false if a thread is still inside a model run, or a call of the system: the process must then end by signal
   */
  drain(): Promise<boolean> {
    if (this.#drained === undefined) this.#drained = this.#drain();
    else this.#endWait();
    return this.#drained;
  }

  async #drain(): Promise<boolean> {
    this.#stages.reload.close();
    await this.#stages.lexicons.close();
    const { console, server } = this.#stages;
    server.stopAccepting();
    console?.stopAccepting();
    const inFlight = server.inFlight + (console?.inFlight ?? 0);
    if (inFlight > 0) this.#stages.log.info({ inFlight }, 'draining');
    const waitEnded = new Promise<void>((resolve) => {
      this.#endWait = resolve;
    });
    const timer = setTimeout(() => this.#endWait(), this.#stages.config.drainMsMax);
    await Promise.race([Promise.all([server.whenIdle(), console?.whenIdle()]), waitEnded]);
    clearTimeout(timer);
    const cut = server.inFlight + (console?.inFlight ?? 0);
    if (cut > 0) this.#stages.log.warn({ inFlight: cut }, 'the drain is over: what is left is cut');
    server.close();
    await console?.close();
    const clean = await this.#stages.dispatcher.close(this.#stages.bounds.stepEndMsMax);
    await this.#stages.history?.close();
    const storeEnded = await this.#stages.store.close();
    // Last: until here it answers that the service is draining.
    await this.#stages.ops.close();
    this.#eventLoop.close();
    this.#heapTrim?.close();
    return (await endReaders()) && clean && storeEnded;
  }
}
