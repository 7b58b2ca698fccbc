/** The format syrinx-4: a manifest, and the graphs that it names. */
import type { VoiceFormat } from '../engine.js';
import type { SyrinxData } from './manifest.js';

/** Measured: 6 MiB. */
const gpuItemBytes = 8 * 1024 * 1024;
const manifestName = 'manifest.json';

export const syrinx: VoiceFormat = {
  name: 'syrinx',
  looksFor: manifestName,
  recognises: ({ files }) => files.includes(manifestName),

  async read(folder, derived) {
    const { parseManifest } = await import('./manifest.js');
    const manifestPath = folder.pathOf(manifestName);
    const manifest = parseManifest(manifestPath, await folder.json(manifestName));
    const { files, speakers, sampleRateHz, language, licence } = manifest;
    const graphs = {
      encoder: await folder.hold(files.encoder.path, files.encoder),
      frames: await folder.hold(files.frames.path, files.frames),
      decoder: await folder.hold(files.decoder.path, files.decoder),
    };
    const recipe = `syrinx ${Object.values(files)
      .map(({ sha256 }) => sha256)
      .join(' ')}`;
    const copiesIn = await derived.set([], recipe, () => Promise.resolve()).catch(() => undefined);
    return {
      voices: speakers.map(({ id, description, sex, rate }) => ({
        ...{ id, sampleRateHz, language, description, pace: rate },
        ...(sex !== undefined && { sex }),
      })),
      licence,
      modelBytes: graphs.encoder.bytes + graphs.frames.bytes + graphs.decoder.bytes,
      gpuItemBytes,
      data: { manifest, manifestPath, graphs, copiesIn } satisfies SyrinxData,
    };
  },

  async load(pack, means, measured) {
    const { SyrinxEngine } = await import('./engine.js');
    return SyrinxEngine.load(pack, means, measured);
  },

  async pronounce(_, bounds) {
    const { createPhonemiser, phonemicWords } = await import('../g2p/speech.js');
    const { correctedEnglish } = await import('./phones.js');
    const phonemiser = await createPhonemiser(bounds, correctedEnglish);
    return (request) => phonemicWords(phonemiser, request, 'en-US');
  },
};
