/** The file beside every Piper voice, `NAME.onnx.json`. */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import { checked, type LanguageName, type SampleRateHz } from '../pack.js';

type Positive = number & tags.ExclusiveMinimum<0>;
type Id = number & tags.Type<'uint32'>;
/** Published voices have one. */
type Ids = readonly Id[] & tags.MaxItems<8>;

/** The fields that are used, under their own names. */
export interface PiperConfig {
  readonly audio: { readonly sample_rate: SampleRateHz };
  readonly espeak?: { readonly voice?: LanguageName };
  readonly language?: { readonly code?: LanguageName };
  readonly inference?: {
    readonly noise_scale?: number & tags.Minimum<0>;
    /** Published voices have 1 to 2. */
    readonly length_scale?: Positive & tags.Maximum<5>;
    readonly noise_w?: number & tags.Minimum<0>;
  };
  readonly phoneme_type?: string;
  readonly phoneme_id_map: Readonly<Record<string, Id | Ids>>;
  readonly vowel_clusters?: readonly (readonly string[])[] | null;
  readonly num_speakers?: number & tags.Type<'uint32'> & tags.Maximum<10_000>;
  readonly speaker_id_map?: Readonly<Record<string, Id>>;
  readonly default_speaker_id?: Id | null;
  readonly hop_length?: number & tags.Type<'uint32'> & tags.Minimum<1>;
  readonly dataset?: string;
}

const validate = typia.createValidate<PiperConfig>();

/** Phonemes that need a program that this service does not have. */
const otherPhonemes: Readonly<Record<string, string>> = {
  pinyin: 'use a Chinese voice with espeak phonemes (such as zh_CN-huayan)',
  hebrew: 'use a Hebrew voice with text or espeak phonemes',
  japanese: 'use a Japanese voice with text or espeak phonemes',
};

/** @throws {VoicePackError} in one line that names the file */
export const parseConfig = (path: string, value: unknown): PiperConfig => {
  const config = checked(path, 'config', validate(value));
  const type = config.phoneme_type ?? 'espeak';
  if (type !== 'espeak' && type !== 'text')
    throw new VoicePackError(
      `${path}: its phonemes are of the type "${type}", which this service cannot make: ${otherPhonemes[type] ?? 'use a voice with espeak phonemes'}`,
    );
  if (type === 'espeak' && !config.espeak?.voice)
    throw new VoicePackError(`${path}: espeak.voice is missing: it names the language of the voice`);
  for (const symbol of ['^', '$', '_'])
    if (config.phoneme_id_map[symbol] === undefined)
      throw new VoicePackError(
        `${path}: phoneme_id_map has no "${symbol}": use the file that belongs to the voice`,
      );
  const speakers = config.num_speakers ?? 1;
  for (const id of [config.default_speaker_id ?? 0, ...Object.values(config.speaker_id_map ?? {})])
    if (id >= Math.max(1, speakers))
      throw new VoicePackError(`${path}: speaker ${id} is not one of its ${speakers} speakers`);
  return config;
};

/** The configuration of a voice without that file, as sherpa-onnx packages it: metadata of the model, and `tokens.txt`. */
export const configOfPackage = (metadata: ReadonlyMap<string, string>, tokens: string): unknown => ({
  audio: { sample_rate: Number(metadata.get('sample_rate')) },
  espeak: { voice: metadata.get('voice') },
  num_speakers: Number(metadata.get('n_speakers') ?? 1),
  phoneme_id_map: Object.fromEntries(
    tokens.split(/\r?\n/).flatMap((line) => {
      const [, symbol, id] = /^(.+) (\d+)$/u.exec(line) ?? [];
      return symbol === undefined ? [] : [[symbol, [Number(id)]]];
    }),
  ),
});

/** A voice of a pack: its id in the graph, and its name, which is `null` if it is the only voice. */
export interface PiperSpeaker {
  readonly id: number;
  readonly name: string | null;
}

/** Its ids stand for characters. */
export const isText = ({ phoneme_type }: PiperConfig): boolean => phoneme_type === 'text';

/** The default first. */
export const speakersOf = ({
  num_speakers: count = 1,
  speaker_id_map: map = {},
  default_speaker_id: first,
}: PiperConfig): PiperSpeaker[] => {
  if (count <= 1) return [{ id: 0, name: null }];
  const names = new Map(Object.entries(map).map(([name, id]) => [id, name]));
  const speakers = Array.from({ length: count }, (_, id) => ({ id, name: names.get(id) ?? String(id) }));
  const [chosen] = speakers.splice(first ?? 0, 1);
  return [chosen!, ...speakers];
};

/** BCP 47 of a language as Piper writes it (`en_US`), or of a voice of espeak-ng (`en-us`, `cmn`). */
export const languageOf = ({ language, espeak }: PiperConfig): string => {
  const [code = 'und', region] = (language?.code ?? espeak?.voice ?? '').split(/[_-]/);
  return region === undefined || !/^[a-z]{2}$/i.test(region) ? code : `${code}-${region.toUpperCase()}`;
};
