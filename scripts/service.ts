/** The services that run on a data folder: their state, a reload, an end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Health } from '../src/api/responses.js';
import { readConfig } from '../src/config.js';
import { runningServices, type RunningService } from '../src/ops/pid-file.js';
import { AdministrationError } from '../src/store/store.js';
import { program, runIfMain, UsageError, type CommandLine, type Terminal } from './command.js';
import { formatTable, formatTime } from './table.js';

const usage = `Usage: npm run service -- COMMAND [--port PORT]

  status [--json]   the services that run on DATA_DIR: process, state and warnings. Exit code 1 if none is ready
  reload            read the voices, the lexicons and the TLS certificate again, without dropping a stream
  stop              finish what is being spoken, within DRAIN_SECONDS, and end; returns when the process has ended

--port PORT chooses one of several services on DATA_DIR (default ./data), as during an upgrade. A service that is still
starting is not among them.
`;

const READY_MS_MAX = 5_000;
const LOOK_EVERY_MS = 100;

/** @throws {AdministrationError} none runs */
const servicesOf = ({ option }: CommandLine, { env }: Terminal): readonly RunningService[] => {
  const port = option('port');
  if (port !== null && !/^\d{1,5}$/.test(port))
    throw new UsageError(`--port is the port of the service, not "${port}"`);
  const { dataDir } = readConfig(env);
  const found = runningServices(dataDir);
  const chosen = found.filter((service) => port === null || service.port === Number(port));
  if (chosen.length > 0) return chosen;
  const others = found.map((service) => service.port).join(', ');
  throw new AdministrationError(
    port !== null && found.length > 0
      ? `No service on ${dataDir} has port ${port}: choose from ${others}`
      : `No service runs on ${dataDir}, or it is still starting: start it with \`npm start\`, or set DATA_DIR to the folder of the one you mean`,
  );
};

const send = ({ pid, port }: RunningService, signal: 'SIGHUP' | 'SIGTERM'): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH') return;
    if (code !== 'EPERM') throw error;
    throw new AdministrationError(
      `The service on port ${port} belongs to another user: run this command as that user`,
    );
  }
};

/** What its ops listener says of it. */
const healthOf = async ({ opsUrl }: RunningService): Promise<Health> => {
  try {
    const answer = await fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(READY_MS_MAX) });
    return (await answer.json()) as Health;
  } catch {
    return { status: 'not ready', reasons: [`${opsUrl}/readyz does not answer`] };
  }
};

const stateOf = ({ status, reasons = [] }: Health): string =>
  reasons.length === 0 ? status : `${status}: ${reasons.join(', ')}`;

export const service = program('service', usage, {
  status: {
    options: ['port'],
    flags: ['json'],
    run: async (line, terminal) => {
      const found = await Promise.all(
        servicesOf(line, terminal).map(async (running) => ({ running, health: await healthOf(running) })),
      );
      if (line.flag('json')) {
        const services = found.map(({ running: { pid, port, opsUrl, sinceMs }, health }) => ({
          ...{ port, pid, since: new Date(sinceMs).toISOString(), ops_url: opsUrl },
          ...{
            ready: health.status === 'ready',
            reasons: health.reasons ?? [],
            warnings: health.warnings ?? [],
          },
        }));
        terminal.out(`${JSON.stringify({ services }, null, 2)}\n`);
      } else {
        const rows = found.map(({ running: { pid, port, opsUrl, sinceMs }, health }) => [
          ...[String(port), String(pid), formatTime(sinceMs), opsUrl, stateOf(health)],
        ]);
        terminal.out(
          formatTable([['PORT', 'PROCESS', 'SINCE (UTC)', 'METRICS AND HEALTH', 'STATE'], ...rows], [0, 1]),
        );
        for (const { running, health } of found)
          for (const warning of health.warnings ?? [])
            terminal.out(`\nWarning of ${running.port}: ${warning}\n`);
      }
      if (!found.some(({ health }) => health.status === 'ready'))
        throw new AdministrationError('It is not ready for speech. Its log says more.');
    },
  },
  reload: {
    options: ['port'],
    run: (line, terminal) => {
      for (const running of servicesOf(line, terminal)) {
        send(running, 'SIGHUP');
        terminal.out(
          `The service on port ${running.port} reads its voices, lexicons and certificate again. Its log has the result.\n`,
        );
      }
    },
  },
  stop: {
    options: ['port'],
    run: async (line, terminal) => {
      const [running, ...others] = servicesOf(line, terminal);
      if (running === undefined) return;
      if (others.length > 0)
        throw new AdministrationError(
          `Several services run on this data folder: choose one with --port ${[running, ...others].map(({ port }) => port).join(' or ')}`,
        );
      send(running, 'SIGTERM');
      terminal.err(`The service on port ${running.port} finishes what it speaks ...\n`);
      while (running.isAlive()) await sleep(LOOK_EVERY_MS);
      terminal.out(`The service on port ${running.port} has stopped. Its log says why.\n`);
    },
  },
});

await runIfMain(import.meta.url, service);
