/**
 * Piper's voices, as people download them: `NAME.onnx` and `NAME.onnx.json`, or sherpa-onnx's packages, where
 * `tokens.txt` and the metadata of the model can take the place of the latter.
 */
import { VoicePackError } from '../../../src/threads/voices.js';
import type { VoiceFormat } from '../engine.js';
import { ownerFile, type PackFolder, totalBytes } from '../pack.js';
import type { PiperData } from './engine.js';

/** Change it when `cut.ts` or `stream.ts` makes other files. */
const recipe = 'piper 5';

const configEnding = '.onnx.json';
const tokensName = 'tokens.txt';
const tokensBytesMax = 256 * 1024;
/** Bytes of the sessions of each thread, which share the weights: 9 MB were measured with a voice of 62 MB. */
const threadBytes = 16_000_000;
/** Bytes of the buffers of generator, flow and encoder, measured with a voice of 62 MB and a sentence of 420 ids. */
const bufferBytes = 70_000_000;
const inputNames = ['input', 'input_lengths', 'scales'];

const configsOf = ({ files }: PackFolder) => files.filter((file) => file.endsWith(configEnding));
const onnxFilesOf = ({ files }: PackFolder) => files.filter((file) => file.endsWith('.onnx'));

export const piper: VoiceFormat = {
  name: 'piper',
  looksFor: `NAME${configEnding} (Piper)`,

  async recognises(folder) {
    if (configsOf(folder).length > 0) return true;
    const [model, ...others] = onnxFilesOf(folder);
    if (model === undefined || others.length > 0 || !folder.files.includes(tokensName)) return false;
    const { inputs } = await folder.model(model);
    return inputNames.every((name) => inputs.some((input) => input.name === name));
  },

  async read(folder, derived) {
    const { languageNote } = await import('../g2p/languages.js');
    const { configOfPackage, isText, languageOf, parseConfig, speakersOf } = await import('./config.js');
    const { cutPiper } = await import('./cut.js');
    const { gpuItemBytes, statesBytesOf } = await import('./graphs.js');
    const { IdMaker } = await import('./ids.js');
    const { sampleSentence } = await import('../../../src/text/sample-sentences.js');
    const { GraphError } = await import('../graph/surgery.js');
    const { elementTypes } = await import('../graph/model.js');
    const [configName, ...others] = configsOf(folder);
    if (others.length > 0)
      throw new VoicePackError(
        `${folder.path}: it has ${others.length + 1} voices: put each into a folder of its own`,
      );
    const modelName = configName?.slice(0, -'.json'.length) ?? onnxFilesOf(folder)[0]!;
    const file = await folder.hold(modelName);
    const model = await folder.model(modelName);
    const sources = await folder.sources(modelName);
    const config = parseConfig(
      folder.pathOf(configName ?? tokensName),
      configName === undefined
        ? configOfPackage(model.metadata, (await folder.bytes(tokensName, tokensBytesMax)).toString('utf8'))
        : await folder.json(configName),
    );
    if ((config.num_speakers ?? 1) > 1 && !model.inputs.some(({ name }) => name === 'sid'))
      throw new VoicePackError(
        `${folder.pathOf(configName ?? tokensName)}: it says that the voice has ${config.num_speakers} speakers, but the ` +
          `model takes no speaker (sid): use the file that belongs to ${modelName}`,
      );
    if ([...model.initialisers.values()].some(({ type }) => type === elementTypes.float16))
      throw new VoicePackError(
        `${file.path}: a model in 16 bits, which is not supported: use the float32 model as it was published`,
      );
    const { plan, models } = (() => {
      try {
        return cutPiper(model);
      } catch (error) {
        if (!(error instanceof GraphError)) throw error;
        throw new VoicePackError(
          `${file.path}: this is not the graph of a Piper voice: ${error.message}. Use the float32 model as it was published`,
        );
      }
    })();
    const parts = await derived.models(sources, recipe, models);
    const speakers = speakersOf(config);
    const language = languageOf(config);
    // A voice for text reads the letters itself.
    const ignored = folder.files.includes(ownerFile)
      ? `${ownerFile} is ignored: a Piper voice says its language itself`
      : null;
    const note = isText(config) ? null : languageNote(config.espeak?.voice ?? language);
    const data: PiperData = {
      config,
      modelPath: file.path,
      ...{ plan, parts },
      speakers: speakers.map(({ id }) => id),
    };
    return {
      voices: speakers.map(({ name }) => ({
        id: name === null ? folder.name : `${folder.name}-${name}`,
        sampleRateHz: config.audio.sample_rate,
        language,
      })),
      notes: [note, ignored].filter((line) => line !== null),
      ...(isText(config) && { sample: new IdMaker(config).sampleOf(sampleSentence(language)) }),
      modelBytes: threadBytes,
      sharedBytes: totalBytes(sources),
      stateBytes: statesBytesOf(plan) + bufferBytes,
      gpuItemBytes,
      data,
    };
  },

  async load(pack, means, measured) {
    const { PiperEngine } = await import('./engine.js');
    return PiperEngine.load(pack, means, measured);
  },

  async pronounce({ data }, bounds) {
    const { isText } = await import('./config.js');
    const { createPhonemiser } = await import('../g2p/speech.js');
    const { pronouncedBy } = await import('./engine.js');
    const { config } = data as PiperData;
    if (isText(config)) return null;
    const phonemiser = await createPhonemiser(bounds);
    return (request) => pronouncedBy(config, phonemiser, request);
  },
};
