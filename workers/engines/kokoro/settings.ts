/** The JSON files of a pack: what the makers of a model say, and what its owner adds in `syrinx.json`. */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import { type LanguageTag, ownerFile, type PackFolder, parseJson } from '../pack.js';
import type { FamilyName } from './families.js';
import type { Vocabulary } from './symbols.js';

/** The fields of `config.json` that are used. */
interface Config {
  /** KittenTTS: `ONNX1` or `ONNX2`. */
  readonly type?: unknown;
  readonly model_file?: string;
  /** Factors of pace, by voice. */
  readonly speed_priors?: Record<string, number & tags.ExclusiveMinimum<0> & tags.Maximum<10>>;
  /** Voices by their names for people. */
  readonly voice_aliases?: Record<string, string>;
  /** Kokoro. */
  readonly vocab?: Record<string, number & tags.Type<'uint32'>>;
  readonly plbert?: unknown;
}

interface Tokenizer {
  readonly model: { readonly vocab: Record<string, number & tags.Type<'uint32'>> };
}

/** `syrinx.json`: what the owner of the pack decides. */
interface OwnerSettings {
  /** For voices whose names show none. */
  readonly language?: LanguageTag;
  /** Further voices, as mixtures: `{ "warm": "af_heart:2+bf_emma:1" }`. */
  readonly blends?: Record<string, string>;
}

export interface Blend {
  readonly name: string;
  readonly parts: readonly { readonly voice: string; readonly weight: number }[];
}

/** The settings of a pack, which are known before its voices are read. */
export interface PackSettings {
  readonly family: FamilyName | null;
  readonly vocabulary: Vocabulary | null;
  readonly speedPriors: Readonly<Record<string, number>>;
  readonly aliases: Readonly<Record<string, string>>;
  readonly language: string | null;
  readonly blends: readonly Blend[];
}

const validateConfig = typia.createValidate<Config>();
const validateTokenizer = typia.createValidate<Tokenizer>();
const validateOwner = typia.createValidateEquals<OwnerSettings>();

/** Each takes as much memory as a voice. */
const blendsMax = 100;
/** Voices of one: 80,000 took minutes to mix. */
const blendPartsMax = 100;
const blendName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** A weight of more digits before the point could be infinite. */
const blendPart = /^([^:+]+)(?::(\d{1,9}(?:\.\d+)?))?$/;

/** @throws {VoicePackError} if it is not written like `af_heart:2+bf_emma:1` */
const parseBlend = (path: string, name: string, recipe: string): Blend => {
  if (!blendName.test(name))
    throw new VoicePackError(
      `${path}: "${name}" cannot be the name of a voice: use letters, digits, _ and -`,
    );
  const parts = recipe.split('+').map((part) => {
    const [, voice = '', weight = '1'] = blendPart.exec(part.trim()) ?? [];
    return { voice, weight: Number(weight) };
  });
  if (parts.length > blendPartsMax || parts.some(({ voice, weight }) => voice === '' || weight <= 0))
    throw new VoicePackError(
      `${path}: the blend "${name}" must be at most ${blendPartsMax} voices with weights, like af_heart:2+bf_emma:1`,
    );
  return { name, parts };
};

/** Vocabularies of sherpa's packages: a symbol and its id in each line. The symbol can be a space. */
const parseTokens = (path: string, text: string): Vocabulary => {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  return new Map(
    lines.map((line) => {
      const [, symbol, id] = /^(.+?)[ \t](\d+)$/u.exec(line) ?? [];
      if (symbol === undefined)
        throw new VoicePackError(`${path}: "${line.slice(0, 40)}" is not a symbol with its id`);
      return [symbol, Number(id)];
    }),
  );
};

/** The metadata of a model that have its `config.json`. */
const configKey = 'kokoro_config';
const tokensFile = 'tokens.txt';
const tokenizerFile = 'tokenizer.json';
const tokensBytesMax = 1024 * 1024;

const familyOf = (config: Config | null, metadata: ReadonlyMap<string, string>): FamilyName | null => {
  const type = metadata.get('model_type') ?? '';
  if (type.startsWith('kokoro') || metadata.has(configKey)) return 'kokoro';
  if (type.startsWith('kitten')) return 'kitten';
  if (typeof config?.type === 'string' && /^ONNX\d/.test(config.type)) return 'kitten';
  return config?.plbert === undefined ? null : 'kokoro';
};

const vocabularyOf = async (
  folder: PackFolder,
  config: Config | null,
  metadata: ReadonlyMap<string, string>,
): Promise<Vocabulary | null> => {
  const inside = metadata.get(configKey);
  if (inside !== undefined) {
    const place = `${folder.path}: ${configKey} in the metadata of its model`;
    const result = validateConfig(parseJson(place, inside));
    if (result.success && result.data.vocab !== undefined) return new Map(Object.entries(result.data.vocab));
  }
  if (config?.vocab !== undefined) return new Map(Object.entries(config.vocab));
  const tokenizer = await folder.checkedJson(tokenizerFile, validateTokenizer);
  if (tokenizer !== null) return new Map(Object.entries(tokenizer.model.vocab));
  if (!folder.files.includes(tokensFile)) return null;
  const text = (await folder.bytes(tokensFile, tokensBytesMax)).toString('utf8');
  return parseTokens(folder.pathOf(tokensFile), text);
};

export const readConfig = (folder: PackFolder): Promise<Config | null> =>
  folder.checkedJson('config.json', validateConfig);

/** @throws {VoicePackError} in one line that names the file */
export const readSettings = async (
  folder: PackFolder,
  config: Config | null,
  metadata: ReadonlyMap<string, string>,
): Promise<PackSettings> => {
  const owner = await folder.checkedJson(ownerFile, validateOwner);
  const blends = Object.entries(owner?.blends ?? {});
  if (blends.length > blendsMax)
    throw new VoicePackError(
      `${folder.pathOf(ownerFile)}: it has ${blends.length} blends, and at most ${blendsMax} are allowed`,
    );
  const names = (metadata.get('speaker_names') ?? '').split(',');
  const priors = (metadata.get('speaker_speed_priors') ?? '').split(',').map(Number);
  const ofMetadata = names.flatMap((name, place) =>
    priors[place]! > 0 ? [[name, priors[place]!] as const] : [],
  );
  return {
    family: familyOf(config, metadata),
    vocabulary: await vocabularyOf(folder, config, metadata),
    speedPriors: { ...Object.fromEntries(ofMetadata), ...config?.speed_priors },
    aliases: config?.voice_aliases ?? {},
    language: owner?.language ?? null,
    blends: blends.map(([name, recipe]) => parseBlend(folder.pathOf(ownerFile), name, recipe)),
  };
};
