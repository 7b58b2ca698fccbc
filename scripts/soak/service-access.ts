/** What a soak does with the service before its load begins and after its load has ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { prefixOf } from '../../src/accounts/keys.js';
import { limits } from '../../src/limits.js';
import { storeAt, type StorePlace } from '../../src/store/driver.js';
import { connect } from '../../src/store/postgres/driver.js';
import { findDamage } from '../../src/store/postgres/verification.js';
import { verifyStore } from '../../src/store/sqlite/backup.js';
import { exchange, jsonOf, type Answer, type RequestParts } from '../rig/http.js';
import { readOpenFilesMax } from '../rig/process-facts.js';
import type { ServiceLog } from '../rig/service.js';
import type { Leftovers, LogFindings, StoreFindings } from './invariants.js';
import type { SoakOptions } from './options.js';

/** Why a soak cannot run on this machine, and what to do about it. */
export class SoakError extends Error {}

const ask = (baseUrl: string, request: RequestParts): Promise<Answer> => {
  const { hostname, port } = new URL(baseUrl);
  return exchange(Number(port || 80), request, { host: hostname });
};

export const fetchVoices = async (baseUrl: string, key: string): Promise<readonly string[]> => {
  const answer = await ask(baseUrl, { path: '/v1/tts/speakers', key });
  if (answer.status === 0) throw new SoakError(`no answer from ${baseUrl}`);
  if (answer.status !== 200) throw new SoakError(`${baseUrl} answers ${answer.status} to the key`);
  return (jsonOf(answer) as { speaker_ids: string[] }).speaker_ids;
};

/** Speaks once in each way, so that the service has loaded everything before it is measured. */
export const warm = async (baseUrl: string, key: string, voice: string): Promise<void> => {
  for (const encoding of ['mp3', 'opus', 'pcm'])
    await ask(baseUrl, {
      path: '/v1/tts',
      key,
      body: { text: 'Good morning.', voice, response_format: encoding },
    });
};

/** Besides sockets: files of the process and its threads, connections that are closing. */
const filesBesides = 200;

/** @throws {SoakError} when a process here may not have so many sockets open */
export const checkFiles = ({ sockets, contexts, streams, remote }: SoakOptions): void => {
  const max = readOpenFilesMax(process.pid);
  const needed = sockets + (contexts ?? 500) + 2 * streams + filesBesides;
  if (max === null || max >= needed) return;
  const side = remote === null ? 'the service and the load' : 'the load';
  throw new SoakError(
    `${side} need ${needed} open files, and may have ${max}: raise the limit (ulimit -n ${needed}) or take fewer --sockets`,
  );
};

/** For the service to notice that all clients have left. */
const waitMsMax = 10_000;

/** Waits until nothing is left, for a while. */
export const waitForLeftovers = async (read: () => Promise<Leftovers>): Promise<Leftovers> => {
  const endMs = performance.now() + waitMsMax;
  for (;;) {
    const leftovers = await read();
    const isOver = Object.values(leftovers).every((value) => value === null || value === 0);
    // For connections of the probes, and those that were just closed.
    await sleep(500);
    if (isOver || performance.now() > endMs) return leftovers;
  }
};

/** Of the service's log, in the report. */
const logLinesMax = 20;

export const logFindingsOf = (logs: readonly ServiceLog[]): LogFindings => {
  const sum = (pick: (log: ServiceLog) => number): number => logs.reduce((all, log) => all + pick(log), 0);
  const lines = logs.flatMap(({ dropLines, errorLines }) => [...errorLines, ...dropLines]);
  return {
    drops: sum(({ drops }) => drops),
    errors: sum(({ errors }) => errors),
    kept: lines.slice(0, logLinesMax).map((line) => line.slice(0, 500)),
  };
};

const tried = async <T>(read: () => T | Promise<T>): Promise<T | Error> => {
  try {
    return await read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
};

/** @returns the number of entries @throws when the store is damaged */
const verify = async ({ dataDir, storeUrl }: StorePlace): Promise<number> => {
  if (storeUrl === null) return verifyStore(dataDir, limits).entries;
  const connection = await connect(storeUrl, limits, false);
  try {
    const damage = await findDamage(connection);
    if (damage.length > 0) throw new Error(damage.join('; '));
    const session = await connection.session();
    const [row] = await session.query<{ count: number }>('SELECT count(*) AS count FROM ledger');
    return row?.count ?? 0;
  } finally {
    await connection.close();
  }
};

/** The store of a service that has ended, as its operator's commands read it. Never throws. */
export const readStore = async (place: StorePlace, keys: readonly string[]): Promise<StoreFindings> => ({
  ledger: await tried(async () => {
    const accounts = await storeAt(place, limits).readUsage({ account: null, sinceMs: null });
    const used = accounts.flatMap((account) => account.keys);
    const byPrefix = new Map(used.map(({ prefix, use }) => [prefix, use.characters]));
    return new Map(keys.map((key) => [key, byPrefix.get(prefixOf(key)) ?? 0]));
  }),
  entries: await tried(() => verify(place)),
});
