/**
 * Speaks through a running service:
 *
 *   npm run say -- "text" [--voice V] [--format F] [-o FILE] [--ws] [--url URL] [--key K]
 */
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { SingleBar } from 'cli-progress';
import {
  type Encoding,
  type SpeechContext,
  SyrinxError,
  type SyrinxErrorCode,
  connect,
} from '../src/client/index.js';
import { ConfigError, readConfig } from '../src/config.js';
import { wordSpans } from '../src/text/words.js';
import { endWithReader } from './command.js';
import { SayError, Service, type Speech, type SpeechRecord, messages } from './say/service.js';
import { FileSink, type Sink, StdoutSink, openPlayer, playbackFormat } from './say/sinks.js';

const usage = `Speaks through a running service.

  npm run say -- "text" [options]        without text: reads standard input

  -v, --voice V     one of the service's voices (default: its first)
  -f, --format F    mp3, wav, pcm, linear16, opus, mulaw, alaw (default: by the file's name, else wav)
  -o, --output F    writes a file (-: standard output) instead of playing
      --ws          sends the text word by word over a WebSocket, as voice agents do
      --url URL     the service (default: http://127.0.0.1:8080, or by HOST and PORT)
      --key K       an API key (default: SYRINX_KEY, or the first key in DATA_DIR)
`;

const options = {
  voice: { type: 'string', short: 'v' },
  format: { type: 'string', short: 'f' },
  output: { type: 'string', short: 'o' },
  ws: { type: 'boolean' },
  url: { type: 'string' },
  key: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const readArguments = () => {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new SayError(`${(error as Error).message}\n\n${usage}`);
  }
};

const formatsByExtension: Readonly<Record<string, string>> = {
  '.pcm': 'pcm',
  '.raw': 'pcm',
  '.mp3': 'mp3',
  '.opus': 'opus',
  '.ogg': 'opus',
  '.ul': 'mulaw',
  '.al': 'alaw',
};

/** The given key, or the one that the service's first start wrote beside its store. */
const findKey = (given: string | undefined, dataDir: string): string => {
  const key = given ?? process.env['SYRINX_KEY'];
  if (key !== undefined && key !== '') return key;
  try {
    return readFileSync(join(dataDir, 'first-key'), 'utf8').trim();
  } catch {
    throw new SayError('No key. Give one with --key or SYRINX_KEY; `npm run keys -- create` makes one.');
  }
};

/** A progress bar on a terminal. It counts words, because the length of the speech is not known. */
const createProgress = (total: number) => {
  if (!process.stderr.isTTY) return { words: () => undefined, stop: () => undefined };
  const bar = new SingleBar({
    format: 'Speaking [{bar}] {value}/{total} words',
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, 0);
  let stopped = false;
  return {
    words: (count: number) => {
      bar.increment(count);
    },
    stop: () => {
      if (!stopped) bar.stop();
      stopped = true;
    },
  };
};

const openSink = async (output: string | undefined): Promise<{ sink: Sink; encoding: string }> => {
  if (output === undefined) return openPlayer();
  if (output === '-') return { sink: new StdoutSink(), encoding: 'wav' };
  return { sink: await FileSink.open(output), encoding: formatsByExtension[extname(output)] ?? 'wav' };
};

const explain = (error: SyrinxError, url: string): SayError => {
  const byCode: Partial<Record<SyrinxErrorCode, string>> = {
    invalid_api_key: messages.unknownKey,
    insufficient_credits: messages.noCredit,
    rate_limited: messages.noSlot,
    unreachable: messages.noService(url),
    connection_lost: messages.brokenOff,
  };
  return new SayError(byCode[error.code] ?? error.message);
};

const sendWords = async (context: SpeechContext, text: string): Promise<void> => {
  for (const [word] of text.matchAll(/\s*\S+\s*|\s+/g)) if (!context.send(word)) await context.drained();
  await context.close();
};

/** Speaks as a voice agent does, word by word. Yields the records as they arrive. @throws {SayError} */
async function* speakOverSocket(
  url: string,
  key: string,
  { text, voice, encoding, sampleRateHz }: Speech,
): AsyncGenerator<SpeechRecord, void, void> {
  try {
    await using client = await connect({ url, apiKey: key, reconnect: false });
    const context = client.context({
      voiceId: voice,
      // The service accepts more names than the client's type, and refuses unknown ones.
      format: { encoding: encoding as Encoding, ...(sampleRateHz !== null && { sampleRateHz }) },
      timestamps: true,
    });
    // The reader below gets the same error.
    sendWords(context, text).catch(() => undefined);
    for await (const event of context) {
      if (event.type === 'audio') yield { type: 'audio', bytes: Buffer.from(event.audio.buffer) };
      else if (event.type === 'word') yield { type: 'timestamps', words: 1 };
    }
  } catch (error) {
    if (error instanceof SyrinxError) throw explain(error, url);
    if (error instanceof TypeError) throw new SayError(error.message);
    throw error;
  }
}

const say = async (): Promise<void> => {
  const { values, positionals } = readArguments();
  if (values.help === true) {
    process.stdout.write(usage);
    return;
  }
  if (positionals.length === 0 && process.stdin.isTTY) throw new SayError(usage.trimEnd());
  if (values.format !== undefined && values.output === undefined) {
    throw new SayError('--format is for files: give -o FILE too.');
  }
  const text = positionals.length > 0 ? positionals.join(' ') : await readAll(process.stdin);
  const config = readConfig(process.env);
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host;
  const scheme = config.tls === null ? 'http' : 'https';
  const url = values.url ?? `${scheme}://${host.includes(':') ? `[${host}]` : host}:${String(config.port)}`;
  const key = findKey(values.key, config.dataDir);
  const service = new Service(url, key);
  const voice = values.voice ?? (await service.voices())[0] ?? '';

  const { sink, encoding } = await openSink(values.output);
  const isPlayed = values.output === undefined && encoding === playbackFormat.encoding;
  const progress = createProgress(wordSpans(text).length);
  process.once('SIGINT', () => {
    progress.stop();
    void sink.discard().finally(() => process.exit(130));
  });
  const startedMs = performance.now();
  let firstAudioMs = 0;
  try {
    const sampleRateHz = isPlayed ? playbackFormat.sampleRateHz : null;
    const speech = { text, voice, encoding: values.format ?? encoding, sampleRateHz };
    const records = values.ws === true ? speakOverSocket(url, key, speech) : service.speak(speech);
    for await (const record of records) {
      if (record.type === 'timestamps') progress.words(record.words);
      else {
        firstAudioMs ||= performance.now() - startedMs;
        await sink.write(record.bytes);
      }
    }
    const doneMs = performance.now() - startedMs;
    progress.stop();
    process.stderr.write(
      `${voice}: first audio after ${firstAudioMs.toFixed(0)} ms, all of it after ${doneMs.toFixed(0)} ms` +
        `${values.output === undefined || values.output === '-' ? '' : `, in ${values.output}`}\n`,
    );
    await sink.finish();
  } catch (error) {
    progress.stop();
    await sink.discard();
    throw error;
  }
};

endWithReader();
try {
  await say();
} catch (error) {
  if (!(error instanceof SayError || error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
