/** What is done to three hosts and their database, and how often in a run of full length. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dice } from '../../rig/random.js';
import { fakeClock } from '../surroundings/clock.js';
import type { Named } from '../scenario.js';
import type { Round } from './round.js';

const SLOW_MS = 150;

export interface HostsFault extends Named {
  /** Of the scenario, after `hosts-`. */
  readonly id: string;
  readonly defaultCount: number;
  /** What is missing here; absent: nothing is. */
  readonly lacks?: () => string | null;
  readonly inject: (round: Round, dice: Dice) => Promise<void>;
}

const cut = (id: string, time: string, awayMs: number, defaultCount: number): HostsFault => ({
  id: `cut-${id}`,
  fault: `database cut off for ${time}`,
  injected: 'all lines between hosts and database carry nothing, then everything that was sent',
  defaultCount,
  inject: (round) =>
    round.withoutDatabase(
      awayMs,
      () => round.hosts.all.forEach(({ line }) => line.cut()),
      () => round.hosts.all.forEach(({ line }) => line.heal()),
    ),
});

export const faults: readonly HostsFault[] = [
  {
    id: 'kill-host',
    fault: 'SIGKILL of a host',
    injected:
      'one of three hosts behind the proxy, in traffic, half of the time cut off from the database before; it starts again with its data folder',
    defaultCount: 60,
    inject: async (round, dice) => {
      const host = dice.pick(round.hosts.all);
      if (dice.chance(0.5)) {
        // Then only its journal has its last entries.
        host.line.cut();
        await sleep(dice.below(2_000));
      }
      await round.kill(host);
      host.line.heal();
      await sleep(dice.below(500));
      await round.hosts.startAgain(host);
      await round.serveAgain();
    },
  },
  {
    id: 'kill-postgresql',
    fault: 'SIGKILL of PostgreSQL',
    injected: 'in traffic and in streams; it starts again after up to five seconds',
    defaultCount: 28,
    inject: (round, dice) =>
      round.withoutDatabase(
        dice.below(5_000),
        () => round.hosts.database.signal('SIGKILL'),
        () => round.hosts.database.run(),
      ),
  },
  cut('1s', '1 s', 1_000, 10),
  cut('10s', '10 s', 10_000, 5),
  cut('5min', '5 min', 300_000, 1),
  {
    id: 'reset',
    fault: 'connections reset',
    injected: 'all connections to the database, and new ones for four seconds',
    defaultCount: 5,
    inject: (round) =>
      round.withoutDatabase(
        4_000,
        () => round.hosts.all.forEach(({ line }) => line.reset()),
        () => round.hosts.all.forEach(({ line }) => line.heal()),
      ),
  },
  {
    id: 'slow',
    fault: 'database slow',
    injected: `every byte takes ${SLOW_MS} ms in each direction, for ten seconds: each host must still admit speech`,
    defaultCount: 3,
    inject: async (round) => {
      for (const { line } of round.hosts.all) line.delayMs = SLOW_MS;
      await sleep(10_000);
      await round.serveAgain();
      for (const { line } of round.hosts.all) line.delayMs = 0;
    },
  },
  {
    id: 'failover',
    fault: 'failover',
    injected: 'SIGKILL of the primary; its synchronous standby is promoted, and takes the address',
    defaultCount: 5,
    inject: async (round) => {
      const standby = await round.hosts.database.startStandby();
      await round.withoutDatabase(
        0,
        () => round.hosts.failOver(standby),
        () => undefined,
      );
    },
  },
  {
    id: 'clock',
    fault: 'clock off by an hour',
    injected: 'one host starts with a clock that is an hour fast, or slow',
    defaultCount: 4,
    lacks: () => (fakeClock() === null ? 'faketime is not installed' : null),
    inject: async (round, dice) => {
      const host = dice.pick(round.hosts.all);
      const env = { FAKETIME: dice.pick(['+1h', '-1h']) };
      for (const clock of [{ ...fakeClock(), ...env }, {}]) {
        await host.service.stop();
        await round.hosts.startAgain(host, clock);
        await round.serveAgain();
        await sleep(1_000);
      }
    },
  },
];
