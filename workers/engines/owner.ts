/** `syrinx.json` of a pack whose voices have one language: what its files do not say, its owner does. */
import typia, { type tags } from 'typia';
import type { PackFolder } from './pack.js';

export const ownerFile = 'syrinx.json';

/** BCP 47. */
export type LanguageTag = string & tags.Pattern<'^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$'>;

interface OwnerSettings {
  readonly language?: LanguageTag;
}

const validate = typia.createValidateEquals<OwnerSettings>();

/** @throws {VoicePackError} in one line that names the file */
export const ownerLanguage = async (folder: PackFolder): Promise<string | null> =>
  (await folder.checkedJson(ownerFile, validate))?.language ?? null;
