/**
 * The specification's HTTP routes: each operation of the API with its handler. A route of the specification is an entry in
 * `operations` (src/api/operations.ts) and one here; a listener of another dialect has a table of its own.
 */
import { voicesOf } from '../accounts/keys.js';
import type { ActiveKey } from '../store/store.js';
import { openApiDocument } from '../api/openapi.js';
import { operations, type OperationId } from '../api/operations.js';
import type { Health, SpeakerList } from '../api/responses.js';
import { parseSpeechRequest } from '../api/speech-request.js';
import { parseVoicePlatform } from '../api/voice-platform.js';
import { Latest } from '../latest.js';
import type { Bounds } from '../limits.js';
import type { Speech } from '../speech/speech.js';
import type { Exchange } from './exchange.js';
import { reply } from './reply.js';
import type { RequestHead } from './request-head.js';
import { rawResponder, streamResponder, wholeResponder } from './responders.js';
import type { Handler, Route } from './routes.js';
import { Query } from './query.js';
import { callerOf, speechRoute, type Parser, type Responder, type SpeechRouteParts } from './speech-route.js';

export interface Readiness {
  /** Why no speech should be sent here now, one phrase each; empty if it may. */
  reasons(): readonly string[];
  /** What needs the operator's attention although the service is ready. */
  warnings(): readonly string[];
}

const health = (status: number, value: Health) => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify(value),
  headers: [['cache-control', 'no-store']] as const,
});

/** The process is alive and its event loop runs. */
export const healthAnswer = () => health(200, { status: 'ok' });

/** Voices are loaded, all threads run, the store works, and nothing drains. */
export const readyAnswer = (readiness: Readiness) => {
  const reasons = readiness.reasons();
  const warnings = readiness.warnings();
  const shown = warnings.length === 0 ? {} : { warnings: [...warnings] };
  return reasons.length === 0
    ? health(200, { status: 'ready', ...shown })
    : health(503, { status: 'not ready', reasons: [...reasons], ...shown });
};

/**
 * A route that asks for a key and answers with JSON.
 *
 * @param body returns `null` if it has refused the request itself
 */
export const keyedJson =
  (
    parts: Pick<SpeechRouteParts, 'admission' | 'authenticate'>,
    body: (key: ActiveKey, head: RequestHead, exchange: Exchange) => string | null,
  ): Handler =>
  (exchange, head) => {
    const key = callerOf(parts, exchange, head);
    if (key === null) return;
    exchange.inTurn(() => {
      const json = body(key, head, exchange);
      if (json !== null) reply(exchange, { status: 200, contentType: 'application/json', body: json });
    });
  };

/** OpenAPI descriptions in memory, about 40 KiB each. */
const DESCRIPTIONS_KEPT_MAX = 32;

/** Keys with the same voices share a description. Its examples name the voices, and building it takes milliseconds. */
const openApi = (speech: Pick<Speech, 'voices'>, bounds: Bounds): ((key: ActiveKey) => string) => {
  const kept = new Latest<string, string>(DESCRIPTIONS_KEPT_MAX);
  const describe = (speakerIds: readonly string[]): string =>
    kept.use(speakerIds.join('\n'), () => JSON.stringify(openApiDocument(speakerIds, bounds)));
  describe(speech.voices.speakerIds);
  return (key) => describe(voicesOf(key, speech.voices.speakerIds));
};

export const speechBody: Parser = (body, head, bounds) => parseSpeechRequest(body, head.contentType, bounds);

const platformBody: Parser = (body, head, bounds) =>
  parseVoicePlatform(body, head.contentType, new Query(head.query).get('voice'), bounds);

export interface SpecificationParts extends SpeechRouteParts {
  readonly readiness: Readiness;
  readonly bounds: Bounds;
  /** Where whole results go that are too large for memory. */
  readonly spoolFolder: string;
}

/** The routes that speak, for the metrics. */
export const speechPaths: readonly string[] = [
  operations.createSpeech.path,
  operations.streamSpeech.path,
  operations.speakForVoicePlatform.path,
];

/** How an operation reads its body, and how it answers. */
interface Speaking {
  readonly parse: Parser;
  readonly responder: Responder;
}

/** How the operations answer a request whose key is known. */
export interface KeyedOperations {
  readonly speaking: Readonly<Record<'createSpeech' | 'streamSpeech' | 'speakForVoicePlatform', Speaking>>;
  /** The JSON answers of operations that make no speech. */
  readonly json: Readonly<Record<'listSpeakers' | 'describe', (key: ActiveKey) => string>>;
}

export const keyedOperations = ({
  bounds,
  speech,
  spoolFolder,
}: Pick<SpecificationParts, 'bounds' | 'speech' | 'spoolFolder'>): KeyedOperations => ({
  speaking: {
    createSpeech: { parse: speechBody, responder: wholeResponder(spoolFolder) },
    streamSpeech: { parse: speechBody, responder: streamResponder },
    speakForVoicePlatform: { parse: platformBody, responder: rawResponder },
  },
  json: {
    listSpeakers: (key) => {
      const list: SpeakerList = { speaker_ids: [...voicesOf(key, speech.voices.speakerIds)] };
      return JSON.stringify(list);
    },
    describe: openApi(speech, bounds),
  },
});

export const specificationRoutes = (parts: SpecificationParts): readonly Route[] => {
  const { readiness } = parts;
  const { json, speaking } = keyedOperations(parts);
  const speak = ({ parse, responder }: Speaking): Handler => speechRoute(parts, parse, responder);
  const handlers: Record<OperationId, Handler> = {
    createSpeech: speak(speaking.createSpeech),
    streamSpeech: speak(speaking.streamSpeech),
    speakForVoicePlatform: speak(speaking.speakForVoicePlatform),
    listSpeakers: keyedJson(parts, json.listSpeakers),
    describe: keyedJson(parts, json.describe),
    isAlive: (exchange) => exchange.inTurn(() => reply(exchange, healthAnswer()), true),
    isReady: (exchange) => exchange.inTurn(() => reply(exchange, readyAnswer(readiness)), true),
  };
  return (Object.keys(handlers) as OperationId[]).map((id) => ({ ...operations[id], handler: handlers[id] }));
};
