/** What names, credits and properties of keys may be. */
import type { SpeakingDefaults } from '../api/speech-settings.js';
import { invalid, type KeyProperties } from '../store/store.js';
import { looksLikeKey } from './keys.js';

/** Credits of one grant, of a balance after it, and of a limit: far below the largest exact integer. */
export const CREDITS_MAX = 1_000_000_000_000;
const NAME_MAX = 64;
/** Each request of the key reads them. */
const VOICES_MAX = 100;
const VOICE_ID_MAX = 200;
/** Later years have another form in ISO 8601. */
const EXPIRY_MS_MAX = Date.UTC(10_000, 0, 1) - 1;

export const checkCredits = (credits: number, min: number, field = 'credits'): void => {
  if (!Number.isSafeInteger(credits) || credits < min || credits > CREDITS_MAX)
    throw invalid(field, `Credits are a whole number from ${min} to ${CREDITS_MAX}`);
};

/** Names are compared without case, and in one Unicode form, so that names which look alike are equal. */
export const handleOf = (name: string): string => name.normalize('NFKC').toLowerCase();

/** What cannot be the name of anything needs no look into the store, which may not even take its characters. */
export const isName = (name: string): boolean =>
  !/[\p{C}\p{Default_Ignorable_Code_Point}]|^\s|\s$|^$/u.test(name) &&
  name.length <= NAME_MAX &&
  !looksLikeKey(name);

export const checkName = (what: string, name: string): void => {
  if (!isName(name))
    throw invalid(
      'name',
      `The name of ${what} has 1 to ${NAME_MAX} printable characters, no space at either end, and does not look like ` +
        'a key',
    );
};

/** They act in the audit table, too. */
const actorNames = ['command line', 'service', 'nobody'];

/** @throws {AdministrationError} the name of a new user shows another one, in the audit table or beside its look-alike */
export const refuseImpostor = (name: string): void => {
  const isMixed = /\p{Script=Latin}/u.test(name) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(name);
  if (isMixed || actorNames.includes(handleOf(name).replace(/\s+/g, ' ')))
    throw invalid(
      'name',
      `A user is not named ${actorNames.join(', ')}, nor in letters of several scripts: choose another name`,
    );
};

/** Checks what is to be changed, and sorts out repeated voices. */
export const checkProperties = (changes: Partial<KeyProperties>, nowMs: number): Partial<KeyProperties> => {
  const { name, expiresAtMs, creditLimit, voices } = changes;
  checkSpeaking(changes);
  if (name !== undefined && name !== '') checkName('a key', name);
  if (expiresAtMs !== undefined && expiresAtMs !== null)
    if (!Number.isSafeInteger(expiresAtMs) || expiresAtMs <= nowMs || expiresAtMs > EXPIRY_MS_MAX)
      throw invalid('expiresAtMs', 'A key expires in the future, and before the year 10000');
  if (creditLimit !== undefined && creditLimit !== null) checkCredits(creditLimit, 0, 'creditLimit');
  if (voices === undefined || voices === null) return changes;
  const distinct = [...new Set(voices)];
  // Stores and lists separate them by commas.
  const isId = (id: string): boolean => /^[^\s,\p{C}]+$/u.test(id) && id.length <= VOICE_ID_MAX;
  if (distinct.length < 1 || distinct.length > VOICES_MAX || !distinct.every(isId))
    throw invalid(
      'voices',
      `A key names 1 to ${VOICES_MAX} voices by their ids, as the speaker list has them`,
    );
  return { ...changes, voices: distinct };
};

export const checkSpeaking = ({ speed, lexiconId }: Partial<SpeakingDefaults>): void => {
  if (speed !== undefined && speed !== null && !(speed >= 0.5 && speed <= 2))
    throw invalid('speed', 'A speed is a number from 0.5 to 2');
  if (lexiconId === undefined || lexiconId === null) return;
  // It is the name of a folder.
  if (!/^[^\s./\\\p{C}][^/\\\p{C}]*$/u.test(lexiconId) || lexiconId.length > NAME_MAX)
    throw invalid(
      'lexiconId',
      'The name of a lexicon is that of its folder in lexicons/named, of at most 64 characters, without a path',
    );
};

/** @param known the lexicons that can be named, and that of the key or account: its folder may be missing only for a while */
const checkLexicon = ({ lexiconId }: Partial<SpeakingDefaults>, known: readonly (string | null)[]): void => {
  if (lexiconId === undefined || lexiconId === null || known.includes(lexiconId)) return;
  const names = known.filter((name) => name !== null);
  const remedy =
    names.length === 0
      ? 'make its folder in lexicons/named of the data folder first'
      : `choose from ${names.join(', ')}`;
  throw invalid('lexiconId', `There is no lexicon "${lexiconId}": ${remedy}`);
};

/**
 * @param known the installed voices, and those that the key has already: their pack may be missing only for a while
 */
const checkVoices = ({ voices }: Partial<KeyProperties>, known: readonly string[]): void => {
  const unknown = voices?.find((id) => !known.includes(id));
  if (unknown !== undefined)
    throw invalid('voices', `No voice ${unknown} is installed: choose from ${known.join(', ')}`);
};

/** What a service has that a key may name; what is absent is not known, and then any name is taken. */
export interface Installed {
  readonly voices?: readonly string[];
  readonly lexicons?: readonly string[];
}

/** @param before what the key or account has already: it may keep that */
export const checkInstalled = (
  changes: Partial<KeyProperties>,
  { voices, lexicons }: Installed,
  before: Partial<KeyProperties> = {},
): void => {
  if (voices !== undefined) checkVoices(changes, [...voices, ...(before.voices ?? [])]);
  if (lexicons !== undefined) checkLexicon(changes, [...lexicons, before.lexiconId ?? null]);
};
