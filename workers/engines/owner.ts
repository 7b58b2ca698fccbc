/** `syrinx.json` of a pack whose voices have one language: what its files do not say, its owner does. */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../src/threads/voices.js';
import type { PackFolder } from './pack.js';

export const ownerFile = 'syrinx.json';

interface OwnerSettings {
  /** BCP 47. */
  readonly language?: string & tags.Pattern<'^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$'>;
}

const validate = typia.createValidateEquals<OwnerSettings>();

/** @throws {VoicePackError} in one line that names the file */
export const ownerLanguage = async (folder: PackFolder): Promise<string | null> => {
  if (!folder.files.includes(ownerFile)) return null;
  const result = validate(await folder.json(ownerFile));
  if (result.success) return result.data.language ?? null;
  const [first] = result.errors;
  throw new VoicePackError(
    `${folder.pathOf(ownerFile)}: ${first?.path.replace('$input', ownerFile)} must be ${first?.expected}`,
  );
};
