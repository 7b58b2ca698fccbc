/** What will be said of a text: rules and lexicons here, as for a request, and phonemes on the administration thread. */
import { quoted } from '../api/quoted.js';
import { settingsOf } from '../api/speech-settings.js';
import type { Bounds } from '../limits.js';
import { draftOf, saidOf } from '../speech/said.js';
import type { Lexicons } from '../threads/lexicons.js';
import type { VoicePack } from '../threads/voices.js';
import type { ConsoleAdministration } from './administration.js';
import type { AccountView, Answer, Question } from './contract.js';
import { ConsoleRefusal } from './refusal.js';

export interface SayerParts {
  readonly administration: Pick<ConsoleAdministration, 'pronounce'>;
  readonly lexicons: Pick<Lexicons, 'of'>;
  /** Of the voices that speak now. */
  readonly packs: () => readonly VoicePack[];
  readonly bounds: Bounds;
}

/** @returns what answers the call */
export const sayerOf =
  ({ administration, bounds, lexicons, packs }: SayerParts) =>
  async (account: AccountView, question: Question<'said'>): Promise<Answer<'said'>> => {
    const { normalize, text, voice: voiceId } = question;
    const pack = packs().find(({ voices }) => voices.some(({ id }) => id === voiceId));
    const voice = pack?.voices.find(({ id }) => id === voiceId);
    if (pack === undefined || voice === undefined)
      throw new ConsoleRefusal('notFound', `There is no voice ${quoted(voiceId, bounds)}.`);
    const settings = settingsOf({ voiceId, normalizeText: normalize }, account);
    const draft = (hasPhonemes: boolean) =>
      draftOf(text, {
        settings,
        language: voice.language,
        lexicons: lexicons.of(account.name, settings),
        ...{ bounds, hasPhonemes },
      });
    const first = await draft(true);
    const ipas = await administration.pronounce(pack, voice, first.segments);
    const { spoken, words } = saidOf(ipas === null ? await draft(false) : first, ipas ?? []);
    return { spoken, hasPhonemes: ipas !== null, words };
  };
