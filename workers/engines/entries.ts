/** The content of MODELS_DIR: folders, and files that belong together by their names. Each is a voice pack, or a finding. */
import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { listFolder } from '../../src/regular-file.js';
import { type PackFinding, VoicePackError } from '../../src/threads/voices.js';

/** A voice pack, as far as its name and place say. */
export interface PackEntry {
  readonly name: string;
  /** The folder of its files. */
  readonly path: string;
  /** Its files in that folder; `null`: all of them. */
  readonly files: readonly string[] | null;
}

export interface Entries {
  readonly packs: readonly PackEntry[];
  /** What is not a pack, but looks as if it should be one. */
  readonly findings: readonly PackFinding[];
}

const model = '.onnx';
/** Voice ids begin with the name, and appear in URLs, in lists with commas, and in file names. */
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
/** Makers of models name voices also in other scripts, and with spaces. */
const voiceIdShape = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._+()-]{0,127}$/u;
const isDocument = /^(?:readme|licen[cs]e|notice|copying|authors|changelog|model_?card)\b|\.(?:md|txt|pdf)$/i;

/** What to do with a file that belongs to no pack: the first match counts. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /\.(?:part|partial|crdownload|download|tmp|aria2)$/i,
    'the download is not complete: fetch the file again',
  ],
  [/\.(?:tar|zip|7z|rar|tar\.\w+|tgz|tbz2?)$/i, 'an archive: unpack it here, for example with tar -xf'],
  [
    /\.(?:pt|pth|ckpt)$/i,
    'weights for PyTorch: this service runs ONNX models, so get the ONNX export of the voice',
  ],
  [/\.(?:gguf|ggml)$/i, 'a model for llama.cpp: this service runs ONNX models'],
  [
    /\.onnx\.json$/i,
    'the configuration of a voice without its model: put the .onnx file of the same name beside it',
  ],
  [
    /\.(?:bin|npz|npy|safetensors|json|data|model)$/i,
    'it belongs to no model: put all files of a voice into a folder of their own',
  ],
];

export const remedyFor = (file: string): string | undefined =>
  remedies.find(([shape]) => shape.test(file))?.[1];

/** The first line of a message: those of onnxruntime have several. */
export const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';

/** @param what stands at `path` */
export const asPackError = (error: unknown, path: string, what = 'the file'): VoicePackError => {
  if (error instanceof VoicePackError) return error;
  const { code } = error as NodeJS.ErrnoException;
  const fault = code === 'ENOENT' ? `${what} is missing` : `${what} cannot be read (${code})`;
  return new VoicePackError(`${path}: ${code === undefined ? String(error) : fault}`);
};

export const nameFault = (name: string): string | null =>
  nameShape.test(name)
    ? null
    : 'a name has at most 100 letters, digits, dots, hyphens and underscores, and begins with a letter or a digit: rename it';

export const voiceIdFault = (id: string): string | null =>
  voiceIdShape.test(id)
    ? null
    : `the voice "${id}" cannot have this id: use at most 128 letters, digits, spaces and . _ - + ( ), with a letter or a digit first`;

/**
 * The pack of a folder or of a model file. All files with the model's name before their ending belong to it, except those of
 * a model beside it with a longer name: `a.int8.onnx` is no file of `a`.
 */
const entryAt = (folder: string, found: string, isFolder: boolean, beside: readonly string[]): PackEntry => {
  if (isFolder) return { name: found, path: join(folder, found), files: null };
  const start = found.slice(0, -model.length + 1);
  const others = beside
    .filter((file) => file.endsWith(model) && file !== found && file.startsWith(start))
    .map((file) => file.slice(0, -model.length + 1));
  const isOwn = (file: string) => file.startsWith(start) && !others.some((other) => file.startsWith(other));
  return { name: start.slice(0, -1), path: folder, files: beside.filter(isOwn) };
};

const namesMax = 10_000;

/** @throws {VoicePackError} it has too many */
const namesIn = async (folder: string): Promise<string[]> => {
  const names = (await listFolder(folder, namesMax)).map(({ name }) => name);
  if (names.length > namesMax)
    throw new VoicePackError(`${folder}: more than ${namesMax} files and folders: keep only voices in it`);
  return names.sort();
};

const isFolderAt = async (path: string): Promise<boolean> => {
  try {
    // A link counts as its target.
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
};

/** @returns the packs by name, and what belongs to none */
export const entriesIn = async (modelsDir: string): Promise<Entries> => {
  let names: string[];
  try {
    names = (await namesIn(modelsDir)).filter((name) => !name.startsWith('.'));
  } catch (error) {
    throw asPackError(error, modelsDir, 'the folder of voices');
  }
  const folders = new Set<string>();
  for (const name of names) if (await isFolderAt(join(modelsDir, name))) folders.add(name);
  const files = names.filter((name) => !folders.has(name));
  const packs: PackEntry[] = [];
  const findings: PackFinding[] = [];
  const taken = new Set<string>();
  for (const found of [...folders, ...files.filter((file) => file.endsWith(model))]) {
    const entry = entryAt(modelsDir, found, folders.has(found), files);
    const fault =
      nameFault(entry.name) ??
      (packs.some(({ name }) => name === entry.name)
        ? 'a folder has the same name: remove one of the two'
        : null);
    if (fault === null) packs.push(entry);
    else findings.push({ pack: found, fault: `${join(modelsDir, found)}: ${fault}` });
    for (const file of entry.files ?? []) taken.add(file);
  }
  for (const file of files) {
    const remedy = taken.has(file) || isDocument.test(file) ? undefined : remedyFor(file);
    if (remedy !== undefined) findings.push({ pack: file, fault: `${join(modelsDir, file)}: ${remedy}` });
  }
  return { packs: packs.sort((a, b) => (a.name < b.name ? -1 : 1)), findings };
};

/** The pack at a path: a folder, or the model among loose files. */
export const entryOf = async (path: string): Promise<PackEntry> => {
  const [folder, found] = [dirname(path), basename(path)];
  if (await isFolderAt(path)) return { name: found, path, files: null };
  let beside: string[];
  try {
    await stat(path);
    beside = await namesIn(folder);
  } catch (error) {
    throw asPackError(error, path);
  }
  if (!found.endsWith(model))
    throw new VoicePackError(
      `${path}: ${remedyFor(found) ?? 'not a voice: name a folder, or a file that ends in .onnx'}`,
    );
  return entryAt(folder, found, false, beside);
};
