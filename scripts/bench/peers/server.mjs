/**
 * A speech server for the benchmark to compare with: `node:http` around another engine. It answers
 * `POST /v1/tts/stream` with the records of our service, so that the same client asks both.
 */
import { createServer } from 'node:http';

const recordOf = (/** @type {Buffer} */ pcm) =>
  `data: {"type":"audio","audio_chunk":"${pcm.toString('base64')}"}\n\n`;

/** @param {(text: string, send: (pcm: Buffer) => void) => Promise<void>} speak sends 16-bit samples as they are made */
export const serve = (speak) => {
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const { text } = JSON.parse(Buffer.concat(pieces).toString());
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
    await speak(text, (pcm) => response.write(recordOf(pcm)));
    response.end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () =>
    process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`),
  );
};
