/** The official client of OpenAI and LiveKit's plugin for it, unmodified, against the running service. */
import { once, type EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createAudioCheck } from '../../scripts/rig/audio-check.js';
import { decodersOf } from '../support/decoders.js';
import { interruptions, loadClient, missingClients } from '../support/interop.js';
import { freePort, prose, SCRIPTED, startService, until } from '../support/service.js';
import { spansOver } from '../support/tones.js';
import { missingTool } from '../support/tools.js';

interface Speech {
  readonly model: string;
  readonly voice: string;
  readonly input: string;
  readonly [more: string]: unknown;
}

/** As far as these tests use it. */
interface OpenAI {
  readonly audio: {
    readonly speech: { create(body: Speech, options?: { signal: AbortSignal }): Promise<Response> };
  };
  readonly models: {
    list(): Promise<{ data: { id: string }[] }>;
    retrieve(id: string): Promise<{ id: string; object: string }>;
  };
}
interface OpenAIModule {
  readonly default: new (options: { apiKey: string; baseURL: string; maxRetries?: number }) => OpenAI;
}
interface APIError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;
}

interface LiveKitTts extends EventEmitter {
  synthesize(
    text: string,
  ): AsyncIterable<{ frame: { sampleRate: number; samplesPerChannel: number }; final: boolean }>;
  close(): Promise<void>;
}
interface LiveKitModule {
  readonly TTS: new (options: { apiKey: string; baseURL: string; voice: string }) => LiveKitTts;
}

const SENTENCE = 'The kettle is on, and the paper is at the door.';
const ROUTE = 'openai:/v1/audio/speech';
const WRONG_KEY = `svc_sk_${'A'.repeat(43)}`;

const asked = (input: string, more: object = {}): Speech => ({
  model: 'tts-1',
  voice: 'alloy',
  input,
  ...more,
});

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

const errorOf = async (answer: Promise<unknown>): Promise<APIError> => {
  try {
    await answer;
  } catch (error) {
    return error as APIError;
  }
  throw new Error('it was answered');
};

t.test('clients of OpenAI', { skip: missingClients, timeout: 280_000 }, async (t) => {
  // A fixed port, as in a deployment: the last test starts another service on it.
  const port = String(await freePort());
  const service = await startService(t, { OPENAI_PORT: port });
  const baseURL = `http://127.0.0.1:${String(service.dialectPorts['openai'])}/v1`;
  const [brokeKey = ''] = await service.makeKeys(1, 0);
  const { default: Client } = loadClient('openai') as OpenAIModule;
  const clientOf = (apiKey: string, maxRetries = 2): OpenAI => new Client({ apiKey, baseURL, maxRetries });
  const client = clientOf(service.key);
  const requestsWith = (status: number): Promise<number> =>
    service.metric('syrinx_requests_total', { route: ROUTE, status: String(status) });
  /** Nine requests that speak until they are cancelled. */
  const takeSlots = (key: string): Promise<Response[]> => {
    const body = asked(prose(400), { response_format: 'pcm' });
    return Promise.all(Array.from({ length: 9 }, () => clientOf(key).audio.speech.create(body)));
  };

  await t.test('the official client gets speech, events and lists', async (t) => {
    const whole = await client.audio.speech.create(asked(SENTENCE, { response_format: 'wav' }));
    t.ok((await bytesOf(whole)).length > 2 * 48_000, 'more than two seconds');
    const blank = await client.audio.speech.create(asked(' \n', { response_format: 'pcm' }));
    t.ok((await bytesOf(blank)).length < 48_000, 'blank text is a short silence');
    const stream = await client.audio.speech.create(
      asked(SENTENCE, { model: 'gpt-4o-mini-tts', response_format: 'pcm', stream_format: 'sse' }),
    );
    t.match(stream.headers.get('content-type'), /^text\/event-stream/);
    const events = (await stream.text())
      .trim()
      .split('\n\n')
      .map((event) => JSON.parse(event.replace(/^data: /, '')) as { type: string; audio?: string });
    const samples = events.slice(0, -1).map(({ audio = '' }) => Buffer.from(audio, 'base64').length);
    t.ok(samples.length > 3 && samples.every((bytes) => bytes > 0 && bytes % 2 === 0));
    t.match(events.at(-1), { type: 'speech.audio.done', usage: { total_tokens: SENTENCE.length } });
    t.strictSame(
      (await client.models.list()).data.map(({ id }) => id),
      ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts'],
    );
    t.match(await client.models.retrieve('tts-1-hd'), { id: 'tts-1-hd', object: 'model' });
    t.match(await errorOf(client.models.retrieve('gpt-9')), { status: 404, code: 'model_not_found' });
  });

  await t.test(
    'the official client gets AAC, which ffmpeg decodes whole',
    { skip: missingTool('ffmpeg') },
    async (t) => {
      const aac = { encoding: 'aac', sampleRateHz: 24_000, bitrateKbps: 96 } as const;
      const response = await client.audio.speech.create(asked(SENTENCE, { response_format: 'aac' }));
      t.equal(response.headers.get('content-type'), 'audio/aac');
      const bytes = await bytesOf(response);
      const audio = createAudioCheck(aac);
      t.equal(audio.push(bytes), null, 'whole frames at 24 kHz');
      const path = join(t.testdir(), 'speech.aac');
      writeFileSync(path, bytes);
      const [decoder] = decodersOf('aac', aac.sampleRateHz);
      const samples = decoder!.decode(path);
      t.equal(samples.length, Math.round(audio.durationMs * 24), 'each frame is decoded');
      const spokenMs = audio.durationMs - (2 * 1_024) / 24;
      t.ok(spokenMs > 25 * SENTENCE.length && spokenMs < 200 * SENTENCE.length, `${spokenMs} ms of speech`);
      const heard = spansOver(samples, 200, 2_400);
      t.ok(heard.length <= 2, `sound without a gap but for the comma: ${heard.length} parts`);

      const events = createAudioCheck(aac);
      const stream = await client.audio.speech.create(
        asked(SENTENCE, { response_format: 'aac', stream_format: 'sse' }),
      );
      const deltas = (await stream.text()).match(/(?<="audio":")[^"]+/g) ?? [];
      t.ok(deltas.length > 3, `${deltas.length} events`);
      t.strictSame(
        deltas.map((delta) => events.push(Buffer.from(delta, 'base64'))).filter((fault) => fault !== null),
        [],
        'each has whole frames',
      );
    },
  );

  await t.test('many interruptions of the official client leave no context open', async (t) => {
    for (let turn = 0; turn < interruptions; turn++) {
      const aborter = new AbortController();
      const response = await client.audio.speech.create(asked(prose(50), { response_format: 'pcm' }), {
        signal: aborter.signal,
      });
      const reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
      if ((await reader.read()).done) t.fail(`turn ${turn} has no audio`);
      aborter.abort();
      await t.rejects(reader.read(), { name: 'AbortError' });
    }
    t.ok(await until(async () => (await service.openContexts()) === 0));
    t.equal((await client.audio.speech.create(asked('Free.'))).status, 200);
  });

  await t.test('each refusal is the right exception of the official client', async (t) => {
    const refused = async (key: string, body: Speech): Promise<unknown[]> => {
      const error = await errorOf(clientOf(key).audio.speech.create(body));
      return [error.constructor.name, error.status, error.code, error.param];
    };
    const noKey = ['AuthenticationError', 401, 'invalid_api_key', null];
    t.strictSame(await refused(WRONG_KEY, asked('a')), noKey);
    t.strictSame(await refused('sk-of-another', asked('a')), noKey);
    const unknown = asked('a', { voice: 'nobody' });
    t.strictSame(await refused(service.key, unknown), ['BadRequestError', 400, 'invalid_value', 'voice']);
    const before = await requestsWith(429);
    t.strictSame(await refused(brokeKey, asked('a')), ['RateLimitError', 429, 'insufficient_quota', null]);
    t.equal(await requestsWith(429), before + 1, 'without credit it does not try again');
    t.match(await refused(service.key, asked('a'.repeat(1_100_000))), ['APIError', 413]);
  });

  await t.test('the official client tries its tenth request again until there is room', async (t) => {
    const [key = ''] = await service.makeKeys(1);
    const nine = await takeSlots(key);
    const refused = await errorOf(clientOf(key, 0).audio.speech.create(asked('a')));
    t.match([refused.constructor.name, refused.code], ['RateLimitError', 'rate_limit_exceeded']);
    const before = await requestsWith(429);
    const tenth = clientOf(key).audio.speech.create(asked('Now there is room.'));
    t.ok(await until(async () => (await requestsWith(429)) > before));
    for (const response of nine) await response.body?.cancel();
    t.equal((await tenth).status, 200);
  });

  await t.test("LiveKit's plugin", async (t) => {
    // It reports a failed request as an event, and leaves its rejected promise unhandled.
    const ignore = (): void => undefined;
    process.on('unhandledRejection', ignore);
    t.teardown(() => process.off('unhandledRejection', ignore));
    (loadClient('@livekit/agents') as { initializeLogger(options: object): void }).initializeLogger({
      ...{ pretty: false, level: 'silent' },
    });
    const { TTS } = loadClient('@livekit/agents-plugin-openai') as LiveKitModule;
    // Loading takes seconds. Meanwhile the service has closed the connections that `fetch` keeps.
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
    const speak = async (tts: LiveKitTts): Promise<{ samples: number; finals: number }> => {
      let [samples, finals] = [0, 0];
      for await (const { frame, final } of tts.synthesize(SENTENCE)) {
        t.equal(frame.sampleRate, 24_000);
        samples += frame.samplesPerChannel;
        finals += Number(final);
      }
      return { samples, finals };
    };
    const open = (apiKey: string, voice = 'nova'): LiveKitTts => {
      const tts = new TTS({ apiKey, baseURL, voice });
      t.teardown(() => tts.close());
      return tts;
    };

    await t.test('it gets frames of speech, the last one final', async (t) => {
      const tts = open(service.key);
      tts.on('error', ({ error }: { error: Error }) => t.fail(`${error}: ${String(error.cause)}`));
      const { samples, finals } = await speak(tts);
      t.ok(samples > 2 * 24_000, `${samples} samples`);
      t.equal(finals, 1);
    });

    await t.test('each refusal is the exception of its client, and is not tried again', async (t) => {
      const [fullKey = ''] = await service.makeKeys(1);
      const nine = await takeSlots(fullKey);
      for (const [tts, name, status, code] of [
        [open(WRONG_KEY), 'AuthenticationError', 401, 'invalid_api_key'],
        [open(service.key, 'nobody'), 'BadRequestError', 400, 'invalid_value'],
        [open(brokeKey), 'RateLimitError', 429, 'insufficient_quota'],
        [open(fullKey), 'RateLimitError', 429, 'rate_limit_exceeded'],
      ] as const) {
        const before = await requestsWith(status);
        const failed = once(tts, 'error') as Promise<[{ error: APIError; recoverable: boolean }]>;
        t.equal((await speak(tts)).samples, 0);
        const [{ error, recoverable }] = await failed;
        t.equal(error.constructor.name, name);
        t.match({ error, recoverable }, { error: { status, code }, recoverable: false });
        t.equal(await requestsWith(status), before + 1, `${code} is asked once`);
      }
      for (const response of nine) await response.body?.cancel();
      t.ok(await until(async () => (await service.openContexts()) === 0));
      t.ok((await speak(open(fullKey))).samples > 0, 'the next turn has a slot');
    });
  });

  await t.test('after a drain, both clients speak with the service that follows', async (t) => {
    const options = { apiKey: service.key, baseURL };
    const { TTS } = loadClient('@livekit/agents-plugin-openai') as LiveKitModule;
    const [kept, tts] = [new Client({ ...options, maxRetries: 30 }), new TTS({ ...options, voice: 'nova' })];
    const say = async (): Promise<number> =>
      (await bytesOf(await kept.audio.speech.create(asked(SENTENCE, { response_format: 'pcm' })))).length;
    const said = async (): Promise<number> => {
      let samples = 0;
      for await (const { frame } of tts.synthesize(SENTENCE)) samples += frame.samplesPerChannel;
      return samples;
    };
    t.ok((await say()) > 48_000 && (await said()) > 24_000, 'before');
    const speaking = await kept.audio.speech.create(asked(prose(4), { response_format: 'pcm' }));
    const stopped = service.stop();
    t.ok((await bytesOf(speaking)).length > 48_000, 'what was begun is spoken to its end');
    t.equal((await stopped).code, 0);
    const meanwhile = say();
    const env = { OPENAI_PORT: port, DATA_DIR: service.dataDir };
    const after = await startService(t, env, SCRIPTED);
    t.ok((await meanwhile) > 48_000, 'a request between the two is tried again by itself');
    t.ok((await say()) > 48_000 && (await said()) > 24_000, 'after');
    await tts.close();
    t.equal((await after.stop()).code, 0);
  });
});
