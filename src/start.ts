/** Configuration, signals and exit code: with `main.ts`, the only file that touches the process. */
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { App } from './app.js';
import { writeFirstKey, writeSecret } from './accounts/secret-file.js';
import { consoleUrl, urlOf } from './address.js';
import { StoreError, type StoreFault } from './store/store.js';
import { parseCommandLine, printable, readArguments } from './command-line.js';
import { ConfigError, readConfig } from './config.js';
import { describeFault } from './fault.js';
import { CertificateError } from './front/certificate.js';
import { ListenError } from './front/listener.js';
import { endReaders, UnansweredError } from './threads/reader.js';
import { VoicesHangError } from './threads/synthesis-pool.js';
import { MachineError } from './plan.js';
import { createLog, loadTerminal, type ProcessLog } from './log.js';
import { writePidFile } from './ops/pid-file.js';
import { VoicePackError } from './threads/voices.js';
import { limits } from './limits.js';

const usage = `Usage: syrinx              start the service
       syrinx COMMAND      keys, usage, store, voices, console, phonemes, say, status, reload, stop or soak: \`syrinx keys --help\` explains it

  -h, --help               print this
      --version            print the version

Variables configure the service: README.md lists them. SIGTERM and SIGINT end it when its work in flight is done; SIGHUP
reloads voices, lexicons and the TLS certificate; SIGUSR2 writes a status line to the log.
`;

/** Faults of the environment: one line. Any other error is a defect and keeps its stack. */
const expected = [
  ConfigError,
  CertificateError,
  MachineError,
  StoreError,
  ListenError,
  VoicePackError,
  VoicesHangError,
  UnansweredError,
];

/** Exists once the configuration is read. */
let processLog: ProcessLog | undefined;

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

const fail = async (error: unknown): Promise<never> => {
  const canExit = ((await processLog?.end()) ?? true) && (await endReaders());
  // A terminal that takes nothing blocks the write below: the default actions of the signals still end the process.
  for (const signal of signals) process.removeAllListeners(signal);
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
  const isExpected = expected.some((kind) => error instanceof kind);
  const remedy = error instanceof VoicePackError ? '; restore it from the repository, or set MODELS_DIR' : '';
  process.stderr.write(printable(`syrinx: ${isExpected ? message + remedy : stack}\n`));
  // An exit would wait for the hung thread.
  if (!canExit || error instanceof VoicesHangError) process.kill(process.pid, 'SIGKILL');
  process.exit(1);
};

/** Under npm, Ctrl-C arrives twice: npm passes on the signal that the whole process group already got. */
const SIGNAL_ECHO_MS = 250;

const main = async (): Promise<void> => {
  await readArguments('syrinx', usage, (args) => parseCommandLine({ args }));
  // Without this, onnxruntime reports every session and run to its vendor. It must be set before a thread loads it.
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  // For all threads. By default V8 lets a small heap grow to four times its live size before a full collection: that
  // takes an hour of traffic and looks like a leak. Growth by less than 100 % costs throughput: buffers count, and
  // whole files fill them.
  setFlagsFromString('--heap-growing-percent=100');
  const config = readConfig(process.env);
  const terminal = await loadTerminal();
  const log = createLog(config.logLevel, limits, terminal?.readable);
  processLog = log;
  const { promise: started, resolve: onStarted } = Promise.withResolvers<App>();
  let hasStarted = false;
  /** It has nothing to finish then, and may wait for hours. */
  let waitsForStore = false;
  let isStopping = false;
  const stopping = new AbortController();

  let removePidFile = (): void => undefined;
  /** Why the service stops: a signal, or an error. */
  let reason = '';

  /** The last line of the log. @returns whether the process can exit */
  const endLog = (): Promise<boolean> => {
    log.info({ reason }, 'stopped');
    return log.end();
  };

  /** Ends the process without an exit, which would wait for threads inside a model run or a write of the log. */
  const endBySignal = (): void => {
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, 'SIGTERM');
  };

  /** The only way out: ending a thread inside a model run would abort the process. Never rejects. */
  const stop = async (exitCode: number): Promise<void> => {
    try {
      // A start in progress has nothing to drain: stop after it. One that still reads voices ends by itself.
      const isClean = await (await started).drain();
      removePidFile();
      const canExit = await endLog();
      if (isClean && canExit) process.exit(exitCode);
      if (exitCode === 0) {
        endBySignal();
        return;
      }
    } catch (error) {
      log.fatal(describeFault(error), 'the drain failed');
      await endLog();
    }
    // A supervisor takes SIGTERM for a requested end and would not start the service again.
    process.kill(process.pid, 'SIGKILL');
  };

  const reload = (): void =>
    void started.then((app) => {
      app.renewCertificate();
      app.reloadVoices();
    });

  for (const signal of signals) {
    let receivedAtMs = Number.NEGATIVE_INFINITY;
    process.on(signal, () => {
      // A closed window sends SIGHUP too, and standard output is then no terminal. Without this, the service would keep
      // running without its window and keep the ports.
      const isFromTerminal = terminal !== null && !isatty(1);
      if (signal === 'SIGHUP' && !isFromTerminal) {
        reload();
        return;
      }
      const sinceMs = performance.now() - receivedAtMs;
      receivedAtMs = performance.now();
      if (sinceMs < SIGNAL_ECHO_MS) return;
      log.info({ signal }, 'stopping');
      reason ||= isFromTerminal && signal === 'SIGHUP' ? 'its terminal was closed' : signal;
      if ((isStopping || waitsForStore) && !hasStarted) void endLog().then(endBySignal);
      isStopping = true;
      stopping.abort();
      void stop(0);
    });
  }
  // The default action would end the process without a drain.
  process.on('SIGUSR2', () => void started.then(async (app) => log.info(await app.status(), 'status')));
  // Node's warnings of all threads go there: a full disk must not end the service.
  process.stderr.on('error', () => undefined);
  process.on('uncaughtException', (error) => {
    log.fatal(describeFault(error), 'uncaught exception');
    reason ||= `uncaught exception: ${error.message}`;
    void stop(1);
  });

  let firstKey: string | null = null;
  const onFirstKey = (key: string): void => {
    if (terminal === null) {
      log.info({ path: writeFirstKey(config.dataDir, key) }, 'first API key written to a file');
      return;
    }
    firstKey = key;
    // At once: a start that fails later must not lose the key.
    log.print?.(terminal.firstKeyText(key));
  };

  const startedMs = performance.now();
  const onStoreWait = (fault: StoreFault | null): void => {
    waitsForStore = fault !== null;
    if (isStopping && waitsForStore) void endLog().then(endBySignal);
  };
  const start = App.start({ ...{ config, log, onFirstKey, onStoreWait }, stopping: stopping.signal });
  const { app, claimUrl, ...ports } = await start.catch(async (error: unknown): Promise<never> => {
    if (error !== stopping.signal.reason) throw error;
    if ((await endLog()) && (await endReaders())) process.exit(0);
    endBySignal();
    return new Promise(() => undefined);
  });
  const startMs = Math.round(performance.now() - startedMs);
  const { host, opsHost } = config;
  // A full disk is no reason not to speak.
  const tryToWrite = (write: () => void, loss: string): void => {
    try {
      write();
    } catch (error) {
      log.warn(describeFault(error), loss);
    }
  };
  tryToWrite(() => {
    const opsUrl = urlOf('http', opsHost, ports.opsPort);
    const consoleAt = consoleUrl(config, ports.consolePort ?? undefined);
    removePidFile = writePidFile(config.dataDir, { port: ports.port, opsUrl, consoleUrl: consoleAt });
  }, 'there is no PID file: `npm run service` does not find this process');
  const consoleHost = config.console?.host;
  if (terminal === null) {
    if (claimUrl !== null)
      tryToWrite(() => {
        const path = writeSecret(join(config.dataDir, 'console-link'), claimUrl);
        log.info({ path }, 'link to the console written to a file: it is good for 30 minutes');
      }, 'the link to the console could not be written to a file: `npm run console -- link` makes another');
    const { voices, executionProviders } = await app.status();
    log.info(
      { host, ...ports, tls: config.tls !== null, opsHost, consoleHost, voices, executionProviders, startMs },
      'listening',
    );
  } else if (log.isLevelEnabled('info')) {
    log.print?.(terminal.welcome({ config, ...ports, claimUrl, voices: app.voices, firstKey }));
  } else if (claimUrl !== null) {
    log.print?.(terminal.claimText(claimUrl));
  }
  hasStarted = true;
  onStarted(app);
};

main().catch(fail);
