/** Puts a pack into MODELS_DIR, whole or not at all, and takes one out. */
import { createHash } from 'node:crypto';
import {
  type ReadStream,
  createReadStream,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { VoicePackError, closeFiles } from '../../src/threads/voices.js';
import { type PackEntry, nameFault } from '../../workers/engines/entries.js';
import { limits } from '../../src/limits.js';
import { PackFolder, openOwn } from '../../workers/engines/pack.js';
import type { PackPlaces } from '../../workers/engines/registry.js';
import { createProgress } from '../progress.js';
import { type Examined, examine, installed } from './packs.js';
import { formatBytes } from './report.js';
import { removeLeft } from '../../src/store/sqlite/files.js';

/** They begin with a dot: a reload of the service does not see them, and so never half of a pack. */
const addingPrefix = '.adding-';
const removingPrefix = '.removing-';

const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Reads to the end, and passes the bytes on. @returns the hash */
const hashOf = async (from: ReadStream, onBytes: (bytes: Buffer) => unknown): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of from as AsyncIterable<Buffer>) {
    hash.update(chunk);
    await onBytes(chunk);
  }
  return hash.digest('hex');
};

/** @throws {VoicePackError} the files are more than a pack, or not all of them are its own */
const sizeOf = async ({ path, files }: PackFolder): Promise<number> => {
  let total = 0;
  for (const file of files) {
    const { descriptor, bytes } = await openOwn(path, file);
    closeFiles([descriptor]);
    total += bytes;
  }
  if (total > limits.voicePackBytesMax)
    throw new VoicePackError(
      `${path}: the files have ${total} bytes, and at most ${limits.voicePackBytesMax} are allowed: this is not one voice pack`,
    );
  return total;
};

/** @throws {VoicePackError} a copy differs from its file */
const copyFiles = async (source: PackFolder, target: string): Promise<void> => {
  const { path, files } = source;
  const total = await sizeOf(source);
  // Each byte is written, then read back.
  const format = `Copying and verifying ${formatBytes(total)} [{bar}] {percentage} %`;
  const progress = createProgress(format, 2 * total);
  try {
    for (const file of files) {
      const copy = join(target, file);
      mkdirSync(dirname(copy), { recursive: true });
      const { descriptor, bytes } = await openOwn(path, file);
      // A file that grows is not followed. The stream closes the file.
      const from = createReadStream('', { fd: descriptor, end: Math.max(0, bytes - 1) });
      await using written = await open(copy, 'w');
      const digest = await hashOf(from, (chunk) => {
        progress.add(chunk.length);
        return written.writeFile(chunk);
      });
      await written.sync();
      if ((await hashOf(createReadStream(copy), ({ length }) => progress.add(length))) !== digest)
        throw new VoicePackError(`${copy}: the copy differs from ${join(path, file)}: check the disk`);
    }
  } finally {
    progress.stop();
  }
};

const checkName = (name: string, { modelsDir }: PackPlaces): void => {
  const fault = nameFault(name);
  if (fault !== null) throw new VoicePackError(`${name}: ${fault}, or give it another name with --name`);
  for (const taken of [name, `${name}.onnx`])
    if (existsSync(join(modelsDir, taken)))
      throw new VoicePackError(`${join(modelsDir, taken)} is there already: give another name with --name`);
};

/** @throws {VoicePackError} root would leave files that the user of the service cannot use */
const checkUser = (modelsDir: string): void => {
  const { uid } = statSync(modelsDir);
  if (process.getuid?.() === 0 && uid !== 0)
    throw new VoicePackError(
      `${modelsDir} belongs to the user with the number ${uid}: run this command as that user (sudo -u '#${uid}')`,
    );
};

/**
 * Copies a pack, verifies and tries the copy, and only then gives it its name.
 *
 * @throws {VoicePackError} why it was not added; nothing is left of it then
 */
export const addPack = async (entry: PackEntry, name: string, places: PackPlaces): Promise<Examined> => {
  const { modelsDir } = places;
  checkName(name, places);
  checkUser(modelsDir);
  for (const prefix of [addingPrefix, removingPrefix]) removeLeft(modelsDir, prefix);
  const before = await installed(places);
  const held: number[] = [];
  const source = await PackFolder.open(entry, held);
  const target = join(modelsDir, `${addingPrefix}${process.pid}`);
  const removeCopy = (): void => rmSync(target, { recursive: true, force: true });
  const onSignal = (signal: NodeJS.Signals): void => {
    removeCopy();
    process.exit(128 + constants.signals[signal]);
  };
  // Before the folder is made: a signal must not leave it behind.
  for (const signal of endSignals) process.once(signal, onSignal);
  try {
    removeCopy();
    mkdirSync(target);
    await copyFiles(source, target);
    const examined = await examine({ name, path: target, files: null }, places);
    const { pack, outcome } = examined;
    if ('fault' in outcome) throw new VoicePackError(`${entry.path}: ${outcome.fault}`);
    const known = new Set(before.packs.flatMap(({ voices }) => voices.map(({ id }) => id)));
    const clash = pack.voices.find(({ id }) => known.has(id));
    if (clash !== undefined)
      throw new VoicePackError(`a voice "${clash.id}" is installed already: give another name with --name`);
    renameSync(target, join(modelsDir, name));
    return examined;
  } catch (error) {
    removeCopy();
    const code = (error as NodeJS.ErrnoException).code;
    throw code === undefined
      ? error
      : new VoicePackError(`the pack was not added: ${(error as Error).message}`);
  } finally {
    for (const signal of endSignals) process.removeListener(signal, onSignal);
    closeFiles(held);
  }
};

/** A running service goes on speaking with it until SIGHUP. */
export const removePack = async ({ path, files, name }: PackEntry): Promise<void> => {
  if (files !== null) {
    for (const file of files) await rm(join(path, file));
    return;
  }
  const hidden = join(dirname(path), `${removingPrefix}${name}-${process.pid}`);
  renameSync(path, hidden);
  await rm(hidden, { recursive: true });
};
