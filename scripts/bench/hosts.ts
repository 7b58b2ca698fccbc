/** PostgreSQL in the place of SQLite, and what one database takes from several hosts. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { newWriter, openStore, type Store } from '../../src/store/ledger.js';
import { postgresStore } from '../../src/store/postgres/driver.js';
import type { LedgerEntry } from '../../src/store/store.js';
import { operate } from '../operator.js';
import { inScratch } from '../rig/machine.js';
import { PostgresServer } from '../rig/postgres.js';
import { withService, type Service, type ServiceOptions } from '../rig/service.js';
import { median } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';
import type { Load } from './load.js';
import { count, ms, row, type Row } from './report.js';
import { firstBytes, keysNeeded } from './scenarios.js';
import type { Spoken, Target } from './streams.js';

/** PostgreSQL may cost so much more than SQLite. */
const COST_MAX = 0.05;
/** The two stores take turns, so that a slow minute affects both. */
const TURNS = 12;
const ROUNDS_IN_A_TURN = 10;
const LOAD_TURNS = 4;
const LOAD_MS = 6_000;
/** Enough for all requests. */
const CREDITS = 100_000_000;

const inDatabase = <T>(
  use: (parts: { server: PostgresServer; url: string; folder: string }) => Promise<T>,
): Promise<T> =>
  inScratch(async (folder) => {
    const server = await PostgresServer.start();
    try {
      return await use({ server, url: (await server.database()).url, folder });
    } finally {
      await server.stop();
    }
  });

const percent = (ratio: number): string =>
  `${ratio < 1 ? '-' : '+'}${Math.abs((ratio - 1) * 100).toFixed(1)} %`;

/** The same requests to two services, one on each store. */
export const measureStores = (
  load: Load,
  options: ServiceOptions,
  { format, voice }: Spoken,
): Promise<Row[]> =>
  inDatabase(({ server, url }) =>
    withService(options, (onSqlite) =>
      withService({ ...options, env: { ...options.env, STORE_URL: url } }, async (onPostgres) => {
        const storeOf = async (service: Service) => ({
          target: { port: service.port, voice, format, keys: await service.makeKeys(keysNeeded, CREDITS) },
          firstMs: [] as number[],
          speech: [] as number[],
        });
        const [sqlite, postgres] = [await storeOf(onSqlite), await storeOf(onPostgres)];
        const inTurns = async (turns: number, measure: (store: typeof sqlite) => Promise<void>) => {
          for (let turn = 0; turn < turns; turn++)
            for (const store of turn % 2 === 0 ? [postgres, sqlite] : [sqlite, postgres])
              await measure(store);
        };
        for (const { target } of [sqlite, postgres]) await firstBytes(load, target, ROUNDS_IN_A_TURN);
        await inTurns(TURNS, async ({ firstMs, target }) => {
          firstMs.push(...(await firstBytes(load, target, ROUNDS_IN_A_TURN)));
        });
        const throughput = (target: Target, durationMs: number) =>
          load.call('throughput', { target, text: texts.throughputText, connections: 16, durationMs });
        for (const { target } of [sqlite, postgres]) await throughput(target, 1_000);
        const entries = async () =>
          Number(
            (await server.execute('test1', 'SELECT count(*) AS count FROM syrinx.ledger'))[0]?.['count'],
          );
        let [cpuMs, written] = [0, 0];
        await inTurns(LOAD_TURNS, async ({ speech, target }) => {
          const [cpuBeforeMs, entriesBefore] = [server.cpuMs(), await entries()];
          speech.push(await throughput(target, LOAD_MS));
          if (target !== postgres.target) return;
          cpuMs += server.cpuMs() - cpuBeforeMs;
          written += (await entries()) - entriesBefore;
        });
        const [sqliteMs, postgresMs] = [median(sqlite.firstMs), median(postgres.firstMs)];
        const [sqliteSpeech, postgresSpeech] = [median(sqlite.speech), median(postgres.speech)];
        return [
          row(
            'First audio, one sentence, PostgreSQL and SQLite',
            `p50 ${ms(postgresMs)} and ${ms(sqliteMs)} (${percent(postgresMs / sqliteMs)})`,
            `within ${COST_MAX * 100} %`,
            postgresMs <= sqliteMs * (1 + COST_MAX),
          ),
          row(
            'Throughput, 16 requests at a time, PostgreSQL and SQLite',
            `${postgresSpeech.toFixed(0)} and ${sqliteSpeech.toFixed(0)} s of speech a second (${percent(postgresSpeech / sqliteSpeech)})`,
            `within ${COST_MAX * 100} %`,
            postgresSpeech >= sqliteSpeech * (1 - COST_MAX),
          ),
          row(
            'CPU of PostgreSQL for an entry of that host',
            `${ms(cpuMs / Math.max(1, written))} (${(written / ((LOAD_TURNS * LOAD_MS) / 1_000)).toFixed(1)} entries a second)`,
          ),
        ];
      }),
    ),
  );

const HOSTS = [1, 3, 8] as const;
const BATCHES = [1, 16, 64] as const;
const ACCOUNTS = 48;
const COMMIT_MS = 4_000;
const IDLE_MS = 8_000;

const entryOf = (writer: number, entry: number): LedgerEntry => {
  const id = 1 + (entry % ACCOUNTS);
  return {
    ...{
      writer,
      entry,
      accountId: id,
      keyId: id,
      requestId: `${writer}-${entry}`,
      kind: 'usage',
      amount: -70,
    },
    ...{ characters: 70, voice: 'wren', audioMs: 5_000, beginsRequest: true, atMs: Date.now() },
  };
};

const makeAccounts = (url: string, folder: string): Promise<void> =>
  operate(
    folder,
    async (administration) => {
      for (let i = 0; i < ACCOUNTS; i++) await administration.createKey(null, CREDITS);
    },
    url,
  );

/** Hosts that commit without a pause, with so many entries in each commit. */
const commitAll = async (url: string, folder: string, hosts: number, batch: number, durationMs: number) => {
  let [commits, entries] = [0, 0];
  const endMs = performance.now() + durationMs;
  const driver = postgresStore(url, folder, limits);
  await Promise.all(
    Array.from({ length: hosts }, async () => {
      const number = newWriter();
      const writer = driver.startWriter(number);
      for (let next = 1; performance.now() < endMs; next += batch) {
        const result = await writer.commit(
          Array.from({ length: batch }, (_, i) => entryOf(number, next + i)),
        );
        if (!result.ok) throw new Error(`a commit failed: ${result.message}`);
        commits += 1;
        entries += batch;
      }
      await writer.end();
    }),
  );
  return { commits, entries };
};

/** What a database does for hosts on which no one speaks: they ask for changes, and show that they live. */
const idleCpuShare = async (server: PostgresServer, url: string, folder: string, hosts: number) => {
  const log = createLog('silent', limits);
  const stores: Store[] = [];
  for (let i = 0; i < hosts; i++)
    stores.push(await openStore(postgresStore(url, join(folder, String(i)), limits), limits, log));
  const before = server.cpuMs();
  await sleep(IDLE_MS);
  const cpuMs = server.cpuMs() - before;
  for (const store of stores) await store.close();
  return cpuMs / IDLE_MS / hosts;
};

/** Each measurement has a database of its own: one that is full of replaced rows is slower until PostgreSQL clears them away. */
export const measureLedger = (): Promise<Row[]> =>
  inDatabase(async ({ folder, server }) => {
    const rows: Row[] = [];
    for (const hosts of HOSTS)
      for (const batch of BATCHES) {
        const { url } = await server.database();
        await makeAccounts(url, folder);
        await commitAll(url, folder, hosts, batch, COMMIT_MS / 4);
        const before = server.cpuMs();
        const startedMs = performance.now();
        const { commits, entries } = await commitAll(url, folder, hosts, batch, COMMIT_MS);
        const cpuMs = server.cpuMs() - before;
        const perSecond = (entries / (performance.now() - startedMs)) * 1_000;
        rows.push(
          row(
            `${hosts} host${hosts === 1 ? '' : 's'}, ${batch} entr${batch === 1 ? 'y' : 'ies'} in a commit`,
            `${count(Math.round(perSecond))} entries a second; ${ms(cpuMs / commits)} of PostgreSQL's CPU for a commit, ${count(Math.round((entries / cpuMs) * 1_000))} entries for a second of it`,
          ),
        );
      }
    const { url } = await server.database();
    const share = await idleCpuShare(server, url, folder, HOSTS.at(-1)!);
    rows.push(row('CPU of PostgreSQL for a host without speech', `${ms(share * 1_000)} a second`));
    return rows;
  });
