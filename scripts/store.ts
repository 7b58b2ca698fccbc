/** Backups and copies of the store from the command line. `backup` and `verify` work while the service runs. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readConfig, type Config } from '../src/config.js';
import { limits } from '../src/limits.js';
import { backUp, verifyBackup, verifyStore, type Contents } from '../src/store/sqlite/backup.js';
import { storePath } from '../src/store/sqlite/database.js';
import { restore } from '../src/store/sqlite/restore.js';
import { copyStore, type CopySide } from '../src/store/copying.js';
import { connect, damagedStore } from '../src/store/postgres/driver.js';
import { shownUrl, type Session } from '../src/store/postgres/connection.js';
import { declareDead, liveWriters } from '../src/store/postgres/writer.js';
import { postgresSide } from '../src/store/postgres/copying.js';
import { findDamage } from '../src/store/postgres/verification.js';
import { sqliteSide } from '../src/store/sqlite/copying.js';
import { AdministrationError } from '../src/store/store.js';
import { program, runIfMain, storePlace, UsageError, type Terminal } from './command.js';
import { formatTable, formatTime } from './table.js';

const usage = `Usage: npm run store -- COMMAND

  backup FILE [--force]   copy the store into one file, and verify the copy; --force replaces an earlier backup
  verify [FILE]           read the whole store, or a backup, and report all damage
  restore FILE            put a backup in the place of the store, which is kept beside it; the service must be stopped
  copy FROM TO            copy a store into a new one, and compare each row; the services must be stopped. FROM and TO are
                          data folders (SQLite) or addresses of databases (postgres://USER:PASSWORD@HOST/DATABASE)
  writers                 list the processes that write to the database of STORE_URL, with the credit that each holds
  declare-dead WRITER     for a process that will never come back: others can use its credit, and entries that it has not
                          sent yet are refused

${storePlace}
A backup and a verification work while the service runs. Back up a PostgreSQL database with its own tools, such as pg_dump.
`;

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;

const report = (
  { out }: Terminal,
  what: string,
  { accounts, keys, entries, bytes, newestAtMs }: Contents,
): void => {
  const counts = [
    count(accounts, 'account'),
    count(keys, 'key'),
    count(entries, 'entry', 'entries'),
    count(bytes, 'byte'),
  ];
  const newest = newestAtMs === null ? 'no entry yet' : `newest entry ${formatTime(newestAtMs)} UTC`;
  out(`${what}: ${counts.join(', ')}, ${newest}\n`);
};

const fileOf = (operands: readonly string[]): string => {
  const [file = ''] = operands;
  if (file === '') throw new UsageError('the name of the file is empty');
  return file;
};

/** @throws {AdministrationError} the store is not a file */
const folderOfSqlite = (command: string, { dataDir, storeUrl }: Config): string => {
  if (storeUrl === null) return dataDir;
  throw new AdministrationError(
    `\`${command}\` is for SQLite, and STORE_URL names a PostgreSQL database: use pg_dump and pg_restore, or unset STORE_URL`,
  );
};

const verifyDatabase = async (storeUrl: string, { out }: Terminal): Promise<void> => {
  // Reading a large ledger may take longer than a statement of a service may.
  const connection = await connect(storeUrl, { ...limits, storeAnswerMsMax: 0 }, false);
  try {
    const found = await findDamage(connection);
    if (found.length > 0) throw damagedStore(storeUrl, found.join('; '));
    out(`${shownUrl(storeUrl)} is good\n`);
  } finally {
    await connection.close();
  }
};

/** @throws {AdministrationError} the store is a file */
const inDatabase = async <T>(
  command: string,
  { storeUrl }: Config,
  work: (session: Session) => Promise<T>,
): Promise<T> => {
  if (storeUrl === null)
    throw new AdministrationError(
      `\`${command}\` is for PostgreSQL: set STORE_URL to the database of the services`,
    );
  const connection = await connect(storeUrl, limits, false);
  try {
    return await work(await connection.session());
  } finally {
    await connection.close();
  }
};

const listWriters = async (session: Session, { out }: Terminal): Promise<void> => {
  const rows = (await liveWriters(session)).map(({ writer, host, startedAtMs, seenMsAgo, credits }) => [
    ...[
      String(writer),
      host,
      formatTime(startedAtMs),
      `${(seenMsAgo / 1_000).toFixed(1)} s ago`,
      String(credits),
    ],
  ]);
  if (rows.length === 0) out('No process writes to the database\n');
  else out(formatTable([['writer', 'host', 'started (UTC)', 'last seen', 'credits'], ...rows], [0, 4]));
};

const sideOf = async (place: string, create: boolean): Promise<CopySide> =>
  /^postgres(?:ql)?:\/\//.test(place)
    ? postgresSide(place, limits, create)
    : sqliteSide(resolve(place), limits, create);

/** A store in the default folder would be of no use: the service goes on with its own. */
const refuseDefaultFolder = (env: NodeJS.ProcessEnv, dataDir: string): void => {
  if ((env['DATA_DIR'] ?? '').trim() === '' && !existsSync(dataDir))
    throw new AdministrationError(`There is no folder ${dataDir}: set DATA_DIR to the folder of the service`);
};

export const store = program('store', usage, {
  backup: {
    operands: [1, 1],
    flags: ['force'],
    run: ({ operands, flag }, terminal) => {
      const file = fileOf(operands);
      const dataDir = folderOfSqlite('backup', readConfig(terminal.env));
      report(terminal, file, backUp(dataDir, file, flag('force'), limits));
    },
  },
  verify: {
    operands: [0, 1],
    run: async ({ operands }, terminal) => {
      const { dataDir, storeUrl } = readConfig(terminal.env);
      if (operands.length === 0 && storeUrl !== null) await verifyDatabase(storeUrl, terminal);
      else if (operands.length === 0)
        report(terminal, `${storePath(dataDir)} is good`, verifyStore(dataDir, limits));
      else report(terminal, `${fileOf(operands)} is good`, verifyBackup(fileOf(operands), limits));
    },
  },
  restore: {
    operands: [1, 1],
    run: ({ operands }, terminal) => {
      const file = fileOf(operands);
      const dataDir = folderOfSqlite('restore', readConfig(terminal.env));
      refuseDefaultFolder(terminal.env, dataDir);
      const { contents, kept } = restore(dataDir, file, Date.now(), limits);
      report(terminal, storePath(dataDir), contents);
      if (kept !== null) terminal.out(`The previous store is ${kept}\n`);
    },
  },
  copy: {
    operands: [2, 2],
    run: async ({ operands: [from = '', to = ''] }, { out }) => {
      const source = await sideOf(from, false);
      try {
        const target = await sideOf(to, true);
        try {
          const { accounts, keys, entries } = await copyStore(source, target);
          const counts = [count(accounts, 'account'), count(keys, 'key'), count(entries, 'entry', 'entries')];
          out(`${target.place} is a copy of ${source.place}: ${counts.join(', ')}, each row compared\n`);
        } finally {
          await target.close();
        }
      } finally {
        await source.close();
      }
    },
  },
  writers: {
    operands: [0, 0],
    run: (_, terminal) =>
      inDatabase('writers', readConfig(terminal.env), (session) => listWriters(session, terminal)),
  },
  'declare-dead': {
    operands: [1, 1],
    run: async ({ operands: [name = ''] }, { env, out }) => {
      const writer = Number(name);
      if (!Number.isSafeInteger(writer)) throw new UsageError('WRITER must be a number that `writers` lists');
      const credits = await inDatabase('declare-dead', readConfig(env), (session) =>
        declareDead(session, writer),
      );
      out(`Writer ${writer} is dead: ${count(credits, 'credit')} of it can be spent by others\n`);
    },
  },
});

await runIfMain(import.meta.url, store);
