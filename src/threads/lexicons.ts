/**
 * The pronunciation lexicons of the service, of its accounts and of its voices, and those that keys name. A thread reads their
 * files at the start and at a reload, and sends the entries in parts. Until all have arrived, speech uses the previous ones.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describeFault } from '../fault.js';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { Lexicon, type LexiconEntry } from '../text/lexicon.js';
import { readFilesInThread, UnansweredError } from './reader.js';

/** What a lexicon applies to. The folder of its file decides. */
export type Scope =
  | { readonly kind: 'service' }
  | { readonly kind: 'account' | 'voice' | 'named'; readonly name: string };

export interface LexiconFinding {
  readonly path: string;
  readonly line: number;
  readonly fault: string;
}

type LexiconBounds = Pick<
  Bounds,
  | 'lexiconEntriesMax'
  | 'lexiconUnitsMax'
  | 'lexiconTextMax'
  | 'spokenLettersMax'
  | 'lexiconFilesMax'
  | 'lexiconFileBytesMax'
  | 'lexiconFindingsMax'
  | 'lexiconReadMsMax'
  | 'watchdogBeatMs'
  | 'threadHangMsMax'
>;

export interface LexiconThreadData {
  readonly folder: string;
  /** Files at which an earlier thread ended: they are not read. */
  readonly refused: readonly LexiconFinding[];
  readonly bounds: LexiconBounds;
}

export type LexiconMail =
  | {
      readonly type: 'entries';
      readonly scope: Scope;
      readonly path: string;
      readonly entries: readonly LexiconEntry[];
    }
  | {
      readonly type: 'done';
      readonly files: number;
      readonly findings: readonly LexiconFinding[];
      /** Findings beyond the bound. */
      readonly findingsLeft: number;
    };

/** How the keys of the lexicons begin that keys of the service can name. */
const named = 'named ';

const keyOf = (scope: Scope): string =>
  scope.kind === 'service' ? 'service' : `${scope.kind} ${scope.name}`;

export const lexiconFolder = (dataDir: string): string => join(dataDir, 'lexicons');

/** The folder of the lexicons that keys name. */
export const NAMED_FOLDER = 'named';

/** The names of lexicons in a data folder; `null` if it has no lexicons at all. */
export const namedLexicons = (dataDir: string): readonly string[] | null => {
  const folder = lexiconFolder(dataDir);
  if (!existsSync(folder)) return null;
  if (!existsSync(join(folder, NAMED_FOLDER))) return [];
  const entries = readdirSync(join(folder, NAMED_FOLDER), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
};

/** Files that may end the thread in one reading: each makes it read all of them again. */
const LOSSES_MAX = 8;

/** Heap that the thread needs for a file of the largest size. */
const HEAP_MIB = 96;

const lexiconAt = (scopes: Map<string, Lexicon>, scope: Scope): Lexicon => {
  const key = keyOf(scope);
  const lexicon = scopes.get(key) ?? new Lexicon(key);
  scopes.set(key, lexicon);
  return lexicon;
};

export interface LexiconsParts {
  readonly folder: string;
  readonly bounds: LexiconBounds;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  /** The compiled `workers/lexicons.ts`. */
  readonly entry: URL;
}

export class Lexicons {
  readonly #parts: LexiconsParts;
  #scopes = new Map<string, Lexicon>();
  /** Since a reading began: it may have read these files before. */
  #changes: ((scopes: Map<string, Lexicon>) => boolean)[] = [];
  /** Of missing lexicons that the log has since the last reading. */
  readonly #missed = new Set<string>();
  #reading: Promise<void> | undefined;
  #again = false;
  readonly #closing = new AbortController();

  constructor(parts: LexiconsParts) {
    this.#parts = parts;
  }

  /** Those that keys can name. */
  get names(): readonly string[] {
    const keys = [...this.#scopes.keys()].filter((key) => key.startsWith(named));
    return keys.map((key) => key.slice(named.length)).sort();
  }

  /** The lexicons for a text, the strongest first: the one that its key names, those of the account, the voice, the service. */
  of(
    account: string,
    { lexiconId, voiceId }: Pick<SpeechSettings, 'lexiconId' | 'voiceId'>,
  ): readonly Lexicon[] {
    const own = lexiconId === undefined ? [] : [`${named}${lexiconId}`];
    if (lexiconId !== undefined && !this.#scopes.has(own[0]!)) this.#miss(lexiconId);
    if (this.#scopes.size === 0) return [];
    return [...own, `account ${account}`, `voice ${voiceId}`, 'service'].flatMap(
      (key) => this.#scopes.get(key) ?? [],
    );
  }

  /**
   * Reads the files. A call while they are read causes one more reading afterwards. Never rejects: if the files cannot be
   * read, the previous lexicons stay in use.
   */
  reload(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#reading !== undefined) this.#again = true;
    return (this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    }));
  }

  /** Whether one more word, with its spoken form, fits the bounds of all lexicons. */
  hasRoomFor(...texts: readonly [string, string]): boolean {
    const { lexiconEntriesMax, lexiconUnitsMax } = this.#parts.bounds;
    const all = [...this.#scopes.values()];
    const entries = all.reduce((sum, { size }) => sum + size, 1);
    const units = all.reduce((sum, lexicon) => sum + lexicon.units, texts.join('').length);
    return entries <= lexiconEntriesMax && units <= lexiconUnitsMax;
  }

  /**
   * The file of an account has one more word. To read all files again for it would take a core from speech for as long as a
   * member adds words.
   *
   * @param isChange the word had another form in that file
   * @returns false if the account has too many forms of the word
   */
  add(account: string, entry: LexiconEntry, isChange = false): boolean {
    return this.#change(account, (lexicon) => lexicon.add(entry, isChange));
  }

  /** The file of an account has one word less. */
  remove(account: string, entry: LexiconEntry): void {
    this.#change(account, (lexicon) => lexicon.remove(entry));
  }

  /** All words of an account, of all its files, as the next utterance uses them. */
  wordsOf(account: string): Iterable<LexiconEntry> {
    return this.#scopes.get(`account ${account}`)?.entries() ?? [];
  }

  #change(account: string, apply: (lexicon: Lexicon) => boolean): boolean {
    const change = (scopes: Map<string, Lexicon>) =>
      apply(lexiconAt(scopes, { kind: 'account', name: account }));
    if (this.#reading !== undefined) this.#changes.push(change);
    return change(this.#scopes);
  }

  /** Ends a reading. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reading;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Speech goes on without it. */
  #miss(name: string): void {
    const { bounds, folder, log } = this.#parts;
    if (this.#missed.has(name) || this.#missed.size >= bounds.lexiconFindingsMax) return;
    this.#missed.add(name);
    log.warn(
      { lexicon: join(folder, NAMED_FOLDER, name) },
      'a key names a lexicon that was not there, or had no words, when the lexicons were read',
    );
  }

  async #readAll(): Promise<void> {
    do {
      this.#again = false;
      try {
        await this.#read();
      } catch (error) {
        if (!this.#isClosed)
          this.#parts.log.error(
            error instanceof UnansweredError ? { reason: error.message } : describeFault(error),
            'the lexicons could not be read: the previous ones stay in use',
          );
      }
    } while (this.#isWantedAgain());
  }

  #isWantedAgain(): boolean {
    return this.#again && !this.#isClosed;
  }

  async #read(): Promise<void> {
    const { folder, log } = this.#parts;
    this.#missed.clear();
    this.#changes = [];
    if (!existsSync(folder)) {
      this.#scopes = new Map();
      return;
    }
    const refused: LexiconFinding[] = [];
    const { done, scopes, crowded } = await this.#readPast(refused).catch((error: unknown) => {
      for (const { path, fault } of refused) log.warn({ file: path, fault }, 'lexicon');
      throw error;
    });
    for (const change of this.#changes) change(scopes);
    this.#scopes = scopes;
    this.#missed.clear();
    for (const { path, line, fault } of done.findings)
      log.warn({ file: `${path}:${line}`, fault }, 'lexicon');
    for (const path of crowded)
      log.warn({ file: path }, 'lexicon: too many forms of one word, some are left out: remove some');
    const entries = [...scopes.values()].reduce((sum, { size }) => sum + size, 0);
    const faults = done.findings.length + done.findingsLeft;
    log.info({ files: done.files, entries, ...(faults > 0 && { faults }) }, 'lexicons read');
  }

  /** Leaves out the files that end the thread: they are added to `refused`. */
  async #readPast(refused: LexiconFinding[]) {
    for (;;) {
      const read = await this.#readOnce(refused);
      if (!('loss' in read)) return read.answer;
      const { item, fault } = read.loss;
      refused.push({ path: item.path, line: 1, fault: `${fault}: the file is left out` });
      if (refused.length > LOSSES_MAX) throw new Error('too many files end the thread that reads them');
    }
  }

  #readOnce(refused: readonly LexiconFinding[]) {
    const { folder, bounds, entry } = this.#parts;
    const scopes = new Map<string, Lexicon>();
    const crowded = new Set<string>();
    return readFilesInThread({
      ...{ entry, what: 'lexicons', bounds, signal: this.#closing.signal },
      workerData: { folder, refused, bounds } satisfies LexiconThreadData,
      ...{ heapMiBMax: HEAP_MIB, itemMsMax: bounds.lexiconReadMsMax, otherMsMax: bounds.lexiconReadMsMax },
      onMail: (mail: LexiconMail) => {
        if (mail.type === 'done') return { done: mail, scopes, crowded };
        const lexicon = lexiconAt(scopes, mail.scope);
        for (const one of mail.entries) if (!lexicon.add(one)) crowded.add(mail.path);
        return undefined;
      },
    });
  }
}
