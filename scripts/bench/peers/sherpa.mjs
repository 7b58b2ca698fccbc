/** sherpa-onnx with a Piper voice. Arguments: the folder of the voice, its name, the data of espeak-ng, threads of a run. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { serve } from './server.mjs';

const sherpa = createRequire(import.meta.url)('sherpa-onnx-node');
const [folder, name, dataDir, numThreads] = process.argv.slice(2);

const tts = new sherpa.OfflineTts({
  model: {
    vits: { model: join(folder, `${name}.onnx`), tokens: join(folder, 'tokens.txt'), dataDir },
    numThreads: Number(numThreads),
    provider: 'cpu',
    debug: false,
  },
  // It speaks sentence by sentence, and hands out each when it is done.
  maxNumSentences: 1,
});

const pcmOf = (/** @type {Float32Array} */ samples) => {
  const pcm = Buffer.allocUnsafe(2 * samples.length);
  for (let i = 0; i < samples.length; i++)
    pcm.writeInt16LE(Math.max(-32_768, Math.min(32_767, Math.round(samples[i] * 32_767))), 2 * i);
  return pcm;
};

serve(async (text, send) => {
  await tts.generateAsync({
    text,
    sid: 0,
    speed: 1,
    enableExternalBuffer: true,
    onProgress: ({ samples }) => {
      send(pcmOf(samples));
      return 1;
    },
  });
});
