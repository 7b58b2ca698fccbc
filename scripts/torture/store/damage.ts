/** Ways in which a disk, a person or another program can damage a store. The details of each are random. */
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/schema.js';
import type { End, LeftStore } from './left-store.js';

const main = 'store.sqlite';
const log = 'store.sqlite-wal';
const index = 'store.sqlite-shm';
const commitMark = 'store.sqlite-mark';
const PAGE_BYTES = 4_096;
/** Milliseconds that other SQL waits for the service's write. */
const BUSY_MS_MAX = 10_000;
/** The log is a header, then frames of a head and a page. */
const LOG_HEAD_BYTES = 32;
const FRAME_BYTES = 24 + PAGE_BYTES;

export interface DamageTools {
  readonly store: LeftStore;
  /** Another store, without damage. */
  readonly other: LeftStore;
  readonly random: () => number;
}

type Damage = (tools: DamageTools) => void;

const below = (random: () => number, end: number): number => Math.floor(random() * end);

const garbage = (random: () => number, bytes: number): Buffer =>
  Buffer.from(Array.from({ length: bytes }, () => below(random, 256)));

/** Changes bytes within the same file. */
const change =
  (name: string, work: (bytes: Buffer, random: () => number) => void): Damage =>
  ({ store, random }) => {
    const bytes = readFileSync(store.pathOf(name));
    work(bytes, random);
    writeFileSync(store.pathOf(name), bytes, { flag: 'r+' });
  };

const flip = (bytes: Buffer, at: number, random: () => number): void => {
  bytes[at] = (bytes[at] ?? 0) ^ (1 << below(random, 8));
};

const flipSome = (bytes: Buffer, random: () => number, from = 0, to = bytes.length): void => {
  for (let count = 1 + below(random, 6); count > 0; count -= 1)
    flip(bytes, from + below(random, to - from), random);
};

const pageAt = (bytes: Buffer, random: () => number): number =>
  below(random, bytes.length / PAGE_BYTES) * PAGE_BYTES;

/** The first byte of a page is its kind; the first page has it after the file's head. */
const kinds = { tableLeaf: 0x0d, tableNode: 0x05, indexLeaf: 0x0a, indexNode: 0x02 } as const;

const pageOfKind = (bytes: Buffer, kind: number, random: () => number): number => {
  const pages: number[] = [];
  for (let at = PAGE_BYTES; at < bytes.length; at += PAGE_BYTES) if (bytes[at] === kind) pages.push(at);
  return pages[below(random, pages.length)] ?? PAGE_BYTES;
};

const flipInPage = (kind: number) =>
  change(main, (bytes, random) => {
    const at = pageOfKind(bytes, kind, random);
    flipSome(bytes, random, at, at + PAGE_BYTES);
  });

const truncated =
  (name: string): Damage =>
  ({ store, random }) =>
    truncateSync(store.pathOf(name), below(random, store.bytesOf(name).length));

const gone =
  (name: string): Damage =>
  ({ store }) =>
    store.setAside(name);

const overwritten =
  (name: string): Damage =>
  ({ store, random }) =>
    writeFileSync(store.pathOf(name), garbage(random, 1 + below(random, 20_000)));

const sql =
  (script: string | ((random: () => number) => string)): Damage =>
  ({ store, random }) => {
    const database = new DatabaseSync(store.pathOf(main), { timeout: BUSY_MS_MAX });
    try {
      database.exec(typeof script === 'string' ? script : script(random));
    } finally {
      database.close();
    }
  };

/** Without the trigger that would refuse it; the trigger is restored afterwards. */
const behindTriggers =
  (name: string, script: (random: () => number) => string): Damage =>
  ({ store, random }) => {
    const database = new DatabaseSync(store.pathOf(main), { timeout: BUSY_MS_MAX });
    try {
      const row = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(name);
      database.exec(`DROP TRIGGER ${name}; ${script(random)}; ${String(row?.['sql'])}`);
    } finally {
      database.close();
    }
  };

const someEntry = (random: () => number): string =>
  `(SELECT id FROM ledger ORDER BY id LIMIT 1 OFFSET ${below(random, 50)})`;

const triggers = [
  'account_is_changed',
  'key_is_changed',
  'ledger_adds_to_balance',
  'ledger_adds_to_days',
  'ledger_adds_to_spent',
  'ledger_adds_to_usage',
  'ledger_is_never_changed',
  'ledger_is_never_cut',
] as const;

/** Times that a file is set aside before something takes its place. */
const SET_ASIDE_MAX = 1_000;

/** A running service may open its file again, and so make one, before something else has the name: then it tries again. */
const inPlaceOf =
  (name: string, work: (path: string, tools: DamageTools) => void): Damage =>
  (tools) => {
    for (let times = 1; ; times += 1) {
      tools.store.setAside(name);
      try {
        work(tools.store.pathOf(name), tools);
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || times === SET_ASIDE_MAX) throw error;
      }
    }
  };

/** Damage to the file and to the files beside any store. */
const damages: Readonly<Record<string, Damage>> = {
  'the file is cut': truncated(main),
  'the file is cut to whole pages': ({ store, random }) =>
    truncateSync(store.pathOf(main), pageAt(store.bytesOf(main), random)),
  'the file is empty': ({ store }) => truncateSync(store.pathOf(main), 0),
  'bits anywhere in the file': change(main, flipSome),
  'bits in its head': change(main, (bytes, random) => flipSome(bytes, random, 0, 100)),
  'bits in its first page': change(main, (bytes, random) => flipSome(bytes, random, 100, PAGE_BYTES)),
  'bits in the head of a page': change(main, (bytes, random) => {
    const at = pageAt(bytes, random);
    flipSome(bytes, random, at, at + 12);
  }),
  'bits in rows': flipInPage(kinds.tableLeaf),
  'bits in nodes of a table': flipInPage(kinds.tableNode),
  'bits in entries of an index': flipInPage(kinds.indexLeaf),
  'bits in nodes of an index': flipInPage(kinds.indexNode),
  'a page of zeros': change(main, (bytes, random) => {
    const at = pageAt(bytes, random);
    bytes.fill(0, at, at + PAGE_BYTES);
  }),
  'a page of garbage': change(main, (bytes, random) => {
    garbage(random, PAGE_BYTES).copy(bytes, pageAt(bytes, random));
  }),
  'two pages in each other’s place': change(main, (bytes, random) => {
    const [a, b] = [pageAt(bytes, random), pageAt(bytes, random)];
    const page = Buffer.from(bytes.subarray(a, a + PAGE_BYTES));
    bytes.copy(bytes, a, b, b + PAGE_BYTES);
    page.copy(bytes, b);
  }),
  'a page as it was before: a write was lost': ({ store, random }) => {
    const bytes = readFileSync(store.pathOf(main));
    const at = pageAt(store.olderFile, random);
    store.olderFile.copy(bytes, at, at, at + PAGE_BYTES);
    writeFileSync(store.pathOf(main), bytes);
  },
  'the file as it was before, and no log': ({ store }) => {
    writeFileSync(store.pathOf(main), store.olderFile);
    store.setAside(log);
  },
  'garbage behind the end of the file': ({ store, random }) =>
    appendFileSync(store.pathOf(main), garbage(random, 1 + below(random, 10_000))),
  'garbage in place of the file': overwritten(main),
  'a text in place of the file': ({ store }) =>
    writeFileSync(store.pathOf(main), 'A note that was saved under the wrong name.\n'.repeat(200)),

  'the file of another store': ({ store, other }) =>
    writeFileSync(store.pathOf(main), other.bytesOf(main, 'killed')),
  'the commit mark is gone': gone(commitMark),
  'bits in the commit mark': change(commitMark, flipSome),
  'the commit mark is cut': truncated(commitMark),
  'garbage in the lock': ({ store, random }) =>
    writeFileSync(store.pathOf('store.lock'), garbage(random, 100 + below(random, 5_000))),

  'the file is gone': gone(main),
  'a folder in place of the file': inPlaceOf(main, (path) => mkdirSync(path)),
  'a link to itself': inPlaceOf(main, (path) => symlinkSync(path, path)),
  'a link to nowhere': inPlaceOf(main, (path) => symlinkSync(`${path}-nowhere`, path)),
  'a file that no one may read': ({ store }) => chmodSync(store.pathOf(main), 0),
  'a database of another program': inPlaceOf(main, (path, { store }) => {
    store.setAside(log);
    const database = new DatabaseSync(path);
    database.exec('CREATE TABLE theirs (a INTEGER); INSERT INTO theirs VALUES (1)');
    database.close();
  }),

  'a newer schema': sql((random) => `PRAGMA user_version = ${SCHEMA_VERSION + 1 + below(random, 90)}`),
  'an older schema, it says': sql((random) => `PRAGMA user_version = ${below(random, SCHEMA_VERSION)}`),
  'a trigger is dropped': sql((random) => `DROP TRIGGER ${triggers[below(random, triggers.length)] ?? ''}`),
  'a foreign trigger': sql(
    'CREATE TRIGGER free AFTER INSERT ON ledger BEGIN UPDATE accounts SET balance = balance + 1; END',
  ),
  'an index is dropped': sql('DROP INDEX ledger_by_time'),
  'a table is dropped': sql('PRAGMA foreign_keys = OFF; DROP TABLE usage_hours'),
  'a balance is changed': sql(
    (random) => `UPDATE accounts SET balance = balance + 1 WHERE id = ${1 + below(random, 5)}`,
  ),
  'an entry is changed': behindTriggers(
    'ledger_is_never_changed',
    (random) => `UPDATE ledger SET amount = amount - 1 WHERE id = ${someEntry(random)}`,
  ),
  'an entry is cut': behindTriggers(
    'ledger_is_never_cut',
    (random) => `DELETE FROM ledger WHERE id = ${someEntry(random)}`,
  ),
  'the last entry is cut': behindTriggers(
    'ledger_is_never_cut',
    () => 'DELETE FROM ledger WHERE id = (SELECT max(id) FROM ledger)',
  ),
  'an hour of use is changed': sql(
    'UPDATE usage_hours SET credits = credits + 1 WHERE hour = (SELECT max(hour) FROM usage_hours)',
  ),
  'what a key has spent is changed': sql(
    (random) => `UPDATE api_keys SET spent = spent - 1 WHERE id = ${1 + below(random, 10)}`,
  ),
  'a revocation is undone': sql('UPDATE api_keys SET revoked_at_ms = NULL'),
};

/** Damage to a store that has a log. */
const logDamages: Readonly<Record<string, Damage>> = {
  'the file as it was before, with the log': ({ store }) =>
    writeFileSync(store.pathOf(main), store.olderFile),
  'the file and its log are empty': ({ store }) => {
    truncateSync(store.pathOf(main), 0);
    // A running service may have closed the empty file by now, and removed its log.
    writeFileSync(store.pathOf(log), '');
  },
  'bits in the log': change(log, flipSome),
  'bits in the head of the log': change(log, (bytes, random) => flipSome(bytes, random, 0, LOG_HEAD_BYTES)),
  'the log is cut': truncated(log),
  'the log is cut at a frame': ({ store, random }) => {
    const frames = (store.bytesOf(log).length - LOG_HEAD_BYTES) / FRAME_BYTES;
    truncateSync(store.pathOf(log), LOG_HEAD_BYTES + below(random, frames) * FRAME_BYTES);
  },
  'the log is empty': ({ store }) => truncateSync(store.pathOf(log), 0),
  'the log is gone': gone(log),
  'garbage in place of the log': overwritten(log),
  'garbage behind the end of the log': ({ store, random }) =>
    appendFileSync(store.pathOf(log), garbage(random, 1 + below(random, 10_000))),
  'the log of another store': ({ store, other }) =>
    writeFileSync(store.pathOf(log), other.bytesOf(log, 'killed')),
  'both of another store': ({ store, other }) => {
    writeFileSync(store.pathOf(main), other.bytesOf(main, 'killed'));
    writeFileSync(store.pathOf(log), other.bytesOf(log, 'killed'));
  },

  'bits in the index of the log': change(index, flipSome),
  'the index of the log is cut': truncated(index),
  'the index of the log is gone': gone(index),
  'garbage in place of the index of the log': overwritten(index),
  'a folder in place of the log': inPlaceOf(log, (path) => mkdirSync(path)),
};

/** The damages that are possible after each end. */
export const damageNames: Readonly<Record<End, readonly string[]>> = {
  killed: [...Object.keys(damages), ...Object.keys(logDamages)],
  closed: Object.keys(damages),
};

/** @param name one of `damageNames` */
export const applyDamage = (name: string, tools: DamageTools): void => {
  const damage = damages[name] ?? logDamages[name];
  if (damage === undefined) throw new Error(`there is no damage "${name}"`);
  damage(tools);
};
