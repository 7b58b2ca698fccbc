/** What the scripted engine was asked for, as it speaks it for texts with `!asked`. */
import { connect } from '../../src/client/index.js';
import { ElevenLabsClient } from './elevenlabs-client.js';
import type { TestService } from './service.js';
import { openWs } from './socket-client.js';
import { WyomingClient } from './wyoming-client.js';

const LETTER_BYTES = 2_400;
/** "kettle" is in lexicons of tests. */
export const ASKED = '!asked 42 kettle.';

const format = { encoding: 'pcm', sample_rate: 24_000 };

/** @param pcm 24 kHz @returns the letters that were spoken */
export const lettersIn = (pcm: Buffer): string => {
  let text = '';
  for (let at = 0; at + LETTER_BYTES <= pcm.length; at += LETTER_BYTES)
    text += String.fromCharCode(Math.floor(pcm.readInt16LE(at + LETTER_BYTES / 2) / 50));
  return text;
};

const bodyOf = async (asked: Promise<Response>): Promise<Buffer> => {
  const response = await asked;
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) throw new Error(`${response.status} ${body.toString()}`);
  return body;
};

const post = (url: string, headers: Record<string, string>, body: object): Promise<Buffer> =>
  bodyOf(
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  );

const audioIn = (records: string): Buffer =>
  Buffer.concat(
    [...records.matchAll(/"audio_chunk":"([^"]*)"/g)].map(([, base64 = '']) => Buffer.from(base64, 'base64')),
  );

export const heardFrom = (service: TestService) => {
  const { dialectPorts, url } = service;
  const elevenLabs = `127.0.0.1:${dialectPorts['elevenlabs'] ?? 0}/v1/text-to-speech/wren`;
  const request = { text: ASKED, voice: 'wren', response_format: format };
  return {
    whole: async (key: string, more: object = {}) => {
      const body = await post(`${url}/v1/tts`, { 'x-api-key': key }, { ...request, ...more });
      return lettersIn(Buffer.from((JSON.parse(body.toString()) as { audio: string }).audio, 'base64'));
    },
    stream: async (key: string, more: object = {}) => {
      const body = await post(`${url}/v1/tts/stream`, { 'x-api-key': key }, { ...request, ...more });
      return lettersIn(audioIn(body.toString()));
    },
    webhook: async (key: string) => {
      const path = '/v1/tts/integrations/voiceplatform?voice=wren';
      const message = { type: 'voice-request', text: ASKED, sampleRate: 24_000 };
      return lettersIn(await post(url + path, { 'x-api-key': key }, { message }));
    },
    /** An open context. Each call of `next` is one utterance. */
    context: async (key: string) => {
      const client = await openWs(service.port, key);
      client.start('a', { voice_id: 'wren', response_format: format });
      let flushes = 0;
      let read = 0;
      const next = async (text = ASKED): Promise<string> => {
        const flushId = `f${flushes++}`;
        client.text('a', text);
        client.flush('a', flushId);
        await client.frame(({ flush_id }) => flush_id === flushId);
        const audio = client.audio('a');
        const letters = lettersIn(audio.subarray(read));
        read = audio.length;
        return letters;
      };
      return { client, next };
    },
    client: async (key: string) => {
      const client = await connect({ url, apiKey: key });
      const context = client.context({
        voiceId: 'wren',
        format: { encoding: 'pcm', sampleRateHz: 24_000 },
      });
      context.send(ASKED);
      void context.close();
      const audio: Uint8Array[] = [];
      for await (const chunk of context.audio) audio.push(chunk);
      await client.close();
      return lettersIn(Buffer.concat(audio));
    },
    elevenLabs: async (key: string, more: object = {}) =>
      lettersIn(
        await post(
          `http://${elevenLabs}?output_format=pcm_24000`,
          { 'xi-api-key': key },
          { text: ASKED, ...more },
        ),
      ),
    elevenLabsSocket: async (key: string, query = '', settings: object = {}) => {
      const path = `ws://${elevenLabs}/stream-input?output_format=pcm_24000${query}`;
      const client = await ElevenLabsClient.open(path, { 'xi-api-key': key });
      if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
      client.send({ text: ' ', ...settings });
      client.send({ text: `${ASKED} ` });
      client.send({ text: '' });
      await client.untilClosed();
      return lettersIn(client.audio(undefined));
    },
    openAi: async (key: string, more: object = {}) =>
      lettersIn(
        await post(
          `http://127.0.0.1:${dialectPorts['openai'] ?? 0}/v1/audio/speech`,
          { authorization: `Bearer ${key}` },
          { model: 'tts-1', voice: 'wren', input: ASKED, response_format: 'pcm', ...more },
        ),
      ),
    wyoming: async () => {
      const client = await WyomingClient.open(dialectPorts['wyoming'] ?? 0);
      client.send('synthesize', { text: ASKED, voice: { name: 'wren' } });
      const events = await client.until('audio-stop');
      client.close();
      return lettersIn(Buffer.concat(events.map(({ payload }) => payload)));
    },
  };
};
