/**
 * Voice packs on disk: MODELS_DIR has one folder for each, with a manifest.json that names its files. All that is wrong
 * with one is found here, at boot, and told in a line that names the file.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import typia from 'typia';
import { missingPhones } from './phones.js';
import { type VoicePack, VoicePackError } from '../../src/threads/voices.js';
import type { Manifest, PackFile, SyrinxPack } from './voice-pack.js';

/** The pack whose first speaker is the default; the others follow by name. */
const defaultPack = 'syrinx-en';
const manifestName = 'manifest.json';
/** What is larger is not read into memory: ours has 4 KiB. */
const manifestBytesMax = 1024 * 1024;
/** Of a file, in one go: a fraction of a millisecond. */
const hashedBytes = 256 * 1024;

const validateManifest = typia.createValidate<Manifest>();

const reasonOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'the file is missing';
  return code === undefined ? String(error) : `the file cannot be read (${code})`;
};

const parseManifest = (path: string, bytes: Buffer): Manifest => {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new VoicePackError(`${path}: not valid JSON`);
  }
  const result = validateManifest(value);
  if (!result.success) {
    const [first] = result.errors;
    throw new VoicePackError(
      `${path}: ${first?.path.replace('$input', 'manifest')} must be ${first?.expected}`,
    );
  }
  const missing = missingPhones(result.data.phones);
  if (missing.length > 0) throw new VoicePackError(`${path}: phones lacks ${missing.join(', ')}`);
  return result.data;
};

const readManifest = async (path: string): Promise<Manifest> => {
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > manifestBytesMax)
      throw new VoicePackError(`${path}: the file has ${size} bytes, too many for a manifest`);
    bytes = await readFile(path);
  } catch (error) {
    throw error instanceof VoicePackError ? error : new VoicePackError(`${path}: ${reasonOf(error)}`);
  }
  return parseManifest(path, bytes);
};

/** Piece by piece: a model of hundreds of megabytes is neither held in memory nor hashed in one go. */
const hashOf = async (file: FileHandle): Promise<string> => {
  const hash = createHash('sha256');
  const pieces = file.createReadStream({ start: 0, highWaterMark: hashedBytes, autoClose: false });
  for await (const piece of pieces) hash.update(piece as Buffer);
  return hash.digest('hex');
};

const verifyFile = async (path: string, file: FileHandle, { bytes, sha256 }: PackFile): Promise<void> => {
  const { size } = await file.stat();
  if (size !== bytes)
    throw new VoicePackError(`${path}: the file has ${size} bytes, its manifest says ${bytes}`);
  let found: string;
  try {
    found = await hashOf(file);
  } catch (error) {
    throw new VoicePackError(`${path}: ${reasonOf(error)}`);
  }
  if (found !== sha256)
    throw new VoicePackError(`${path}: the file is not the one of its manifest (sha256 differs)`);
};

/** @returns the path by which to open it */
const openGraph = async (path: string, expected: PackFile, held: FileHandle[]): Promise<string> => {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    throw new VoicePackError(`${path}: ${reasonOf(error)}`);
  }
  held.push(file);
  await verifyFile(path, file, expected);
  return process.platform === 'linux' ? `/proc/self/fd/${file.fd}` : path;
};

const readPack = async (modelsDir: string, name: string, held: FileHandle[]): Promise<VoicePack> => {
  const folder = join(modelsDir, name);
  const manifestPath = join(folder, manifestName);
  const manifest = await readManifest(manifestPath);
  const { encoder, frames, decoder } = manifest.files;
  const graphPaths = {
    encoder: join(folder, encoder.path),
    frames: join(folder, frames.path),
    decoder: join(folder, decoder.path),
  };
  const graphFiles = {
    encoder: await openGraph(graphPaths.encoder, encoder, held),
    frames: await openGraph(graphPaths.frames, frames, held),
    decoder: await openGraph(graphPaths.decoder, decoder, held),
  };
  const { speakers, sampleRateHz, language } = manifest;
  return {
    engine: 'syrinx',
    name,
    voices: speakers.map(({ id }) => ({ id, sampleRateHz, language })),
    modelBytes: encoder.bytes + frames.bytes + decoder.bytes,
    data: { manifest, manifestPath, graphPaths, graphFiles } satisfies SyrinxPack,
  };
};

const packFolders = async (modelsDir: string): Promise<string[]> => {
  try {
    const entries = await readdir(modelsDir, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => name);
  } catch (error) {
    throw new VoicePackError(`${modelsDir}: ${reasonOf(error).replace('the file', 'the folder of voices')}`);
  }
};

export interface ReadPacks {
  /** The default one first. */
  readonly packs: readonly VoicePack[];
  /** Closes the files, which threads can load until then though their names be taken by others. Idempotent. */
  readonly release: () => void;
}

/**
 * Reads and verifies all packs. Loads no model.
 *
 * @throws {VoicePackError} in one line that names the file
 */
export const readPacks = async (modelsDir: string): Promise<ReadPacks> => {
  const held: FileHandle[] = [];
  const release = () => {
    for (const file of held.splice(0)) void file.close();
  };
  try {
    return { packs: await readAll(modelsDir, held), release };
  } catch (error) {
    release();
    throw error;
  }
};

const readAll = async (modelsDir: string, held: FileHandle[]): Promise<VoicePack[]> => {
  const names = await packFolders(modelsDir);
  names.sort((a, b) => Number(b === defaultPack) - Number(a === defaultPack) || (a < b ? -1 : 1));
  if (names.length === 0) throw new VoicePackError(`${modelsDir}: the folder has no voice pack`);
  const packs: VoicePack[] = [];
  const owners = new Map<string, string>();
  for (const name of names) {
    const pack = await readPack(modelsDir, name, held);
    const manifestPath = join(modelsDir, name, manifestName);
    for (const { id } of pack.voices) {
      const owner = owners.get(id);
      if (owner !== undefined)
        throw new VoicePackError(`${manifestPath}: voice "${id}" is in ${owner} already`);
      owners.set(id, manifestPath);
    }
    packs.push(pack);
  }
  return packs;
};
