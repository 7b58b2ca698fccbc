/** The official JavaScript client of ElevenLabs, unmodified, against the service. */
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { dialectUrls } from '../../src/address.js';
import { interruptions, loadClient, missingClients } from '../support/interop.js';
import { freePort, prose, SCRIPTED, startService, until } from '../support/service.js';

interface Alignment {
  readonly characters: string[];
  readonly characterStartTimesSeconds: number[];
  readonly characterEndTimesSeconds: number[];
}
interface Timed {
  readonly audioBase64: string;
  readonly alignment?: Alignment;
}
interface Client {
  readonly textToSpeech: {
    convert(voice: string, request: object): Promise<ReadableStream<Uint8Array>>;
    stream(voice: string, request: object, options?: object): Promise<ReadableStream<Uint8Array>>;
    convertWithTimestamps(voice: string, request: object): Promise<Timed>;
    streamWithTimestamps(voice: string, request: object): Promise<AsyncIterable<Timed>>;
  };
  readonly voices: {
    getAll(): Promise<{ voices: { voiceId: string; name: string }[] }>;
    get(voiceId: string): Promise<{ voiceId: string; name: string }>;
    readonly settings: {
      get(voiceId: string): Promise<{ speed: number }>;
      getDefault(): Promise<{ speed: number }>;
    };
    search(
      request?: object,
    ): Promise<{ voices: { voiceId: string }[]; hasMore: boolean; totalCount: number }>;
  };
  readonly models: { list(): Promise<{ modelId: string }[]> };
  readonly user: {
    get(): Promise<{ subscription: { characterLimit: number } }>;
    readonly subscription: { get(): Promise<{ characterCount: number; characterLimit: number }> };
  };
}
interface Package {
  readonly ElevenLabsClient: new (options: object) => Client;
}

const text = 'Good morning. The kettle is on, and the 👋 paper is at the door!';

t.test('elevenlabs-js', { skip: missingClients, timeout: 280_000 }, async (t) => {
  const { ElevenLabsClient } = loadClient('@elevenlabs/elevenlabs-js') as Package;
  // A fixed port, as in a deployment: the last test starts another service on it.
  const port = String(await freePort());
  const service = await startService(t, { ELEVENLABS_PORT: port });
  const [key = '', brokeKey = '', fullKey = ''] = await createKeys(service.dataDir, [
    ['js', 5_000],
    ['broke', 0],
    ['full', null],
  ]);
  // As the welcome prints it.
  const [{ url: baseUrl } = { url: '' }] = dialectUrls(
    { host: '127.0.0.1', tls: null, wyoming: null },
    service.dialectPorts,
  );
  const clientOf = (apiKey: string) => new ElevenLabsClient({ apiKey, baseUrl });
  const client = clientOf(key);
  const bytesOf = async (body: ReadableStream<Uint8Array>): Promise<number> => {
    let bytes = 0;
    for await (const piece of body) bytes += piece.length;
    return bytes;
  };

  await t.test('convert and stream return the audio of a text', async (t) => {
    const request = { text, modelId: 'eleven_multilingual_v2', outputFormat: 'pcm_24000' };
    const seconds = (bytes: number) => bytes / 48_000;
    for (const kind of ['convert', 'stream'] as const) {
      const spoken = seconds(await bytesOf(await client.textToSpeech[kind]('wren', request)));
      t.ok(spoken > 3 && spoken < 12, `${kind}: ${spoken} s`);
    }
    t.ok((await bytesOf(await client.textToSpeech.convert('wren', { text }))) > 30_000, 'mp3 by default');
  });

  await t.test('the times of characters rebuild the text', async (t) => {
    const request = { text, outputFormat: 'mp3_44100_128' };
    const { alignment } = await client.textToSpeech.convertWithTimestamps('wren', request);
    t.equal(alignment?.characters.join(''), text);
    t.equal(alignment?.characterEndTimesSeconds.length, Array.from(text).length);
    let streamed = '';
    let last = 0;
    for await (const record of await client.textToSpeech.streamWithTimestamps('wren', request)) {
      streamed += record.alignment?.characters.join('') ?? '';
      for (const start of record.alignment?.characterStartTimesSeconds ?? []) {
        t.ok(start >= last);
        last = start;
      }
    }
    t.equal(streamed, text);
  });

  await t.test('lists and subscription are those of the service', async (t) => {
    const { voices } = await client.voices.getAll();
    t.ok(voices.some(({ voiceId, name }) => voiceId === 'wren' && name === 'wren'));
    t.match(await client.voices.search({ pageSize: 10 }), { hasMore: false, totalCount: voices.length });
    t.match(await client.voices.get('JBFqnCBsd6RMkjVDRZzb'), {
      voiceId: 'JBFqnCBsd6RMkjVDRZzb',
      name: 'rook',
    });
    t.match(await client.voices.settings.get('wren'), { speed: 1 });
    t.match(await client.voices.settings.getDefault(), { speed: 1 });
    t.match(await client.user.get(), { subscription: { characterLimit: 5_000 } });
    t.ok((await client.models.list()).some(({ modelId }) => modelId === 'eleven_flash_v2_5'));
    const { characterCount, characterLimit } = await client.user.subscription.get();
    t.ok(characterCount > 0 && characterCount < characterLimit, `${characterCount} of ${characterLimit}`);
    t.equal(characterLimit, 5_000);
  });

  const requests = (status: number, path = ''): Promise<number> =>
    service.metric('syrinx_requests_total', {
      ...{ route: `elevenlabs:/v1/text-to-speech/:voice${path}`, status: String(status) },
    });
  const pcm = { outputFormat: 'pcm_24000' };
  const firstOf = async (body: ReadableStream<Uint8Array>) => {
    const reader = body.getReader();
    const { value } = await reader.read();
    return { reader, bytes: value?.length ?? 0 };
  };

  await t.test('many interruptions in mid-speech leave no context open', async (t) => {
    const interrupted = clientOf(fullKey);
    for (let turn = 0; turn < interruptions; turn++) {
      const body = await interrupted.textToSpeech.stream('wren', { text: prose(50), ...pcm });
      const { reader, bytes } = await firstOf(body);
      if (bytes === 0) t.fail(`turn ${turn} has no audio`);
      await reader.cancel();
      t.ok((await reader.read()).done, 'nothing follows');
    }
    t.ok(await until(async () => (await service.openContexts()) === 0));
  });

  await t.test('the tenth request is refused, and tried again until a slot is free', async (t) => {
    const full = clientOf(fullKey).textToSpeech;
    const nine = await Promise.all(
      Array.from({ length: 9 }, async () => firstOf(await full.stream('wren', { text: prose(400), ...pcm }))),
    );
    const refusal = await full
      .stream('wren', { text, ...pcm }, { maxRetries: 0 })
      .catch((error: unknown) => error);
    t.match(refusal, { statusCode: 429, body: { detail: { status: 'too_many_concurrent_requests' } } });
    const tenth = full.stream('wren', { text, ...pcm });
    t.ok(await until(async () => (await requests(429, '/stream')) >= 2));
    for (const { reader } of nine) await reader.cancel();
    t.ok((await bytesOf(await tenth)) > 48_000);
  });

  await t.test('errors are its own exceptions, and are not retried', async (t) => {
    const failureOf = async (apiKey: string, voice: string, more: object = {}) => {
      try {
        await client.textToSpeech.convert.call(clientOf(apiKey).textToSpeech, voice, { text, ...more });
      } catch (error) {
        return error as Error & { statusCode: number; body: unknown };
      }
      throw new Error('the request was not refused');
    };
    for (const [error, status, name] of [
      [await failureOf('no_key_of_ours', 'wren'), 401, 'ElevenLabsError'],
      [await failureOf(brokeKey, 'wren'), 402, 'ElevenLabsError'],
      [await failureOf(key, 'nobody'), 404, 'ElevenLabsError'],
      [await failureOf(key, 'wren', { voiceSettings: { speed: 9 } }), 422, 'UnprocessableEntityError'],
    ] as const) {
      t.equal(error.constructor.name, name, `${status}`);
      t.equal(error.statusCode, status);
      t.ok((error.body as { detail: unknown }).detail);
      t.equal(await requests(status), 1, `${status} is asked once`);
    }
  });

  await t.test('after a drain, it speaks with the service that follows', async (t) => {
    const kept = clientOf(fullKey).textToSpeech;
    const speaking = await kept.stream('wren', { text: prose(4), ...pcm });
    const stopped = service.stop();
    t.ok((await bytesOf(speaking)) > 48_000, 'what was begun is spoken to its end');
    t.equal((await stopped).code, 0);
    const env = { ELEVENLABS_PORT: port, DATA_DIR: service.dataDir };
    const after = await startService(t, env, SCRIPTED);
    t.ok((await bytesOf(await kept.stream('wren', { text, ...pcm }))) > 48_000);
    t.equal((await after.stop()).code, 0);
  });
});
