/** Ways in which a disk, a person or another program can damage a store. The details of each are random. */
import { chmodSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/schema.js';
import type { Dice } from '../../rig/random.js';
import * as files from '../file-damage.js';
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
  readonly dice: Dice;
}

type Damage = (tools: DamageTools) => void;

const to =
  (name: string, damage: files.FileDamage): Damage =>
  ({ store, dice }) =>
    damage(store.pathOf(name), dice);

const changed = (name: string, work: (bytes: Buffer, dice: Dice) => void): Damage =>
  to(name, files.change(work));

const pageAt = (bytes: Buffer, dice: Dice): number => dice.below(bytes.length / PAGE_BYTES) * PAGE_BYTES;

/** The first byte of a page is its kind; the first page has it after the file's head. */
const kinds = { tableLeaf: 0x0d, tableNode: 0x05, indexLeaf: 0x0a, indexNode: 0x02 } as const;

const pageOfKind = (bytes: Buffer, kind: number, dice: Dice): number => {
  const pages: number[] = [];
  for (let at = PAGE_BYTES; at < bytes.length; at += PAGE_BYTES) if (bytes[at] === kind) pages.push(at);
  return pages[dice.below(pages.length)] ?? PAGE_BYTES;
};

const flipInPage = (kind: number) =>
  changed(main, (bytes, dice) => {
    const at = pageOfKind(bytes, kind, dice);
    files.flipSome(bytes, dice, at, at + PAGE_BYTES);
  });

const gone =
  (name: string): Damage =>
  ({ store }) =>
    store.setAside(name);

const sql =
  (script: string | ((dice: Dice) => string)): Damage =>
  ({ store, dice }) => {
    using database = new DatabaseSync(store.pathOf(main), { timeout: BUSY_MS_MAX });
    database.exec(typeof script === 'string' ? script : script(dice));
  };

/** Without the trigger that would refuse it; the trigger is restored afterwards. */
const behindTriggers =
  (name: string, script: (dice: Dice) => string): Damage =>
  ({ store, dice }) => {
    using database = new DatabaseSync(store.pathOf(main), { timeout: BUSY_MS_MAX });
    const row = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(name);
    database.exec(`DROP TRIGGER ${name}; ${script(dice)}; ${String(row?.['sql'])}`);
  };

const someEntry = (dice: Dice): string =>
  `(SELECT id FROM ledger ORDER BY id LIMIT 1 OFFSET ${dice.below(50)})`;

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
  (name: string, work: (path: string, dice: Dice, tools: DamageTools) => void): Damage =>
  (tools) => {
    for (let times = 1; ; times += 1) {
      tools.store.setAside(name);
      try {
        work(tools.store.pathOf(name), tools.dice, tools);
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || times === SET_ASIDE_MAX) throw error;
      }
    }
  };

/** Damage to the file and to the files beside any store. */
const damages: Readonly<Record<string, Damage>> = {
  'the file is cut': to(main, files.cut),
  'the file is cut to whole pages': ({ store, dice }) =>
    truncateSync(store.pathOf(main), pageAt(store.bytesOf(main), dice)),
  'the file is empty': to(main, files.empty),
  'bits anywhere in the file': to(main, files.flipBits),
  'bits in its head': changed(main, (bytes, dice) => files.flipSome(bytes, dice, 0, 100)),
  'bits in its first page': changed(main, (bytes, dice) => files.flipSome(bytes, dice, 100, PAGE_BYTES)),
  'bits in the head of a page': changed(main, (bytes, dice) => {
    const at = pageAt(bytes, dice);
    files.flipSome(bytes, dice, at, at + 12);
  }),
  'bits in rows': flipInPage(kinds.tableLeaf),
  'bits in nodes of a table': flipInPage(kinds.tableNode),
  'bits in entries of an index': flipInPage(kinds.indexLeaf),
  'bits in nodes of an index': flipInPage(kinds.indexNode),
  'a page of zeros': changed(main, (bytes, dice) => {
    const at = pageAt(bytes, dice);
    bytes.fill(0, at, at + PAGE_BYTES);
  }),
  'a page of garbage': changed(main, (bytes, dice) => {
    dice.bytes(PAGE_BYTES).copy(bytes, pageAt(bytes, dice));
  }),
  'two pages in each other’s place': changed(main, (bytes, dice) => {
    const [a, b] = [pageAt(bytes, dice), pageAt(bytes, dice)];
    const page = Buffer.from(bytes.subarray(a, a + PAGE_BYTES));
    bytes.copy(bytes, a, b, b + PAGE_BYTES);
    page.copy(bytes, b);
  }),
  'a page as it was before: a write was lost': ({ store, dice }) => {
    const bytes = readFileSync(store.pathOf(main));
    const at = pageAt(store.olderFile, dice);
    store.olderFile.copy(bytes, at, at, at + PAGE_BYTES);
    writeFileSync(store.pathOf(main), bytes);
  },
  'the file as it was before, and no log': ({ store }) => {
    writeFileSync(store.pathOf(main), store.olderFile);
    store.setAside(log);
  },
  'garbage behind the end of the file': to(main, files.garbageBehind),
  'garbage in place of the file': to(main, files.garbageInPlace),
  'a text in place of the file': ({ store }) =>
    writeFileSync(store.pathOf(main), 'A note that was saved under the wrong name.\n'.repeat(200)),

  'the file of another store': ({ store, other }) =>
    writeFileSync(store.pathOf(main), other.bytesOf(main, 'killed')),
  'the commit mark is gone': gone(commitMark),
  'bits in the commit mark': to(commitMark, files.flipBits),
  'the commit mark is cut': to(commitMark, files.cut),
  'garbage in the lock': to('store.lock', files.garbageInPlace),

  'the file is gone': gone(main),
  'a folder in place of the file': inPlaceOf(main, files.folder),
  'a link to itself': inPlaceOf(main, files.linkToItself),
  'a link to nowhere': inPlaceOf(main, (path) => symlinkSync(`${path}-nowhere`, path)),
  'a file that no one may read': ({ store }) => chmodSync(store.pathOf(main), 0),
  'a database of another program': inPlaceOf(main, (path, _, { store }) => {
    store.setAside(log);
    const database = new DatabaseSync(path);
    database.exec('CREATE TABLE theirs (a INTEGER); INSERT INTO theirs VALUES (1)');
    database.close();
  }),

  'a newer schema': sql((dice) => `PRAGMA user_version = ${SCHEMA_VERSION + 1 + dice.below(90)}`),
  'an older schema, it says': sql((dice) => `PRAGMA user_version = ${dice.below(SCHEMA_VERSION)}`),
  'a trigger is dropped': sql((dice) => `DROP TRIGGER ${triggers[dice.below(triggers.length)] ?? ''}`),
  'a foreign trigger': sql(
    'CREATE TRIGGER free AFTER INSERT ON ledger BEGIN UPDATE accounts SET balance = balance + 1; END',
  ),
  'an index is dropped': sql('DROP INDEX ledger_by_time'),
  'a table is dropped': sql('PRAGMA foreign_keys = OFF; DROP TABLE usage_hours'),
  'a balance is changed': sql(
    (dice) => `UPDATE accounts SET balance = balance + 1 WHERE id = ${1 + dice.below(5)}`,
  ),
  'an entry is changed': behindTriggers(
    'ledger_is_never_changed',
    (dice) => `UPDATE ledger SET amount = amount - 1 WHERE id = ${someEntry(dice)}`,
  ),
  'an entry is cut': behindTriggers(
    'ledger_is_never_cut',
    (dice) => `DELETE FROM ledger WHERE id = ${someEntry(dice)}`,
  ),
  'the last entry is cut': behindTriggers(
    'ledger_is_never_cut',
    () => 'DELETE FROM ledger WHERE id = (SELECT max(id) FROM ledger)',
  ),
  'an hour of use is changed': sql(
    'UPDATE usage_hours SET credits = credits + 1 WHERE hour = (SELECT max(hour) FROM usage_hours)',
  ),
  'what a key has spent is changed': sql(
    (dice) => `UPDATE api_keys SET spent = spent - 1 WHERE id = ${1 + dice.below(10)}`,
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
  'bits in the log': to(log, files.flipBits),
  'bits in the head of the log': changed(log, (bytes, dice) =>
    files.flipSome(bytes, dice, 0, LOG_HEAD_BYTES),
  ),
  'the log is cut': to(log, files.cut),
  'the log is cut at a frame': ({ store, dice }) => {
    const frames = (store.bytesOf(log).length - LOG_HEAD_BYTES) / FRAME_BYTES;
    truncateSync(store.pathOf(log), LOG_HEAD_BYTES + dice.below(frames) * FRAME_BYTES);
  },
  'the log is empty': to(log, files.empty),
  'the log is gone': gone(log),
  'garbage in place of the log': to(log, files.garbageInPlace),
  'garbage behind the end of the log': to(log, files.garbageBehind),
  'the log of another store': ({ store, other }) =>
    writeFileSync(store.pathOf(log), other.bytesOf(log, 'killed')),
  'both of another store': ({ store, other }) => {
    writeFileSync(store.pathOf(main), other.bytesOf(main, 'killed'));
    writeFileSync(store.pathOf(log), other.bytesOf(log, 'killed'));
  },

  'bits in the index of the log': to(index, files.flipBits),
  'the index of the log is cut': to(index, files.cut),
  'the index of the log is gone': gone(index),
  'garbage in place of the index of the log': to(index, files.garbageInPlace),
  'a folder in place of the log': inPlaceOf(log, files.folder),
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
