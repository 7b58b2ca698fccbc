/** Reads the files of lexicons, and sends their entries in parts: the front thread must not wait for all of them. */
import type { Dirent } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { lineAbout } from '../../src/fault.js';
import type { LexiconEntry } from '../../src/text/lexicon.js';
import {
  NAMED_FOLDER,
  type LexiconFinding,
  type LexiconMail,
  type LexiconThreadData,
  type Scope,
} from '../../src/threads/lexicons.js';
import type { ReadProgress } from '../../src/threads/reader.js';
import { CONSOLE_FILE, Findings, LexiconFileError, parsePlain, type ParsedFile } from './entries.js';
import { parsePls } from './pls.js';

/** Entries of a message: the front thread takes about 0.3 ms to add them. */
const partMax = 250;

/** Folders of the scopes, beside the files of the whole service. */
const scopeFolders = { accounts: 'account', voices: 'voice', [NAMED_FOLDER]: 'named' } as const;

interface File {
  readonly path: string;
  readonly scope: Scope;
}

const isNamed = (name: string): boolean => !name.startsWith('.') && /\.(?:pls|xml|txt|tsv)$/i.test(name);

/** @returns what is in a folder; nothing if it cannot be read */
type List = (folder: string) => Promise<readonly Dirent[]>;

const filesIn = async (list: List, folder: string, scope: Scope): Promise<File[]> =>
  (await list(folder))
    .filter((entry) => entry.isFile() && isNamed(entry.name))
    .map(({ name }) => ({ path: join(folder, name), scope }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));

const foldersIn = async (list: List, folder: string): Promise<string[]> =>
  (await list(folder)).filter((entry) => entry.isDirectory()).map(({ name }) => name);

const isOfConsole = ({ path, scope }: File): boolean =>
  scope.kind === 'account' && basename(path) === CONSOLE_FILE;

/** Those of the console last: what members write takes no room from what operators wrote. */
const allFiles = async (list: List, folder: string): Promise<File[]> => {
  const files = await filesIn(list, folder, { kind: 'service' });
  for (const [parent, kind] of Object.entries(scopeFolders))
    for (const name of (await foldersIn(list, join(folder, parent))).sort())
      files.push(...(await filesIn(list, join(folder, parent, name), { kind, name })));
  return [...files.filter((file) => !isOfConsole(file)), ...files.filter(isOfConsole)];
};

export type ParseFile = (path: string, bounds: LexiconThreadData['bounds']) => Promise<ParsedFile>;

export const parseFile: ParseFile = async (path, bounds) => {
  const { size } = await lstat(path);
  if (size > bounds.lexiconFileBytesMax)
    throw new LexiconFileError(1, `the file has ${size} bytes; ${bounds.lexiconFileBytesMax} are allowed`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
  } catch (error) {
    if (error instanceof TypeError) throw new LexiconFileError(1, 'the file is not in UTF-8');
    throw error;
  }
  return /\.(?:pls|xml)$/i.test(path) ? parsePls(text, bounds) : parsePlain(text, bounds);
};

/** Never rejects: what cannot be read is a finding. */
export const sendLexicons = async (
  port: MessagePort,
  { folder, refused, bounds }: LexiconThreadData,
  parse = parseFile,
): Promise<void> => {
  const findings = new Findings<LexiconFinding>(bounds.lexiconFindingsMax);
  const find = (path: string, line: number, fault: string) =>
    findings.add({ path, line, fault: lineAbout(fault) });
  const send = (mail: LexiconMail | ReadProgress) => {
    port.postMessage(mail);
  };
  const list: List = async (path) => {
    try {
      return await readdir(path, { withFileTypes: true });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // Without a folder there are no files.
      if (code !== 'ENOENT' || path === folder) find(path, 1, message);
      return [];
    }
  };
  // Of all files.
  let entriesLeft = bounds.lexiconEntriesMax;
  let unitsLeft = bounds.lexiconUnitsMax;
  const hasRoom = ({ written, form }: LexiconEntry): boolean => {
    entriesLeft--;
    unitsLeft -= written.length + ('ipa' in form ? form.ipa : form.spelling).length;
    return entriesLeft >= 0 && unitsLeft >= 0;
  };
  let files = 0;
  try {
    const found = await allFiles(list, folder);
    const [beyond] = found.slice(bounds.lexiconFilesMax);
    const filesLeft = `${found.length - bounds.lexiconFilesMax} are not read, from this one on`;
    if (beyond !== undefined) find(beyond.path, 1, `more than ${bounds.lexiconFilesMax} files: ${filesLeft}`);
    for (const { path, scope } of found.slice(0, bounds.lexiconFilesMax)) {
      const refusal = refused.find((finding) => finding.path === path);
      if (refusal !== undefined) {
        find(path, refusal.line, refusal.fault);
        continue;
      }
      send({ reading: { name: path, path }, files: [] });
      try {
        const parsed = await parse(path, bounds);
        for (const { line, fault } of parsed.findings.kept) find(path, line, fault);
        findings.left += parsed.findings.left;
        const full = parsed.entries.findIndex((entry) => !hasRoom(entry));
        const entries = full < 0 ? parsed.entries : parsed.entries.slice(0, full);
        if (full >= 0)
          find(
            path,
            1,
            'there are too many entries in all: the rest of this file and all later files are left out',
          );
        for (let at = 0; at < entries.length; at += partMax)
          send({ type: 'entries', scope, path, entries: entries.slice(at, at + partMax) });
        files++;
        if (full >= 0) break;
      } catch (error) {
        if (error instanceof LexiconFileError) find(path, error.line, error.message);
        else find(path, 1, error instanceof Error ? error.message : String(error));
      }
    }
  } catch (error) {
    find(folder, 1, error instanceof Error ? error.message : String(error));
  }
  send({ type: 'done', files, findings: findings.kept, findingsLeft: findings.left });
};
