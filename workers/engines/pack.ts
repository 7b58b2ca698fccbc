/** A voice pack on disk. What every format needs to read its files and to verify them. */
import { createHash } from 'node:crypto';
import { type BigIntStats, fstat, open, read } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import typia, { type tags } from 'typia';
import { listFolder, READ_FLAGS } from '../../src/regular-file.js';
import { closeFiles, type VoicePack, VoicePackError } from '../../src/threads/voices.js';
import { asPackError, type PackEntry } from './entries.js';
import { hashOf } from './graph/derived.js';
import type { Model, ModelFile } from './graph/model.js';
import { readModel } from './graph/read.js';

const fstatFile = promisify(fstat);
const openFile = promisify(open);
const readPiece = promisify(read);

/** A larger manifest is not read into memory: ours has 4 KiB. */
const manifestBytesMax = 1024 * 1024;
/** The most levels of folders of a voice pack, and the most files and folders. */
const levelsMax = 4;
const filesMax = 4_096;
/** The first bytes of a file, which show what it is. */
const headBytes = 128;

/** What a format finds in a folder. */
export type PackContent = Omit<VoicePack, 'engine' | 'name' | 'openFiles' | 'trial' | 'stamp' | 'identity'>;

/** What the files of a pack may say. */
export type SampleRateHz = number & tags.Type<'uint32'> & tags.Minimum<8000> & tags.Maximum<48000>;

/**
 * A file that was opened, and is kept open until the pack is loaded. On Linux `openPath` leads to the file that was verified,
 * even if another has its name by now.
 */
export interface HeldFile extends ModelFile {
  readonly bytes: number;
}

/** Takes the descriptor of each file that is opened. */
export interface Held {
  push(descriptor: number): unknown;
}

/** What a failed download often leaves instead of the file. */
const impostors: readonly (readonly [RegExp, string])[] = [
  [
    /^version https:\/\/git-lfs\.github\.com/,
    'a Git LFS pointer, not the file itself: run "git lfs pull" where it was cloned, or download the file by itself',
  ],
  [/^\s*<(?:!doctype|html|head)/i, 'a web page, not the file: download it by its own link'],
];

/** Parses a manifest, which may also be in the metadata of a model. @param place for messages */
export const parseJson = (place: string, text: string): unknown => {
  if (text.length > manifestBytesMax)
    throw new VoicePackError(`${place}: more than ${manifestBytesMax} characters`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new VoicePackError(`${place}: not valid JSON`);
  }
};

/** @param name of the value in the message @throws {VoicePackError} in one line that names the field */
export const checked = <T>(path: string, name: string, result: typia.IValidation<T>): T => {
  if (result.success) return result.data;
  const [first] = result.errors;
  throw new VoicePackError(`${path}: ${first?.path.replace('$input', name)} must be ${first?.expected}`);
};

/** On Linux it leads to the file that was opened, even if another has its name by now. */
const openPathOf = (descriptor: number, path: string): string =>
  process.platform === 'linux' ? `/proc/self/fd/${descriptor}` : path;

/** @throws {VoicePackError} it is a device, a pipe or something else that may have no end */
const openRegular = async (
  path: string,
): Promise<{ readonly descriptor: number; readonly stats: BigIntStats }> => {
  const descriptor = await openFile(path, READ_FLAGS);
  try {
    const stats = await fstatFile(descriptor, { bigint: true });
    refuseOtherKinds(path, stats);
    return { descriptor, stats };
  } catch (error) {
    closeFiles([descriptor]);
    throw error;
  }
};

/**
 * Reads as many bytes as the file had when it was opened: some files of the system report none, and have no end.
 *
 * @throws {VoicePackError} it has fewer or more
 */
const readWhole = async (descriptor: number, path: string, size: number): Promise<Buffer> => {
  const bytes = Buffer.alloc(size + 1);
  let read = 0;
  for (let more = -1; more !== 0 && read <= size; read += more)
    more = (await readPiece(descriptor, bytes, read, bytes.length - read, read)).bytesRead;
  if (read !== size)
    throw new VoicePackError(`${path}: its size is not the ${size} bytes that it reports: copy it again`);
  return bytes.subarray(0, size);
};

/**
 * Opens a file of a pack to copy it, by whoever may read it. The caller closes it.
 *
 * @throws {VoicePackError} it is not a regular file, or a link leads out of the folder: the copy would give away a file that is none of the pack
 */
export const openOwn = async (
  folder: string,
  name: string,
): Promise<{ readonly descriptor: number; readonly bytes: number }> => {
  const path = join(folder, name);
  const { descriptor, stats } = await openRegular(path);
  const [root, file] = [await realpath(folder), await realpath(openPathOf(descriptor, path))];
  if (file.startsWith(join(root, sep))) return { descriptor, bytes: Number(stats.size) };
  closeFiles([descriptor]);
  throw new VoicePackError(
    `${path}: a link to ${file}, which is outside the folder: put the file itself in its place (cp -L)`,
  );
};

const stateOf = ({ ino, size, mtimeNs }: BigIntStats): string => `${ino} ${size} ${mtimeNs}`;

const listFiles = async (folder: string): Promise<string[]> => {
  const files: string[] = [];
  let names = 0;
  const list = async (below: string, level: number): Promise<void> => {
    for (const entry of await listFolder(join(folder, below), filesMax)) {
      if (++names > filesMax)
        throw new VoicePackError(
          `${folder}: more than ${filesMax} files and folders: this is not one voice pack`,
        );
      if (entry.name.startsWith('.')) continue;
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      if (!entry.isDirectory()) files.push(name);
      else if (level < levelsMax) await list(name, level + 1);
    }
  };
  await list('', 1);
  return files;
};

/** Changes with every file of a pack, whether it can be read or not. */
export const stampOf = async ({ path, files }: PackEntry): Promise<string> => {
  const hash = createHash('sha256').update(path);
  for (const name of files ?? (await listFiles(path).catch(() => [])).sort()) {
    const state = await stat(join(path, name), { bigint: true }).then(stateOf, () => '');
    hash.update(JSON.stringify([name, state]));
  }
  return hash.digest('hex');
};

export const totalBytes = (files: readonly HeldFile[]): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0);

export class PackFolder {
  /** Of the pack: the ids of its voices begin with it. */
  readonly name: string;
  readonly path: string;
  /** Paths of its files below `path`, with slashes, in order. */
  readonly files: readonly string[];
  /**
   * Descriptors of the files that were opened. They are not `FileHandle`s: those end with the thread that reads the
   * packs.
   */
  readonly #held: Held;
  readonly #identity = new Map<string, string>();
  readonly #files = new Map<string, HeldFile>();
  readonly #models = new Map<string, Promise<Model>>();

  private constructor(entry: PackEntry, files: readonly string[], held: Held) {
    this.name = entry.name;
    this.path = entry.path;
    this.files = files;
    this.#held = held;
  }

  /** @param held gets the descriptors of all files that are opened, for the caller to close */
  static async open(entry: PackEntry, held: Held): Promise<PackFolder> {
    const { path, files } = entry;
    try {
      return new PackFolder(entry, files ?? (await listFiles(path)).sort(), held);
    } catch (error) {
      throw asPackError(error, path, 'the folder');
    }
  }

  /** Files that stay open for it. */
  get openFiles(): number {
    return this.#files.size;
  }

  /** Changes with every file that was read or held: by name, inode, size and time of change. */
  get identity(): string {
    return createHash('sha256')
      .update(JSON.stringify([...this.#identity].sort()))
      .digest('hex');
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  /** Reads a manifest. */
  async json(name: string): Promise<unknown> {
    return parseJson(this.pathOf(name), (await this.bytes(name, manifestBytesMax)).toString('utf8'));
  }

  /** Reads and checks a manifest. @returns `null` if the pack has none */
  async checkedJson<T>(name: string, validate: (value: unknown) => typia.IValidation<T>): Promise<T | null> {
    return this.files.includes(name)
      ? checked(this.pathOf(name), name, validate(await this.json(name)))
      : null;
  }

  /** Reads a whole file. @param bytesMax a larger one is refused */
  async bytes(name: string, bytesMax: number): Promise<Buffer> {
    const path = this.pathOf(name);
    try {
      const { descriptor, stats } = await openRegular(path);
      try {
        if (stats.size > bytesMax)
          throw new VoicePackError(
            `${path}: the file has ${stats.size} bytes, and at most ${bytesMax} are allowed`,
          );
        this.#note(name, stats);
        const bytes = await readWhole(descriptor, path, Number(stats.size));
        refuseImpostor(path, bytes.subarray(0, headBytes));
        return bytes;
      } finally {
        closeFiles([descriptor]);
      }
    } catch (error) {
      throw asPackError(error, path);
    }
  }

  /** Opens a file, verifies it if its manifest says what it is, and keeps it open. */
  async hold(
    name: string,
    expected?: { readonly bytes: number; readonly sha256: string },
  ): Promise<HeldFile> {
    const path = this.pathOf(name);
    try {
      const file = this.#files.get(name) ?? (await this.#open(name, path));
      const { bytes } = file;
      if (expected !== undefined && bytes !== expected.bytes)
        throw new VoicePackError(`${path}: the file has ${bytes} bytes, its manifest says ${expected.bytes}`);
      if (expected !== undefined && (await hashOf(file)) !== expected.sha256)
        throw new VoicePackError(`${path}: the file is not the one of its manifest (sha256 differs)`);
      return file;
    } catch (error) {
      throw asPackError(error, path);
    }
  }

  async #open(name: string, path: string): Promise<HeldFile> {
    const { descriptor, stats } = await openRegular(path);
    this.#held.push(descriptor);
    // So do files of the system that have no end.
    if (stats.size === 0n) throw new VoicePackError(`${path}: the file is empty: copy it again`);
    this.#note(name, stats);
    const head = Buffer.alloc(headBytes);
    const { bytesRead } = await readPiece(descriptor, head, 0, headBytes, 0);
    refuseImpostor(path, head.subarray(0, bytesRead));
    const openPath = openPathOf(descriptor, path);
    const file = { path, openPath, bytes: Number(stats.size) };
    this.#files.set(name, file);
    return file;
  }

  /** The graph of a model, read once for all formats, without its weights. Keeps the file open. */
  model(name: string): Promise<Model> {
    let model = this.#models.get(name);
    if (model === undefined) {
      model = this.hold(name).then(readModel);
      this.#models.set(name, model);
    }
    return model;
  }

  /** The files of a model, open: its own, then those beside it that have its weights. */
  async sources(name: string): Promise<HeldFile[]> {
    const file = await this.hold(name);
    const { initialisers } = await this.model(name);
    const paths = new Set<string>();
    for (const { data } of initialisers.values())
      if (!('held' in data) && data.file !== file.openPath) paths.add(data.file);
    const sources = [file];
    for (const path of paths) sources.push(await this.hold(relative(this.path, path)));
    return sources;
  }

  #note(name: string, stats: BigIntStats): void {
    this.#identity.set(name, stateOf(stats));
  }
}

const refuseOtherKinds = (path: string, stats: BigIntStats): void => {
  if (!stats.isFile()) throw new VoicePackError(`${path}: not a regular file: remove it`);
};

const refuseImpostor = (path: string, head: Buffer): void => {
  const text = head.toString('latin1');
  const [, what] = impostors.find(([shape]) => shape.test(text)) ?? [];
  if (what !== undefined) throw new VoicePackError(`${path}: ${what}`);
};

/** `syrinx.json` of a pack whose voices have one language: what its files do not say, its owner does. */
export const ownerFile = 'syrinx.json';

/** How a pack names its language. BCP 47 asks programs to accept as many characters. */
export type LanguageName = string & tags.MaxLength<35>;

/** BCP 47. */
export type LanguageTag = LanguageName & tags.Pattern<'^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$'>;

interface OwnerSettings {
  readonly language?: LanguageTag;
}

const validate = typia.createValidateEquals<OwnerSettings>();

/** @throws {VoicePackError} in one line that names the file */
export const ownerLanguage = async (folder: PackFolder): Promise<string | null> =>
  (await folder.checkedJson(ownerFile, validate))?.language ?? null;

/** The licence of a pack, as the files that people download with a voice state it. */
const documentBytesMax = 1024 * 1024;
/** It stands in a table. */
const licenceUnitsMax = 80;

/** The top of the README of a Hugging Face repository: `license: mit`; of one with an unlisted licence: its name, too. */
const inFrontMatter = (text: string): string | undefined => {
  const [, matter = ''] = /^---\r?\n([\s\S]*?)\r?\n---/.exec(text) ?? [];
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*["']?([^"'\\s]+)`, 'm').exec(matter)?.[1];
  return field('license_name') ?? field('license');
};

/** Piper's `MODEL_CARD`: `* License: CC0`, of the recordings; `See URL` means the line with the address. */
const inModelCard = (text: string): string | undefined => {
  const field = (name: string) => new RegExp(`^[ \\t*-]*${name}:[ \\t]*(\\S.*)$`, 'im').exec(text)?.[1];
  const licence = field('licen[cs]e')?.trim();
  return licence !== undefined && /^see url/i.test(licence)
    ? `see ${field('URL') ?? 'its model card'}`
    : licence;
};

const documents = [
  [/^readme\.md$/i, inFrontMatter],
  [/^model_?card(?:\.\w+)?$/i, inModelCard],
] as const;

/** @returns nothing if no file states it */
export const licenceIn = async (folder: PackFolder): Promise<Pick<PackContent, 'licence'>> => {
  for (const [shape, read] of documents)
    for (const file of folder.files.filter((name) => shape.test(name))) {
      // A voice does not need documents that can be read.
      const text = await folder.bytes(file, documentBytesMax).catch(() => '');
      const licence = read(text.toString());
      if (licence !== undefined) return { licence: licence.slice(0, licenceUnitsMax) };
    }
  return {};
};
