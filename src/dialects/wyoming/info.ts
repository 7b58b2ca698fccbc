/** The answer to `describe`: what the service can do, and its voices with their languages. */
import { version } from '../../metrics.js';
import type { VoiceCatalogue } from '../../threads/voices.js';

const attribution = { name: 'syrinx', url: '' };

/** Fields of other kinds of services: a client looks for the ones that it wants. */
const others = { asr: [], handle: [], intent: [], wake: [], mic: [], snd: [] };

const voiceOf = (id: string, language: string) => ({
  name: id,
  description: id,
  attribution,
  installed: true,
  version,
  languages: [language],
});

/** @param speakerIds voices that may be used */
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

/** What a client says of the voice that it wants. */
export interface WantedVoice {
  name?: string | null;
  /** One of the speakers of a voice with several. */
  speaker?: string | null;
  language?: string | null;
}

const primary = (language: string): string => language.toLowerCase().replace(/[-_].*$/s, '');

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
  const alike = (id: string): boolean => primary(voices.language(id)) === primary(wanted);
  return speakerIds.find(same) ?? speakerIds.find(alike) ?? first;
};
