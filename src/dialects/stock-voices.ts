/** The voices that another service has for everyone. Its clients send their names by default, and each has a voice of ours. */
import type { DialectParts } from './http-listener.js';

/** The most similar of our voices, by their descriptions. */
export const likenessToOpenAi: ReadonlyMap<string, string> = new Map([
  ['alloy', 'wren_conv'],
  ['ash', 'rook_conv'],
  ['ballad', 'finch'],
  ['cedar', 'rook'],
  ['coral', 'lark_conv'],
  ['echo', 'jay'],
  ['fable', 'finch'],
  ['marin', 'wren'],
  ['nova', 'lark'],
  ['onyx', 'heron'],
  ['sage', 'wren'],
  ['shimmer', 'lark'],
  ['verse', 'rook_conv'],
]);

/** The same for the ids of ElevenLabs' voices, new and old. */
export const likenessToElevenLabs: ReadonlyMap<string, string> = new Map([
  ['9BWtsMINqrJLrRacOk9x', 'lark_conv'], // Aria
  ['CwhRBWXzGAHq8TQ4Fs17', 'rook_conv'], // Roger
  ['EXAVITQu4vr4xnSDxMaL', 'wren_conv'], // Sarah, once Bella
  ['FGY2WhTYpPnrIDTdsKH5', 'lark_conv'], // Laura
  ['IKne3meq5aSn9XLyUdCD', 'rook_conv'], // Charlie
  ['JBFqnCBsd6RMkjVDRZzb', 'rook'], // George
  ['N2lVS1w4EtoT3dr4eOWO', 'jay'], // Callum
  ['SAz9YHcvj6GT2YYXdXww', 'finch'], // River
  ['SOYHLrjzK2X1ezoPC6cr', 'jay'], // Harry
  ['TX3LPaxmHKxFdv7VOQHJ', 'finch'], // Liam
  ['XB0fDUnXU5powFXDhCwa', 'wren'], // Charlotte
  ['Xb7hH8MSUJpSbSDYk0k2', 'wren'], // Alice
  ['XrExE9yKIg1WjnnlVkGX', 'wren_conv'], // Matilda
  ['bIHbv24MWmeRgasZH58o', 'finch'], // Will
  ['cgSgspJ2msm6clMCkdW9', 'lark'], // Jessica
  ['cjVigY5qzO86Huf0OWal', 'rook_conv'], // Eric
  ['hpp4J3VqNfWAUOO0d1Us', 'wren_conv'], // Bella
  ['iP95p4xoKVk53GoZ742B', 'rook_conv'], // Chris
  ['nPczCjzI2devNBz1zQrb', 'heron'], // Brian
  ['onwK4e9ZLuTAKqWW03F9', 'rook'], // Daniel
  ['pFZP5JQG7iQjIQuC4Bku', 'lark'], // Lily
  ['pNInz6obpgDQGcFmaJgB', 'heron'], // Adam
  ['pqHfZKP75CvOlQylNhV4', 'heron'], // Bill
  ['21m00Tcm4TlvDq8ikWAM', 'wren'], // Rachel
  ['AZnzlk1XvdvUeBnXmlld', 'lark'], // Domi
  ['ErXwobaYiN019PkySvjV', 'rook_conv'], // Antoni
  ['MF3mGyEYCl7XYWbV9V6O', 'lark'], // Elli
  ['TxGEqnHWrfWFTfGW9XjX', 'heron'], // Josh
  ['VR6AewLTigWG4xSOukaG', 'jay'], // Arnold
  ['yoZ06aMxZJJ28mfd3POQ', 'finch'], // Sam
]);

/**
 * Warns of names whose voice does not exist.
 *
 * @param variable that maps the names
 * @param configured names that the operator mapped
 */
export const stockVoices = (
  variable: string,
  likeness: ReadonlyMap<string, string>,
  configured: ReadonlyMap<string, string>,
  { shared, speech }: Pick<DialectParts, 'shared' | 'speech'>,
) => {
  /**
   * What the operator mapped comes first, then a voice of this name, then the usual voice for the name, or else the first.
   *
   * @param speakerIds the voices that the caller may use
   * @returns an id, which may be unknown
   */
  const voiceFor = (name: string, speakerIds: readonly string[]): string => {
    const asked = configured.get(name) ?? name;
    const like = likeness.get(asked);
    if (like === undefined || speakerIds.includes(asked)) return asked;
    return speakerIds.includes(like) ? like : (speakerIds[0] ?? asked);
  };
  const { speakerIds } = speech.voices;
  for (const [name, voice] of configured)
    if (!speakerIds.includes(voiceFor(name, speakerIds)))
      shared.services.log.warn(
        { [variable]: `${name}=${voice}` },
        `there is no voice "${voice}": requests for "${name}" are refused`,
      );
  /** The names that always have a voice, and those that the operator mapped. */
  const names = [...new Set([...likeness.keys(), ...configured.keys()])];
  return { names, voiceFor };
};

export type StockVoices = ReturnType<typeof stockVoices>;
