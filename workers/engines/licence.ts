/** The licence of a pack, as the files that people download with a voice state it. */
import type { PackContent, PackFolder } from './pack.js';

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
