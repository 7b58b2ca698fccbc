/**
 * A speech server for the benchmark to compare with: `node:http` around another engine. It answers
 * `POST /v1/tts/stream` with the records of our service, so that the same client asks both. Arguments:
 *
 *   sherpa FOLDER NAME DATA THREADS   sherpa-onnx with a Piper voice, the data of espeak-ng, and threads of a run
 *   program NAME [ARGUMENTS]          a program that speaks to its standard output, started for each request
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** @typedef {(text: string, send: (pcm: Buffer) => void) => Promise<void>} Speak sends 16-bit samples as they are made */

const pcmOf = (/** @type {Float32Array} */ samples) => {
  const pcm = Buffer.allocUnsafe(2 * samples.length);
  for (let i = 0; i < samples.length; i++)
    pcm.writeInt16LE(Math.max(-32_768, Math.min(32_767, Math.round(samples[i] * 32_767))), 2 * i);
  return pcm;
};

const engines = {
  /** @returns {Speak} */
  sherpa(folder, name, dataDir, numThreads) {
    const { OfflineTts } = createRequire(import.meta.url)('sherpa-onnx-node');
    const vits = { model: join(folder, `${name}.onnx`), tokens: join(folder, 'tokens.txt'), dataDir };
    const tts = new OfflineTts({
      model: { vits, numThreads: Number(numThreads), provider: 'cpu', debug: false },
      // It speaks sentence by sentence, and hands out each when it is done.
      maxNumSentences: 1,
    });
    return async (text, send) => {
      await tts.generateAsync({
        ...{ text, sid: 0, speed: 1, enableExternalBuffer: true },
        onProgress: ({ samples }) => {
          send(pcmOf(samples));
          return 1;
        },
      });
    };
  },
  /** @returns {Speak} */
  program(name, ...args) {
    const waveHeadBytes = 44;
    return async (text, send) => {
      const child = spawn(name, [...args, text], { stdio: ['ignore', 'pipe', 'ignore'] });
      let skipped = 0;
      child.stdout.on('data', (/** @type {Buffer} */ bytes) => {
        const rest = bytes.subarray(Math.min(bytes.length, waveHeadBytes - skipped));
        skipped += bytes.length - rest.length;
        if (rest.length > 0) send(rest);
      });
      await once(child, 'close');
    };
  },
};

const [engine, ...options] = process.argv.slice(2);
const speak = engines[engine](...options);

const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { text } = JSON.parse(Buffer.concat(pieces).toString());
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  await speak(text, (pcm) =>
    response.write(`data: {"type":"audio","audio_chunk":"${pcm.toString('base64')}"}\n\n`),
  );
  response.end();
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`),
);
