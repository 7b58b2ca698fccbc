/** The HTTP API of OpenAI, as far as its clients use it to speak. */
import { voicesOf } from '../../accounts/keys.js';
import type { HttpDialectConfig } from '../../config.js';
import { reply, replyRefused } from '../../front/reply.js';
import { keyIn } from '../../front/request-head.js';
import { streamingResponder } from '../../front/responders.js';
import type { Handler, Route } from '../../front/routes.js';
import { keyedJson } from '../../front/specification.js';
import { callerOf, speechRoute, type SpeechRouteParts } from '../../front/speech-route.js';
import { audioResponders } from '../audio.js';
import type { DialectParts, HttpDialect } from '../http-listener.js';
import { likenessToOpenAi, stockVoices } from '../stock-voices.js';
import { modelUnknown, openAiErrors } from './errors.js';
import { speechParser } from './request.js';

const SPEECH_PATH = '/v1/audio/speech';

/** The service counts characters where OpenAI counts tokens. */
const doneEvent = (characters: number): string => {
  const usage = { input_tokens: characters, output_tokens: 0, total_tokens: characters };
  return `data: ${JSON.stringify({ type: 'speech.audio.done', usage })}\n\n`;
};

const eventResponder = streamingResponder(
  'openai-events',
  () => ({ contentType: 'text/event-stream; charset=utf-8' }),
  ({ characters = 0 }) => doneEvent(characters),
);

/** Any model is accepted, and none makes a difference: these are the ones that its clients ask for. */
const modelIds = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts'];

/** The time is that of OpenAI's first model for speech. */
const models = modelIds.map((id) => ({ id, object: 'model', created: 1_699_053_241, owned_by: 'syrinx' }));
const modelList = JSON.stringify({ object: 'list', data: models });

/** `GET /v1/audio/models`, as Open WebUI reads it. */
const audioModelList = JSON.stringify({ models: modelIds.map((id) => ({ id })) });

/** `GET /v1/audio/voices`, as Open WebUI reads it. */
const voiceList = (names: readonly string[]): string =>
  JSON.stringify({ voices: names.map((name) => ({ id: name, name })) });

const json = (body: string) => ({ status: 200, contentType: 'application/json', body });

export const openAi = ({ port, voices: configured }: HttpDialectConfig, parts: DialectParts): HttpDialect => {
  const { admission, bounds, config, shared, speech } = parts;
  const keyed: SpeechRouteParts = {
    ...{ admission, speech, isDraining: shared.isDraining },
    authenticate: (_, head) => admission.authenticate(keyIn(head)),
  };
  const speakerIds = (): readonly string[] => speech.voices.speakerIds;
  const voices = stockVoices('OPENAI_VOICES', likenessToOpenAi, configured, parts);
  const audio = audioResponders(config.dataDir);
  const responders = { audio: audio.of, sse: () => eventResponder };
  const modelRoute = keyedJson(keyed, (_, { parameter }, exchange) => {
    const model = models.find(({ id }) => id === parameter);
    if (model !== undefined) return JSON.stringify(model);
    replyRefused(exchange, 'requestInvalid', modelUnknown(parameter, bounds));
    return null;
  });
  /** Open WebUI asks without a key, and then gets the voices of all packs. */
  const voicesRoute: Handler = (exchange, head) => {
    const isStranger = keyIn(head) === '';
    const key = isStranger ? null : callerOf(keyed, exchange, head);
    if (key === null && !isStranger) return;
    exchange.inTurn(() => {
      const own = key === null ? speakerIds() : voicesOf(key, speakerIds());
      const aliases = voices.names.filter((name) => own.includes(voices.voiceFor(name, own)));
      reply(exchange, json(voiceList([...new Set([...own, ...aliases])])));
    });
  };
  const routes: readonly Route[] = [
    {
      path: SPEECH_PATH,
      method: 'post',
      handler: speechRoute(keyed, speechParser(voices, speakerIds, responders), audio.streamed),
    },
    { path: '/v1/models', method: 'get', handler: keyedJson(keyed, () => modelList) },
    { path: '/v1/models/:id', method: 'get', handler: modelRoute },
    { path: '/v1/audio/models', method: 'get', handler: (exchange) => reply(exchange, json(audioModelList)) },
    { path: '/v1/audio/voices', method: 'get', handler: voicesRoute },
  ];
  return {
    name: 'openai',
    variables: { host: 'HOST', port: 'OPENAI_PORT' },
    port,
    errors: openAiErrors(bounds),
    routes,
    speechPaths: [SPEECH_PATH],
    socketPaths: [],
  };
};
