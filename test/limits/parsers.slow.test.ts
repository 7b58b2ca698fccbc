/** Everything that reads texts of owners or callers takes time in proportion to them: twice the length, at most 2.5 times as long. */
import t, { type Test } from 'tap';
import type { ActiveKey } from '../../src/store/store.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { parseVoicePlatform } from '../../src/api/voice-platform.js';
import { parseClientFrame } from '../../src/api/ws-frames.js';
import { settingsOf } from '../../src/api/speech-settings.js';
import { Cookies } from '../../src/console/headers.js';
import { Gate } from '../../src/console/gate.js';
import { parseSpeechBody } from '../../src/dialects/elevenlabs/request.js';
import { readTags, TagReader } from '../../src/dialects/elevenlabs/tags.js';
import { speechParser } from '../../src/dialects/openai/request.js';
import { EventFault, EventReader } from '../../src/dialects/wyoming/events.js';
import type { RequestHead } from '../../src/front/request-head.js';
import type { Responder } from '../../src/front/speech-route.js';
import { parseTraceparent } from '../../src/front/trace.js';
import { limits } from '../../src/limits.js';
import { requestOf, Utterances } from '../../src/speech/utterances.js';
import { Lexicon } from '../../src/text/lexicon.js';
import { Segmenter } from '../../src/text/segments.js';
import { clausesOf } from '../../workers/engines/g2p/clauses.js';
import { spokenLanguage } from '../../workers/engines/g2p/languages.js';
import { licenceIn, type PackFolder, parseJson } from '../../workers/engines/pack.js';
import { readNpy } from '../../workers/engines/numpy.js';
import { piecesOf } from '../../workers/engines/pocket/text.js';
import { LexiconFileError, parsePlain } from '../../workers/lexicons/entries.js';
import { parsePls } from '../../workers/lexicons/pls.js';
import { VoicePackError } from '../../src/threads/voices.js';
import { npyWith } from '../support/kokoro.js';
import { type Attack, attacks, inWords, slownessOf } from '../support/attacks.js';

/** Refusals that name what is wrong are answers. */
const answered =
  (run: (text: string) => unknown, ...refusals: readonly (new (...args: never[]) => Error)[]) =>
  (text: string): unknown => {
    try {
      return run(text);
    } catch (error) {
      if (refusals.some((refusal) => error instanceof refusal)) return error;
      throw error;
    }
  };

const head: RequestHead = {
  ...{ apiKey: '', xiApiKey: '', authorization: '', host: '', cookie: '', fetchSite: '', forwardedFor: '' },
  ...{ contentType: undefined, isPreflight: false, query: '', parameter: '', contentLength: 0 },
};

const lexicons = [new Lexicon()];
for (const written of ['a', 'a.', '0', 'the a', 'a a a a a'])
  lexicons[0]!.add({ written, caseRule: 'any', language: null, form: { spelling: 'b' } });

const settings = settingsOf({ voiceId: 'wren', normalizeText: true });
/** To the clauses that voices speak. */
const spoken = (language: string) => (text: string) =>
  segmentsOf(text, language, false).map((segment) => {
    const { words, spoken } = requestOf(segment, settings, limits, language, lexicons);
    return clausesOf(segment.text, words, spoken, undefined, spokenLanguage(language));
  });
const segmentsOf = (text: string, language: string, arrivesInPieces = true) => {
  const segmenter = new Segmenter(limits, arrivesInPieces, language);
  return [...segmenter.push(text), ...segmenter.end()];
};
const pocketRules = {
  max_tokens_per_chunk: 50,
  pad_with_spaces_for_short_inputs: true,
  remove_semicolons: true,
};

/** It is not called. */
const responder: Responder = {
  framing: 'raw',
  begin: () => {
    throw new Error('nothing is spoken');
  },
};
const openAi = speechParser({ names: [], voiceFor: (name) => name }, () => ['wren'], {
  audio: () => responder,
  sse: () => responder,
});
const anyKey = { voices: null } as ActiveKey;

const gate = new Gate({ origin: null, host: 'localhost', scheme: 'http', url: () => '' });
const cookies = new Cookies(false);

const wyoming = (text: string, pieceBytes: number): void => {
  const reader = new EventReader(limits, { taken: 0, take: () => true, giveBack: () => undefined });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    reader.push(bytes.subarray(at, at + pieceBytes));
    while (reader.next() !== null);
  }
};

const body = (field: string, parse: (bytes: Buffer) => unknown) => (text: string) => [
  parse(Buffer.from(text)),
  parse(Buffer.from(JSON.stringify({ [field]: text }))),
];

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'a lexicon in columns': (text) => parsePlain(text, limits),
  'a lexicon of the W3C': answered((text) => parsePls(text, limits), LexiconFileError),
  'a word of a lexicon of the W3C': answered(
    (text) =>
      parsePls(`<lexicon xml:lang="en"><lexeme><grapheme>${text}</grapheme></lexeme></lexicon>`, limits),
    LexiconFileError,
  ),
  'a manifest': answered((text) => parseJson('x', text), VoicePackError),
  'an array of NumPy': answered((text) => readNpy('x', npyWith(text)), RangeError),
  'the shape of an array of NumPy': answered(
    ({ length }) => readNpy('x', npyWith("'shape': (".repeat(length))),
    RangeError,
  ),
  'the licence of a pack': (text) =>
    licenceIn({
      files: ['README.md', 'MODEL_CARD'],
      bytes: () => Promise.resolve(Buffer.from(`---\nlicense: ${text}\n---\n${text}`)),
    } as unknown as PackFolder),
  'a body': body('text', (bytes) => parseSpeechRequest(bytes, undefined, limits)),
  'a body of the webhook': body('message', (bytes) => parseVoicePlatform(bytes, undefined, 'wren', limits)),
  'a message': body('send_text', (bytes) => parseClientFrame(bytes, limits)),
  tags: (text) => [readTags(text), readTags(`<break ${text}>`.repeat(2)), readTags(`<${text}`)],
  'tags in pieces': (text) => {
    const reader = new TagReader();
    for (let at = 0; at < text.length; at += 7) reader.push(text.slice(at, at + 7));
    reader.end();
  },
  'a body of ElevenLabs': body('text', (bytes) =>
    parseSpeechBody({ voiceIn: () => 'wren', timestamps: false })(bytes, head, limits, anyKey),
  ),
  'a body of OpenAI': body('input', (bytes) => openAi(bytes, head, limits, anyKey)),
  'events of Wyoming': answered((text) => wyoming(text, 4_096), EventFault),
  'events of Wyoming, byte by byte': answered((text) => wyoming(text, 1), EventFault),
  headers: (text) => [
    parseTraceparent(text),
    cookies.session({ cookie: text }),
    gate.refusePage({ host: text }),
    gate.refusePage({ host: `[${text}]` }),
  ],
};

/** These cut a text into segments first, so what counts is how slow one can be. */
const speakers: typeof parsers = {
  'English, with numbers': spoken('en-US'),
  'German, with numbers': spoken('de-DE'),
  'the pieces of a voice that reads letters': (text) =>
    segmentsOf(text, 'en').map((segment) =>
      piecesOf({ ...segment, settings, seed: 1, utteranceSeed: 1 }, pocketRules, (part) => part.length),
    ),
};

const texts = attacks('', 8);
const check =
  (tried: readonly Attack[], ...sizes: [units: number, suspectMs: number]) =>
  async (t: Test, run: (text: string) => unknown): Promise<void> => {
    for (const attack of tried) {
      const slowness = await slownessOf(attack, sizes[0], run, sizes[1]);
      if (slowness === null) continue;
      t.fail(slowness);
      break;
    }
    t.pass(`${tried.length} texts`);
  };

const checkParser = check(texts, 2_000, 4);
for (const [name, run] of Object.entries(parsers))
  t.test(`${name} takes linear time`, (t) => checkParser(t, run));

const checkSpeaker = check(
  inWords(
    texts.filter((_, at) => at % 3 < 2),
    240,
  ),
  480,
  50,
);
for (const [name, run] of Object.entries(speakers))
  t.test(`${name}: no word takes long`, (t) => checkSpeaker(t, run));

t.test('a text of many pauses is cut in linear time', async (t) => {
  const cutAll = ({ length }: string): void => {
    const utterances = new Utterances(limits, { framing: 'socket', settings }, 'en-US', () => []);
    for (let pause = 0; pause < length; pause++) utterances.append('', { pauseMs: 1 });
    utterances.end();
    let cut = 0;
    for (let segments = utterances.cut(); segments !== null; segments = utterances.cut())
      cut += segments.length;
    if (cut !== length) throw new Error(`${cut} of ${length} pauses were cut`);
  };
  const pauses = { name: 'pauses', text: (length: number) => ' '.repeat(length) };
  t.equal(await slownessOf(pauses, 20_000, cutAll), null);
});
