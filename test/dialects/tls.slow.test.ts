/** TLS on the ports of ElevenLabs and OpenAI: the certificate of the public port, and its renewal. */
import { copyFileSync } from 'node:fs';
import { connect } from 'node:net';
import { once } from 'node:events';
import { request } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { freeDialectPorts } from '../../scripts/rig/service.js';
import { makeCertificate, type TestCertificate } from '../support/certificates.js';
import { ElevenLabsClient } from '../support/elevenlabs-client.js';
import { prose, SCRIPTED, startService } from '../support/service.js';
import { missingTool } from '../support/tools.js';
import { WyomingClient } from '../support/wyoming-client.js';

interface Answer {
  readonly status: number;
  readonly bytes: number;
  /** Of the certificate. */
  readonly name: string | string[] | undefined;
}

/** @param onFirst called with the first piece of the body */
const post = (
  url: string,
  { ca }: TestCertificate,
  headers: Record<string, string>,
  body: object,
  onFirst: () => void = () => undefined,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', ca, agent: false, headers }, (response) => {
      const { socket } = response as unknown as { socket: TLSSocket };
      const name = socket.getPeerCertificate().subject?.CN;
      let bytes = 0;
      response.once('data', onFirst);
      response.on('data', (piece: Buffer) => (bytes += piece.length));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes, name }));
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  });

t.test(
  'both ports use TLS and its renewal; Wyoming has none',
  { skip: missingTool('openssl') },
  async (t) => {
    const folder = t.testdir({});
    const [certPath, keyPath] = [join(folder, 'live.crt'), join(folder, 'live.key')];
    const install = (name: string): TestCertificate => {
      const made = makeCertificate(folder, name);
      copyFileSync(made.certPath, certPath);
      copyFileSync(made.keyPath, keyPath);
      return made;
    };
    const first = install('first');
    const service = await startService(
      t,
      { ...freeDialectPorts, TLS_CERT: certPath, TLS_KEY: keyPath },
      SCRIPTED,
    );
    const { elevenlabs = 0, openai = 0, wyoming = 0 } = service.dialectPorts;
    const { key } = service;
    const speak = {
      elevenlabs: (certificate: TestCertificate, text = 'Hello there.', onFirst?: () => void) =>
        post(
          `https://127.0.0.1:${elevenlabs}/v1/text-to-speech/wren/stream?output_format=pcm_24000`,
          certificate,
          { 'xi-api-key': key },
          { text },
          onFirst,
        ),
      openai: (certificate: TestCertificate, text = 'Hello there.', onFirst?: () => void) =>
        post(
          `https://127.0.0.1:${openai}/v1/audio/speech`,
          certificate,
          { authorization: `Bearer ${key}` },
          { model: 'tts-1', voice: 'nova', input: text, response_format: 'pcm' },
          onFirst,
        ),
    } as const;
    for (const ask of Object.values(speak)) {
      const { bytes, ...answer } = await ask(first);
      t.strictSame(answer, { status: 200, name: 'first' });
      t.ok(bytes > 20_000);
    }
    const socketUrl = `wss://127.0.0.1:${elevenlabs}/v1/text-to-speech/wren/multi-stream-input?output_format=pcm_24000`;
    const opened = async ({ ca }: TestCertificate): Promise<ElevenLabsClient> => {
      const client = await ElevenLabsClient.open(socketUrl, { 'xi-api-key': key }, ca);
      if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
      t.teardown(() => client.close());
      return client;
    };
    const say = async (client: ElevenLabsClient, id: string): Promise<void> => {
      client.send(
        { text: 'Hello there. ', context_id: id, flush: true },
        { context_id: id, close_context: true },
      );
      await client.until(() => client.isFinal(id));
      t.ok(client.audio(id).length > 20_000, id);
    };
    const open = await opened(first);
    await say(open, 'before the renewal');

    for (const port of [elevenlabs, openai]) {
      const plain = connect(port, '127.0.0.1').on('error', () => undefined);
      let said = '';
      plain.on('data', (bytes) => (said += bytes.toString('latin1')));
      plain.write('GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(plain, 'close');
      t.notMatch(said, 'HTTP', 'nothing is said in plain text');
    }
    const assistant = await WyomingClient.open(wyoming);
    t.teardown(() => assistant.close());
    assistant.send('synthesize', { text: 'Hello there.' });
    await assistant.until('audio-stop');

    const begun: Promise<undefined>[] = [];
    const underWay = Object.values(speak).map((ask) => {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      begun.push(promise);
      return ask(first, prose(10), () => resolve(undefined));
    });
    await Promise.all(begun);
    const second = install('second');
    service.signal('SIGHUP');
    await service.untilLogged('new connections get the new TLS certificate');
    for (const ask of Object.values(speak)) {
      t.match(await ask(second), { status: 200, name: 'second' });
      await t.rejects(ask(first), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    }
    await say(await opened(second), 'on a new socket');
    await say(open, 'on the socket from before');
    for (const { bytes, status } of await Promise.all(underWay))
      t.ok(status === 200 && bytes > 20 * 48_000, `${bytes} bytes of what was under way`);
    t.match(await service.stop(), { code: 0 });
    t.strictSame(service.log.errorLines, []);
  },
);
