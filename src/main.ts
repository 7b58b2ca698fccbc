/** Configuration, signals and exit code: the only file that touches the process. */
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { App } from './app.js';
import { writeFirstKey } from './accounts/administration.js';
import { StoreError } from './store/store.js';
import { ConfigError, readConfig, type Config } from './config.js';
import { describeFault } from './fault.js';
import { CertificateError } from './front/certificate.js';
import { ListenError } from './front/listener.js';
import { VoicesHangError } from './threads/synthesis-pool.js';
import { MachineError } from './plan.js';
import { createLog, type ProcessLog } from './log.js';
import { VoicePackError } from './threads/voices.js';
import { limits } from './limits.js';

/** Faults of the environment: one line. Any other error is a defect and keeps its stack. */
const expected = [
  ConfigError,
  CertificateError,
  MachineError,
  StoreError,
  ListenError,
  VoicePackError,
  VoicesHangError,
];

/** Exists once the configuration is read. */
let processLog: ProcessLog | undefined;

const fail = async (error: unknown): Promise<never> => {
  await processLog?.end();
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
  const isExpected = expected.some((kind) => error instanceof kind);
  const remedy = error instanceof VoicePackError ? '; restore it from the repository, or set MODELS_DIR' : '';
  process.stderr.write(`syrinx: ${isExpected ? message + remedy : stack}\n`);
  // An exit would wait for the hung thread.
  if (error instanceof VoicesHangError) process.kill(process.pid, 'SIGKILL');
  process.exit(1);
};

const showFirstKey = (config: Config, log: ProcessLog) => (key: string) => {
  if (isatty(1)) {
    process.stdout.write(`\nYour first API key, shown this once:\n\n  ${key}\n\n`);
  } else {
    log.info({ path: writeFirstKey(config.dataDir, key) }, 'first API key written to a file');
  }
};

/** Under npm, Ctrl-C arrives twice: npm passes on the signal that the whole process group already got. */
const SIGNAL_ECHO_MS = 250;

const main = async (): Promise<void> => {
  // Without this, onnxruntime reports every session and run to its vendor. It must be set before a thread loads it.
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  // For all threads. By default V8 lets a small heap grow to four times its live size before a full collection: that
  // takes an hour of traffic and looks like a leak.
  setFlagsFromString('--heap-growing-percent=25');
  const config = readConfig(process.env);
  const log = createLog(config.logLevel, limits);
  processLog = log;
  const { promise: started, resolve: onStarted } = Promise.withResolvers<App>();
  let hasStarted = false;
  let isStopping = false;

  /** Ends the process without an exit, which would wait for threads that are inside a model run. */
  const endBySignal = async (): Promise<void> => {
    await log.end();
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, 'SIGTERM');
  };

  /** The only way out: ending a thread inside a model run would abort the process. Never rejects. */
  const stop = async (exitCode: number): Promise<void> => {
    try {
      // A start in progress has nothing to drain: stop after it.
      const isClean = await (await started).drain();
      await log.end();
      if (isClean) process.exit(exitCode);
      if (exitCode === 0) {
        await endBySignal();
        return;
      }
    } catch (error) {
      log.fatal(describeFault(error), 'the drain failed');
      await log.end();
    }
    // A supervisor takes SIGTERM for a requested end and would not start the service again.
    process.kill(process.pid, 'SIGKILL');
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    let receivedAtMs = Number.NEGATIVE_INFINITY;
    process.on(signal, () => {
      const sinceMs = performance.now() - receivedAtMs;
      receivedAtMs = performance.now();
      if (sinceMs < SIGNAL_ECHO_MS) return;
      log.info({ signal }, 'stopping');
      if (isStopping && !hasStarted) void endBySignal();
      isStopping = true;
      void stop(0);
    });
  }
  // The default action of these signals would end the process without a drain.
  process.on('SIGUSR2', () => void started.then(async (app) => log.info(await app.status(), 'status')));
  process.on('SIGHUP', () => {
    void started.then((app) => {
      app.renewCertificate();
      app.reloadVoices();
    });
  });
  process.on('uncaughtException', (error) => {
    log.fatal(describeFault(error), 'uncaught exception');
    void stop(1);
  });

  const startedMs = performance.now();
  const { app, port, opsPort } = await App.start({ config, log, onFirstKey: showFirstKey(config, log) });
  const startMs = Math.round(performance.now() - startedMs);
  const { host, opsHost } = config;
  const { voices, executionProviders } = await app.status();
  log.info(
    { host, port, tls: config.tls !== null, opsHost, opsPort, voices, executionProviders, startMs },
    'listening',
  );
  hasStarted = true;
  onStarted(app);
};

main().catch(fail);
