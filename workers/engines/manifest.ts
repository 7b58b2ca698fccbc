/**
 * Voice packs on disk: MODELS_DIR has one folder for each, with a manifest.json that names its files. All that is wrong
 * with one is found here, at boot, and told in a line that names the file.
 */
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import typia, { type tags } from 'typia';
import { missingPhones } from './phones.js';

export class VoicePackError extends Error {
  override readonly name = 'VoicePackError';
}

/** A file of the pack's own folder. */
export interface PackFile {
  readonly path: string & tags.Pattern<'^[A-Za-z0-9_][A-Za-z0-9._-]*$'>;
  readonly bytes: number & tags.Type<'uint32'> & tags.Minimum<1>;
  readonly sha256: string & tags.Pattern<'^[0-9a-f]{64}$'>;
}

export interface Speaker {
  readonly id: string & tags.Pattern<'^[a-z0-9][a-z0-9_-]{0,63}$'>;
  readonly description: string;
  /** Weights of the speakers that the nets were trained with. */
  readonly mix: (number & tags.Minimum<0> & tags.Maximum<1>)[] & tags.MinItems<3> & tags.MaxItems<3>;
  /** Factor of F0. */
  readonly pitch: number & tags.Minimum<0.5> & tags.Maximum<2>;
  /** Frequency scale of the spectral envelope: above 1 a longer vocal tract. */
  readonly warp: number & tags.Minimum<0.7> & tags.Maximum<1.4>;
  /** Factor of pace. */
  readonly rate: number & tags.Minimum<0.5> & tags.Maximum<2>;
  /** Factor of the F0 range. */
  readonly liveliness: number & tags.Minimum<0> & tags.Maximum<3>;
}

export interface Manifest {
  readonly format: 'syrinx-1';
  readonly name: string;
  readonly language: string;
  readonly sampleRateHz: 24000;
  readonly licence: string;
  readonly files: { readonly encoder: PackFile; readonly frames: PackFile; readonly decoder: PackFile };
  /** Names in id order. */
  readonly phones: string[];
  /** `subFrames` vocoder frames of `hopSamples` samples make up one frame of `durationMs`. */
  readonly frame: { readonly durationMs: 10; readonly subFrames: 2; readonly hopSamples: 120 };
  /** Receptive fields of the encoder in phones and of the frame net in frames, at either side. */
  readonly margins: {
    readonly phones: number & tags.Type<'uint32'> & tags.Maximum<64>;
    readonly frames: number & tags.Type<'uint32'> & tags.Maximum<64>;
  };
  /** Natural logarithms of F0 in Hz, of the speakers that the nets were trained with. */
  readonly trainingF0: { readonly logMean: number[] & tags.MinItems<3> & tags.MaxItems<3> };
  readonly hiddenSize: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<4096>;
  /** The pack's default first. */
  readonly speakers: Speaker[] & tags.MinItems<1>;
}

export type GraphName = keyof Manifest['files'];

export interface VoicePack {
  readonly manifest: Manifest;
  readonly manifestPath: string;
  readonly graphPaths: Readonly<Record<GraphName, string>>;
}

/** The pack whose first speaker is the default; the others follow by name. */
const defaultPack = 'syrinx-en';
const manifestName = 'manifest.json';

const validateManifest = typia.createValidate<Manifest>();

const reasonOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'the file is missing';
  return code === undefined ? String(error) : `the file cannot be read (${code})`;
};

const read = async (path: string): Promise<Buffer> => {
  try {
    return await readFile(path);
  } catch (error) {
    throw new VoicePackError(`${path}: ${reasonOf(error)}`);
  }
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

const verifyFile = async (path: string, { bytes, sha256 }: PackFile): Promise<void> => {
  const content = await read(path);
  if (content.length !== bytes)
    throw new VoicePackError(`${path}: the file has ${content.length} bytes, its manifest says ${bytes}`);
  if (createHash('sha256').update(content).digest('hex') !== sha256)
    throw new VoicePackError(`${path}: the file is not the one of its manifest (sha256 differs)`);
};

const readPack = async (folder: string): Promise<VoicePack> => {
  const manifestPath = join(folder, manifestName);
  const manifest = parseManifest(manifestPath, await read(manifestPath));
  const { encoder, frames, decoder } = manifest.files;
  const graphPaths = {
    encoder: join(folder, encoder.path),
    frames: join(folder, frames.path),
    decoder: join(folder, decoder.path),
  };
  for (const name of ['encoder', 'frames', 'decoder'] as const)
    await verifyFile(graphPaths[name], manifest.files[name]);
  return { manifest, manifestPath, graphPaths };
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

/**
 * Reads and verifies all packs, the default one first. Loads no model.
 *
 * @throws {VoicePackError} in one line that names the file
 */
export const readPacks = async (modelsDir: string): Promise<VoicePack[]> => {
  const names = await packFolders(modelsDir);
  names.sort((a, b) => Number(b === defaultPack) - Number(a === defaultPack) || (a < b ? -1 : 1));
  if (names.length === 0) throw new VoicePackError(`${modelsDir}: the folder has no voice pack`);
  const packs: VoicePack[] = [];
  const owners = new Map<string, string>();
  for (const name of names) {
    const pack = await readPack(join(modelsDir, name));
    for (const { id } of pack.manifest.speakers) {
      const owner = owners.get(id);
      if (owner !== undefined)
        throw new VoicePackError(`${pack.manifestPath}: voice "${id}" is in ${owner} already`);
      owners.set(id, pack.manifestPath);
    }
    packs.push(pack);
  }
  return packs;
};

export interface Catalogue {
  /** The default voice first. */
  readonly speakerIds: readonly string[];
  readonly sampleRateHz: number;
}

/**
 * What the front thread needs of the voices at boot: all files verified, no model loaded.
 *
 * @throws {VoicePackError} in one line that names the file
 */
export const readCatalogue = async (modelsDir: string): Promise<Catalogue> => {
  const packs = await readPacks(modelsDir);
  return {
    speakerIds: packs.flatMap(({ manifest }) => manifest.speakers.map(({ id }) => id)),
    sampleRateHz: packs[0]!.manifest.sampleRateHz,
  };
};
