/** The format of Pocket TTS: exports in five graphs or in one, with their tokeniser and voices. */
import typia from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import type { VoiceFormat } from '../engine.js';
import { checked, ownerLanguage, type PackContent, type PackFolder, parseJson, totalBytes } from '../pack.js';
import { bundlesIn, readFive } from './bundle.js';
import type { DerivedFiles } from '../graph/derived.js';
import { product } from '../graph/model.js';
import { contentOf, languageOf, named, type Prompts, shareable } from './content.js';
import type { OneConfig, OneGraph, PocketData } from './models.js';
import { parseSentencePiece } from './tokeniser.js';
import { halfEmbedding } from './voices.js';

/** Positions of a voice's prompt, when memory is counted: half a minute. */
const promptPositions = 375;
const configKey = 'pocket_tts_config';
const metadataVoice = 'pocket_tts_voice/';

const validateConfig = typia.createValidate<OneConfig>();

/** A model in one graph: alone, or beside the same model in another precision. */
const oneGraphIn = async (folder: PackFolder): Promise<string | undefined> => {
  const models = folder.files.filter((file) => file.endsWith('.onnx'));
  if (models.length > 2) return undefined;
  for (const file of models) if ((await folder.model(file)).metadata.has(configKey)) return file;
  return undefined;
};

const readOne = async (folder: PackFolder, file: string, derived: DerivedFiles): Promise<PackContent> => {
  const model = await folder.model(file);
  const { metadata, inputs } = model;
  const step = await folder.hold(file);
  const sources = await folder.sources(file);
  const value = (key: string): string => {
    const text = metadata.get(key);
    if (text === undefined)
      throw new VoicePackError(`${step.path}: its metadata lacks ${key}: export it again`);
    return text;
  };
  const json = parseJson(`${step.path}: ${configKey}`, value(configKey));
  const config = checked(step.path, configKey, validateConfig(json));
  const width = config.model_dim;
  const prompts: Prompts = new Map();
  for (const [key, text] of metadata) {
    if (!key.startsWith(metadataVoice)) continue;
    const prompt = halfEmbedding(Buffer.from(text, 'base64'), width);
    if (prompt === null)
      throw new VoicePackError(
        `${step.path}: ${key} is not a list of vectors of ${width} numbers: export it again`,
      );
    prompts.set(key.slice(metadataVoice.length), prompt);
  }
  if (prompts.size === 0)
    throw new VoicePackError(
      `${step.path}: its metadata has no voice (${metadataVoice}NAME): export it again with one`,
    );
  const one: OneGraph = {
    inputs: inputs.map(({ name }) => name),
    flowDims: [config.flow_layers, 2, 1, config.flow_heads, config.flow_head_dim],
    decoderDims: [config.mimi_layers, 2, 1, config.mimi_heads, config.mimi_head_dim],
    config,
  };
  const data: PocketData = {
    basics: {
      config,
      vocabulary: parseSentencePiece(step.path, Buffer.from(value('pocket_tts_tokenizer'), 'base64')),
      voices: named(folder.name, prompts),
    },
    one,
    files: await shareable(derived, sources, { step }, { step: model }),
  };
  const positions = promptPositions + config.max_tokens_per_chunk * (1 + config.frame_rate);
  const caches = positions * product(one.flowDims) + 2 * config.mimi_kv_len * product(one.decoderDims);
  const stateBytes = 4 * (caches + config.conv_state_size);
  return contentOf(
    data,
    (await ownerLanguage(folder)) ?? languageOf(config.language),
    totalBytes(sources),
    stateBytes,
    4 * promptPositions * product(one.flowDims),
  );
};

export const pocket: VoiceFormat = {
  name: 'pocket',
  looksFor: 'flow_lm_main.onnx and its companions, or one graph with its configuration inside (Pocket TTS)',
  recognises: async (folder) => bundlesIn(folder).length > 0 || (await oneGraphIn(folder)) !== undefined,

  async read(folder, derived) {
    const [bundle, ...others] = bundlesIn(folder);
    if (others.length > 0)
      throw new VoicePackError(
        `${folder.path}: it has the models of several languages (${[bundle, ...others].join(', ')}): ` +
          'put each folder of them into MODELS_DIR by itself',
      );
    return bundle === undefined
      ? readOne(folder, (await oneGraphIn(folder))!, derived)
      : readFive(folder, bundle, derived);
  },

  async load(pack, means, measured) {
    const { PocketEngine } = await import('./engine.js');
    return PocketEngine.load(pack, means, measured);
  },
};
