/** The answer to `describe`: what the service can do, and its voices with their languages. */
import { version } from '../../version.js';
import { primaryLanguage } from '../../text/language.js';
import type { VoiceCatalogue } from '../../threads/voices.js';

const attribution = { name: 'syrinx', url: '' };

/** Fields for other kinds of services, of which this one has none. */
const others = { asr: [], handle: [], intent: [], wake: [], mic: [], snd: [] };

const voiceOf = (id: string, language: string) => ({
  name: id,
  description: id,
  attribution,
  installed: true,
  version,
  languages: [language],
});

/** @param speakerIds the voices that the client may use */
export const infoOf = (voices: VoiceCatalogue, speakerIds: readonly string[]) => ({
  tts: [
    {
      name: 'syrinx',
      description: 'Syrinx text to speech',
      attribution,
      installed: true,
      version,
      supports_synthesize_streaming: true,
      voices: speakerIds.map((id) => voiceOf(id, voices.language(id))),
    },
  ],
  ...others,
});

/** The voice that a client asks for. */
export interface WantedVoice {
  name?: string | null;
  /** One of the speakers of a voice with several. */
  speaker?: string | null;
  language?: string | null;
}

/** @returns an id, which may be unknown if the client gave a name; without one, a voice of the language, or the first */
export const voiceFor = (
  { name, speaker, language }: WantedVoice,
  voices: VoiceCatalogue,
  speakerIds: readonly string[],
): string => {
  if (name) {
    const ofSpeaker = `${name}-${speaker ?? ''}`;
    return speakerIds.includes(ofSpeaker) ? ofSpeaker : name;
  }
  const first = speakerIds[0] ?? '';
  if (!language) return first;
  const wanted = language.toLowerCase().replaceAll('_', '-');
  const same = (id: string): boolean => voices.language(id).toLowerCase() === wanted;
  const alike = (id: string): boolean => primaryLanguage(voices.language(id)) === primaryLanguage(wanted);
  return speakerIds.find(same) ?? speakerIds.find(alike) ?? first;
};
