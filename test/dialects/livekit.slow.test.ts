/** LiveKit Agents with its plugin for ElevenLabs, unmodified, against the service. */
import { EventEmitter, once } from 'node:events';
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import type { ElevenLabsMessage } from '../../scripts/rig/elevenlabs.js';
import { ElevenLabsClient } from '../support/elevenlabs-client.js';
import { interruptions, loadClient, missingClients } from '../support/interop.js';
import { freePort, prose, SCRIPTED, startService, until } from '../support/service.js';

interface SynthesizedAudio {
  readonly frame: { readonly data: Int16Array; readonly sampleRate: number; readonly channels: number };
  readonly final: boolean;
  readonly timedTranscripts?: readonly {
    readonly text: string;
    readonly startTime: number;
    readonly endTime: number;
  }[];
}
type Stream = AsyncIterable<SynthesizedAudio | symbol> & {
  readonly contextId: string;
  pushText(text: string): void;
  flush(): void;
  endInput(): void;
  close(): void;
};
interface LiveKitTts extends EventEmitter {
  synthesize(text: string): AsyncIterable<SynthesizedAudio>;
  stream(options?: object): Stream;
  close(): Promise<void>;
}
interface Plugin {
  readonly TTS: new (options: object) => LiveKitTts;
}
interface Failure {
  readonly recoverable: boolean;
  readonly error: Error & { readonly statusCode?: number; readonly retryable?: boolean };
}

const RATE_HZ = 24_000;
const NEVER_RETRY = { maxRetry: 0, retryIntervalMs: 0, timeoutMs: 10_000 };
const text = 'Good morning. The kettle is on, and the paper is at the door. Shall we go, my 👋 friend?';

const isAudio = (event: SynthesizedAudio | symbol): event is SynthesizedAudio => typeof event === 'object';

const read = async (events: AsyncIterable<SynthesizedAudio | symbol>) => {
  const audio: SynthesizedAudio[] = [];
  for await (const event of events) if (isAudio(event)) audio.push(event);
  const samples = audio.reduce((sum, { frame }) => sum + frame.data.length, 0);
  const words = audio.flatMap(({ timedTranscripts }) => timedTranscripts ?? []);
  return { audio, seconds: samples / RATE_HZ, words };
};

/** @returns the messages that come to sockets from now on. The plugin drops those of an interrupted turn unseen */
const observeSockets = (t: Test): ElevenLabsMessage[] => {
  const { WebSocket } = loadClient('ws') as { WebSocket: { prototype: EventEmitter } };
  const { prototype } = WebSocket;
  const messages: ElevenLabsMessage[] = [];
  prototype.emit = function emit(name: string, ...values: unknown[]) {
    if (name === 'message') messages.push(JSON.parse(String(values[0])) as ElevenLabsMessage);
    return EventEmitter.prototype.emit.call(this, name, ...values);
  };
  t.teardown(() => Reflect.deleteProperty(prototype, 'emit'));
  return messages;
};

const STREAM = 'elevenlabs:/v1/text-to-speech/:voice/stream';
const SOCKET = 'elevenlabs:/v1/text-to-speech/:voice/multi-stream-input';

t.test('LiveKit Agents', { skip: missingClients, timeout: 280_000 }, async (t) => {
  // The plugin reports a failed request as an event, and leaves its rejected promise unhandled.
  const ignore = (): void => undefined;
  process.on('unhandledRejection', ignore);
  t.teardown(() => process.off('unhandledRejection', ignore));
  const agents = loadClient('@livekit/agents') as { initializeLogger(options: object): void };
  agents.initializeLogger({ pretty: false, level: 'silent' });
  const { TTS } = loadClient('@livekit/agents-plugin-elevenlabs') as Plugin;

  // A fixed port, as in a deployment: the last test starts another service on it.
  const port = String(await freePort());
  const service = await startService(t, { ELEVENLABS_PORT: port });
  const [key = '', brokeKey = '', fullKey = ''] = await createKeys(service.dataDir, [
    ['livekit', null],
    ['broke', 0],
    ['full', null],
  ]);
  const origin = `127.0.0.1:${service.dialectPorts['elevenlabs']}`;
  const requests = (route: string, status: number): Promise<number> =>
    service.metric('syrinx_requests_total', { route, status: String(status) });
  const open = (t: Test, options: object = {}): LiveKitTts => {
    const opened = new TTS({
      ...{ apiKey: key, baseURL: `http://${origin}/v1`, voiceId: 'wren', encoding: `pcm_${RATE_HZ}` },
      ...options,
    });
    t.teardown(() => opened.close());
    return opened;
  };

  await t.test('synthesize speaks a whole text', async (t) => {
    const { audio, seconds } = await read(open(t).synthesize(text));
    t.ok(seconds > 4 && seconds < 12, `${seconds} s`);
    t.match(audio[0]?.frame, { sampleRate: RATE_HZ, channels: 1 });
    t.strictSame(
      audio.map(({ final }) => final),
      audio.map((_, index) => index === audio.length - 1),
      'only the last frame is final',
    );
  });

  await t.test('stream speaks text in pieces: segments in order, with words that rebuild it', async (t) => {
    const tts = open(t);
    for (const size of [1, 4]) {
      const stream = tts.stream();
      for (const piece of text.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? []) stream.pushText(piece);
      stream.flush();
      stream.pushText('And this is the next segment.');
      stream.flush();
      stream.endInput();
      const { seconds, words } = await read(stream);
      t.equal(
        words
          .map((word) => word.text)
          .join('')
          .trim(),
        `${text} And this is the next segment.`,
      );
      let last = 0;
      for (const { startTime, endTime, text: word } of words) {
        t.ok(startTime >= last && endTime >= startTime, word);
        last = endTime;
      }
      t.ok(last <= seconds, `${last} of ${seconds} s`);
    }
  });

  await t.test('empty and blank text makes no audio and no error', async (t) => {
    const tts = open(t);
    const failures: unknown[] = [];
    tts.on('error', (failure) => failures.push(failure));
    for (const input of ['', '   ', '\n\n']) {
      const stream = tts.stream();
      stream.pushText(input);
      stream.endInput();
      t.equal((await read(stream)).audio.length, 0, JSON.stringify(input));
    }
    t.strictSame(failures, []);
  });

  await t.test('many interruptions in mid-speech end each turn at once, on one socket', async (t) => {
    const wire = observeSockets(t);
    const tts = open(t);
    const opened = await requests(SOCKET, 101);
    const turns: { readonly contextId: string; readonly heard: number }[] = [];
    for (let turn = 0; turn < interruptions; turn++) {
      const stream = tts.stream();
      stream.pushText(`Turn ${turn} begins here. ${prose(10)}`);
      stream.flush();
      const events = stream[Symbol.asyncIterator]();
      const first = await events.next();
      if (first.done === true) t.fail(`turn ${turn} has no audio`);
      turns.push({ contextId: stream.contextId, heard: wire.length });
      stream.close();
    }
    t.ok(await until(async () => (await service.openContexts()) === 0));
    // The answers may still be on their way.
    const isAnswered = (id: string) =>
      wire.some(({ contextId, isFinal }) => contextId === id && isFinal === true);
    t.ok(await until(() => turns.every(({ contextId }) => isAnswered(contextId))));
    let lateSeconds = 0;
    for (const { contextId, heard } of turns) {
      const rest = wire.slice(heard).filter((message) => message.contextId === contextId);
      t.equal(rest.at(-1)?.isFinal, true, 'no audio follows the answer to the interruption');
      for (const { audio } of rest) lateSeconds += Buffer.from(audio ?? '', 'base64').length / 2 / RATE_HZ;
    }
    // What was on its way. A turn has over half a minute of speech.
    t.ok(lateSeconds < 15 * turns.length, `${lateSeconds} s of audio came between interruption and answer`);
    const last = tts.stream();
    last.pushText('The last turn is heard to its end.');
    last.endInput();
    const { words } = await read(last);
    t.equal(
      words
        .map((word) => word.text)
        .join('')
        .trim(),
      'The last turn is heard to its end.',
      'nothing of an old turn',
    );
    t.ok(await until(async () => (await service.metric('syrinx_streams', { route: SOCKET })) === 0));
    t.ok(await until(async () => (await service.openContexts()) === 0), 'every context is over');
    t.equal(await requests(SOCKET, 101), opened + 1, 'one socket');
  });

  await t.test('errors are its own exceptions, and no retry follows what cannot succeed', async (t) => {
    const failureOf = async (options: object): Promise<Failure['error']> => {
      const tts = open(t, options);
      const failed = once(tts, 'error') as Promise<[Failure]>;
      const reading = read(tts.synthesize('Hello.'));
      const [{ error }] = await failed;
      t.equal((await reading).audio.length, 0);
      return error;
    };
    for (const [options, status, name] of [
      [{ apiKey: 'svc_sk_unknown' }, 401, /invalid_api_key/],
      [{ apiKey: brokeKey }, 402, /quota_exceeded/],
      [{ voiceId: 'nobody' }, 404, /voice_not_found/],
      [{ encoding: 'aac_44100' }, 422, /output_format/],
    ] as const) {
      const error = await failureOf(options);
      t.match(error, { name: /APIStatusError/, statusCode: status, retryable: false, message: name });
      t.equal(await requests(STREAM, status), 1, `${status} is not retried`);
    }
  });

  await t.test('a stream whose socket is refused fails once, after its own few tries', async (t) => {
    await Promise.all(
      (
        [
          [{ apiKey: 'svc_sk_unknown' }, 401],
          [{ apiKey: brokeKey }, 402],
          [{ voiceId: 'nobody' }, 404],
        ] as const
      ).map(async ([options, status]) => {
        const tts = open(t, options);
        const failures: Failure[] = [];
        tts.on('error', (failure: Failure) => failures.push(failure));
        const stream = tts.stream();
        stream.pushText('Hello there.');
        stream.endInput();
        t.equal((await read(stream)).audio.length, 0);
        t.match(failures, [{ error: { name: 'APIConnectionError' }, recoverable: false }], `${status}`);
        t.equal(failures.length, 1);
        await until(async () => (await requests(SOCKET, status)) >= 4);
        t.equal(await requests(SOCKET, status), 4, 'it does not see the status');
      }),
    );
  });

  await t.test('the tenth request is tried again until a slot is free', async (t) => {
    const holders = await Promise.all(
      Array.from({ length: 9 }, async () => {
        const url = `ws://${origin}/v1/text-to-speech/wren/multi-stream-input?output_format=pcm_24000`;
        const holder = (await ElevenLabsClient.open(url, { 'xi-api-key': fullKey })) as ElevenLabsClient;
        holder.send({ text: `${text} `.repeat(100), context_id: 'c', flush: true });
        await holder.until(() => holder.audio('c').length > 0);
        return holder;
      }),
    );
    const tts = open(t, { apiKey: fullKey });
    const reading = read(tts.synthesize('Hello there.'));
    t.ok(await until(async () => (await requests(STREAM, 429)) > 0));
    for (const holder of holders) holder.close();
    t.ok((await reading).seconds > 0.3);
  });

  await t.test('after a restart of the service, the next turn is spoken', async (t) => {
    const tts = open(t);
    const say = async (words: string) => {
      const stream = tts.stream({ connOptions: NEVER_RETRY });
      stream.pushText(words);
      stream.endInput();
      return read(stream);
    };
    t.ok((await say('Before the restart.')).seconds > 0.5);
    t.equal((await service.stop()).code, 0);
    const env = { ELEVENLABS_PORT: port, DATA_DIR: service.dataDir };
    const after = await startService(t, env, SCRIPTED);
    t.ok((await say('After the restart.')).seconds > 0.5, 'on a new socket, at the first try');
    t.equal((await after.stop()).code, 0);
  });
});
