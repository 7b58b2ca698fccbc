/**
 * Files that are derived from a model: its parts, with their weights in one file that all threads map. Each set is a
 * folder named by a hash of its source and of its recipe, so that it is made once, and whole: it appears by a rename.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { Model, ModelFile } from './model.js';
import { writeModels } from './write.js';

/** Unused sets are kept up to this size together, because an owner may try a voice again. */
const unusedBytesMax = 1024 * 1024 * 1024;
/** Milliseconds after which the folder of an unfinished set is removed: its maker has ended. */
const unfinishedMs = 3_600_000;

const hashedBytes = 256 * 1024;

/** Of the sets that this process makes, one after the other. */
const unfinishedPrefix = `.new-${process.pid}-`;

interface DerivedFile extends ModelFile {
  readonly bytes: number;
}

/** Of the whole content, read in pieces: a model of hundreds of megabytes is never held in memory. */
export const hashOf = async ({ openPath }: ModelFile): Promise<string> => {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(openPath, { highWaterMark: hashedBytes }))
    hash.update(piece as Buffer);
  return hash.digest('hex');
};

const bytesOf = async (folder: string): Promise<number> => {
  let bytes = 0;
  for (const name of await readdir(folder, { recursive: true }))
    bytes += (await stat(join(folder, name))).size;
  return bytes;
};

/**
 * Makes a folder, which appears whole. Several threads or processes may make it at the same time.
 *
 * @param unfinished the start of the path of the folder that `make` fills
 */
export const madeWhole = async (
  folder: string,
  unfinished: string,
  make: (folder: string) => Promise<void>,
): Promise<void> => {
  const target = await mkdtemp(unfinished);
  try {
    await make(target);
    await rename(target, folder);
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    // Another one was faster.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
};

export class DerivedFiles {
  readonly #folder: string;
  readonly #used = new Set<string>();

  /** @param folder made when it is needed */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * The folder of a set.
   *
   * @param sources their bytes are part of the name
   * @param recipe names what is made of them, and the version of the code that makes it
   * @param make writes the files to an empty folder
   */
  async set(
    sources: readonly ModelFile[],
    recipe: string,
    make: (folder: string) => Promise<void>,
  ): Promise<string> {
    const hash = createHash('sha256').update(recipe);
    for (const source of sources) hash.update(await hashOf(source));
    const name = hash.digest('hex').slice(0, 32);
    const folder = join(this.#folder, name);
    this.#used.add(name);
    const now = new Date();
    try {
      // The time of a set is that of its last use.
      await utimes(folder, now, now);
      return folder;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    await mkdir(this.#folder, { recursive: true });
    await madeWhole(folder, join(this.#folder, unfinishedPrefix), make);
    return folder;
  }

  /**
   * Models whose weights are in one file beside them, which all threads map.
   *
   * @param sources the files that they are made of: all models together are as large
   * @returns the file of each
   */
  async models<Name extends string>(
    sources: readonly ModelFile[],
    recipe: string,
    models: Readonly<Record<Name, Model>>,
  ): Promise<Record<Name, DerivedFile>> {
    let sourceBytes = 0;
    for (const { openPath } of sources) sourceBytes += (await stat(openPath)).size;
    const folder = await this.set(sources, recipe, (target) => writeModels(target, models, sourceBytes));
    const names = Object.keys(models);
    const bytes = Math.ceil(sourceBytes / names.length);
    const files = names.map((name) => {
      const path = join(folder, `${name}.onnx`);
      return [name, { path, openPath: path, bytes }];
    });
    return Object.fromEntries(files) as Record<Name, DerivedFile>;
  }

  /**
   * Removes sets that `set` did not return, the longest unused first, until the others are within their bound; and what
   * makers left that ended.
   */
  async prune(): Promise<void> {
    const unused: { folder: string; usedMs: number; bytes: number }[] = [];
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const folder = join(this.#folder, name);
      try {
        const { mtimeMs: usedMs } = await stat(folder);
        const isOfOthers = name.startsWith('.') && !name.startsWith(unfinishedPrefix);
        if (isOfOthers && Date.now() - usedMs < unfinishedMs) continue;
        if (!this.#used.has(name))
          unused.push({ folder, usedMs: name.startsWith('.') ? 0 : usedMs, bytes: await bytesOf(folder) });
      } catch {
        // Another process removed it.
      }
    }
    let bytes = unused.reduce((sum, set) => sum + set.bytes, 0);
    for (const set of unused.toSorted((a, b) => a.usedMs - b.usedMs)) {
      if (bytes <= unusedBytesMax && set.usedMs > 0) return;
      // What another user made may stay.
      await rm(set.folder, { recursive: true, force: true }).catch(() => undefined);
      bytes -= set.bytes;
    }
  }
}
