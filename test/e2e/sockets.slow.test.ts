/** Long conversations over the WebSocket route of the real service: text in pieces of any size, and every encoding. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkSeams, converse, pcm24, tokens } from '../support/conversation.js';
import { decodersOf } from '../support/decoders.js';
import { startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';

const service = await startService(t);

t.test('text in pieces of any size gives the same words as the whole text', async (t) => {
  const client = await openWs(service.port, service.key);
  for (const pieces of [1, 7, 10_000]) {
    await converse(client, `by ${pieces}`, pcm24, pieces);
    t.strictSame(
      client.words(`by ${pieces}`).map(({ word }) => word),
      tokens,
    );
  }
  client.close();
});

t.test('every encoding has its headers and decodes', async (t) => {
  const client = await openWs(service.port, service.key);
  const encodings = ['mp3', 'wav', 'pcm', 'linear16', 'opus', 'mulaw', 'alaw'];
  await Promise.all(
    encodings.map((encoding) => converse(client, encoding, { response_format: { encoding } }, 50)),
  );
  const chunks = (encoding: string) =>
    client
      .of(encoding)
      .flatMap(({ audio_chunk }) => (audio_chunk === undefined ? [] : [Buffer.from(audio_chunk, 'base64')]));
  const count = (encoding: string, magic: string) =>
    chunks(encoding).filter((chunk) => chunk.toString('latin1', 0, magic.length) === magic).length;
  t.equal(count('wav', 'RIFF'), 1);
  t.equal(count('linear16', 'RIFF'), chunks('linear16').length);
  t.equal(client.audio('opus').toString('latin1').split('OpusHead').length, 2, 'one header over all flushes');
  t.equal(count('opus', 'OggS'), chunks('opus').length);
  t.equal(count('mp3', 'ID3'), 0);
  const first = chunks('mp3')[0];
  t.equal((first?.readUInt16BE(0) ?? 0) & 0xffe0, 0xffe0, 'raw MPEG frames');
  for (const encoding of encodings) {
    t.strictSame(
      client.words(encoding).map(({ word }) => word),
      tokens,
      encoding,
    );
    const sizes = client.of(encoding).flatMap(({ audio_chunk }) => audio_chunk?.length ?? []);
    t.ok(Math.max(...sizes) < 100_000, 'small frames');
  }
  for (const [encoding, rateHz] of [
    ['mp3', 32_000],
    ['opus', 48_000],
  ] as const)
    for (const decoder of decodersOf(encoding, rateHz))
      t.test(`${encoding} by ${decoder.program}`, { skip: missingTool(decoder.program) }, (t) => {
        const path = join(t.testdir(), `stream.${encoding}`);
        writeFileSync(path, client.audio(encoding));
        checkSeams(t, decoder.decode(path), rateHz, client.words(encoding));
        t.end();
      });
  client.close();
});
