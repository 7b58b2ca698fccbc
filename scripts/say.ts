/** Speaks through a running service, from the command line. */
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { serviceUrl } from '../src/address.js';
import {
  type Encoding,
  type SpeechContext,
  SyrinxError,
  type SyrinxErrorCode,
  connect,
} from '../src/client/index.js';
import { readConfig } from '../src/config.js';
import { isBlank, wordSpans } from '../src/text/words.js';
import { program, runIfMain, type Terminal, UsageError } from './command.js';
import { createProgress } from './progress.js';
import { SayError, Service, type Speech, type SpeechRecord, messages } from './say/service.js';
import { FileSink, PlayerSink, type Sink, StdoutSink } from './say/sinks.js';

const usage = `Usage: npm run say -- "text" [options]        without text: reads standard input

  -v, --voice V     one of the service's voices (default: its first)
  -f, --format F    mp3, wav, pcm, linear16, opus, mulaw, alaw (default: by the file's name, else wav)
  -o, --output F    writes a file (-: standard output) instead of playing
      --ws          sends the text word by word over a WebSocket, as voice agents do
      --url URL     the service (default: http://127.0.0.1:8080, or by HOST and PORT)
      --key K       an API key (default: SYRINX_KEY, or the first key in DATA_DIR)

Speaks through a running service. Where nothing can play sound, it says so, writes a file, and ends with 1.
`;

const formatsByExtension: Readonly<Record<string, string>> = {
  '': 'wav',
  '.wav': 'wav',
  '.pcm': 'pcm',
  '.raw': 'pcm',
  '.mp3': 'mp3',
  '.opus': 'opus',
  '.ogg': 'opus',
  '.ul': 'mulaw',
  '.al': 'alaw',
};

/** @throws {UsageError} the name of the file tells no format */
const formatOf = (output: string | null): string => {
  const extension = output === null || output === '-' ? '' : extname(output).toLowerCase();
  const format = formatsByExtension[extension];
  if (format !== undefined) return format;
  const known = Object.keys(formatsByExtension).filter((name) => name !== '');
  throw new UsageError(`${output}: no format has this ending. Use ${known.join(', ')}, or --format too`);
};

/** The given key, or the one that the service's first start wrote beside its store. */
const findKey = (given: string | null, env: NodeJS.ProcessEnv, dataDir: string): string => {
  const key = given ?? env['SYRINX_KEY'];
  if (key !== undefined && key !== '') return key;
  try {
    return readFileSync(join(dataDir, 'first-key'), 'utf8').trim();
  } catch {
    throw new SayError('No key. Give one with --key or SYRINX_KEY; `npm run keys -- create` makes one.');
  }
};

const openSink = (output: string | null): Promise<Sink> | Sink => {
  if (output === null) return PlayerSink.open();
  return output === '-' ? new StdoutSink() : FileSink.open(output);
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
  { text, voice, encoding }: Speech,
): AsyncGenerator<SpeechRecord, void, void> {
  try {
    await using client = await connect({ url, apiKey: key, reconnect: false });
    const context = client.context({
      voiceId: voice,
      // The service accepts more names than the client's type, and refuses unknown ones.
      format: { encoding: encoding as Encoding },
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

/** @throws {UsageError} a person at a terminal gave no text @throws {SayError} there is nothing to speak */
const readText = async (words: readonly string[]): Promise<string> => {
  if (words.length === 0 && process.stdin.isTTY) throw new UsageError('give a text');
  const text = words.length > 0 ? words.join(' ') : await readAll(process.stdin);
  if (isBlank(text))
    throw new SayError(
      `There is nothing to speak: ${words.length > 0 ? 'the text' : 'standard input'} is empty.`,
    );
  return text;
};

const speak = async (
  speech: Speech,
  records: AsyncIterable<SpeechRecord>,
  output: string | null,
  { err }: Terminal,
): Promise<void> => {
  const sink = await openSink(output);
  // It counts words, because the length of the speech is not known.
  const words = wordSpans(speech.text).length;
  const progress = createProgress('Speaking [{bar}] {value}/{total} words', words);
  process.once('SIGINT', () => {
    progress.stop();
    void sink.discard().finally(() => process.exit(130));
  });
  const startedMs = performance.now();
  let firstAudioMs = 0;
  try {
    for await (const record of records) {
      if (record.type === 'timestamps') progress.add(record.words);
      else {
        firstAudioMs ||= performance.now() - startedMs;
        await sink.write(record.bytes);
      }
    }
    const doneMs = performance.now() - startedMs;
    progress.stop();
    err(
      `${speech.voice}: first audio after ${firstAudioMs.toFixed(0)} ms, all of it after ${doneMs.toFixed(0)} ms` +
        `${output === null || output === '-' ? '' : `, in ${output}`}\n`,
    );
    await sink.finish();
  } catch (error) {
    progress.stop();
    await sink.discard();
    throw error;
  }
};

export const say = program('say', usage, {
  operands: [0, Infinity],
  options: ['voice', 'format', 'output', 'url', 'key'],
  flags: ['ws'],
  short: { voice: 'v', format: 'f', output: 'o' },
  run: async ({ operands, option, flag }, terminal) => {
    const output = option('output');
    const format = option('format');
    if (format !== null && output === null) throw new UsageError('--format is for files: give -o FILE too');
    const encoding = format ?? formatOf(output);
    const text = await readText(operands);
    const config = readConfig(terminal.env);
    const url = option('url') ?? serviceUrl(config, config.port);
    if (!/^https?:\/\//.test(url))
      throw new UsageError(`--url begins with http:// or https://, not "${url}"`);
    const key = findKey(option('key'), terminal.env, config.dataDir);
    const service = new Service(url, key);
    const voice = option('voice') ?? (await service.voices())[0] ?? '';
    const speech = { text, voice, encoding };
    const records = flag('ws') ? speakOverSocket(url, key, speech) : service.speak(speech);
    await speak(speech, records, output, terminal);
  },
});

await runIfMain(import.meta.url, say);
