/** The HTTP API of ElevenLabs, as far as its clients use it to speak. */
import { voicesOf } from '../../accounts/keys.js';
import type { HttpDialectConfig } from '../../config.js';
import { reply, replyError } from '../../front/reply.js';
import { keyIn } from '../../front/request-head.js';
import { audioResponder, lineResponder, wholeResponder, type WholeShape } from '../../front/responders.js';
import type { Handler, Route } from '../../front/routes.js';
import { keyedJson } from '../../front/specification.js';
import { speechRoute, type Responder, type SpeechRouteParts } from '../../front/speech-route.js';
import type { ActiveKey } from '../../store/store.js';
import { contentTypeOf } from '../content-types.js';
import type { DialectParts, HttpDialect } from '../http-listener.js';
import { elevenLabsErrors } from './errors.js';
import { modelList, subscription, voiceList, voicePage } from './lists.js';
import { comesWithoutKey, socketAuthentication } from './handshake.js';
import { parseSpeechBody } from './request.js';

const SPEAK_PATH = '/v1/text-to-speech/:voice';
const STREAM_PATH = `${SPEAK_PATH}/stream`;

const TIMED_PATH = `${SPEAK_PATH}/with-timestamps`;
const TIMED_STREAM_PATH = `${STREAM_PATH}/with-timestamps`;

const timedShape: WholeShape = {
  framing: 'elevenlabs-whole',
  audioName: 'audio_base64',
  timestamps({ words, starts, ends }) {
    const alignment =
      `{"characters":${words},"character_start_times_seconds":${starts}` +
      `,"character_end_times_seconds":${ends}}`;
    return `"alignment":${alignment},"normalized_alignment":${alignment}`;
  },
};

export const elevenLabs = ({ port, voices }: HttpDialectConfig, parts: DialectParts): HttpDialect => {
  const { admission, bounds, config, shared, speech } = parts;
  const keyed: SpeechRouteParts = { admission, speech, isDraining: shared.isDraining, keyOf: keyIn };
  const voiceIds = (key: ActiveKey): readonly string[] => voicesOf(key, speech.voices.speakerIds);
  const subscriptionRoute: Handler = (exchange, head) => {
    const caller = admission.authenticate(keyIn(head));
    const standing = caller.ok ? admission.standing(caller.key) : null;
    if (caller.ok) exchange.key = caller.key;
    if (!caller.ok) replyError(exchange, caller.code);
    else if (standing === null) replyError(exchange, 'unavailable');
    else reply(exchange, { status: 200, contentType: 'application/json', body: subscription(standing) });
  };
  // A file of this API has no length in its header either, so both routes send the audio as it is made.
  const speak = (timestamps: boolean, responder: Responder): Handler =>
    speechRoute(keyed, parseSpeechBody({ voices, timestamps }), responder);
  const audio = speak(false, audioResponder(contentTypeOf));
  const models = (key: ActiveKey): string =>
    modelList(
      voiceIds(key).map((id) => speech.voices.language(id)),
      bounds.bodyBytesMax,
    );
  const socket = (isMulti: boolean) => ({
    authenticate: socketAuthentication({ admission, bounds, speech, voices, isMulti }),
    comesWithoutKey,
  });
  const routes: readonly Route[] = [
    { path: SPEAK_PATH, method: 'post', handler: audio },
    { path: STREAM_PATH, method: 'post', handler: audio },
    { path: TIMED_PATH, method: 'post', handler: speak(true, wholeResponder(config.dataDir, timedShape)) },
    { path: TIMED_STREAM_PATH, method: 'post', handler: speak(true, lineResponder) },
    { path: '/v1/voices', method: 'get', handler: keyedJson(keyed, (key) => voiceList(voiceIds(key))) },
    {
      path: '/v2/voices',
      method: 'get',
      handler: keyedJson(keyed, (key, { query }) => voicePage(voiceIds(key), new URLSearchParams(query))),
    },
    { path: '/v1/models', method: 'get', handler: keyedJson(keyed, models) },
    { path: '/v1/user/subscription', method: 'get', handler: subscriptionRoute },
  ];
  return {
    name: 'elevenlabs',
    variables: { host: 'HOST', port: 'ELEVENLABS_PORT' },
    port,
    errors: elevenLabsErrors(bounds),
    routes,
    speechPaths: [SPEAK_PATH, STREAM_PATH, TIMED_PATH, TIMED_STREAM_PATH],
    socketPaths: [
      { path: `${SPEAK_PATH}/stream-input`, ...socket(false) },
      { path: `${SPEAK_PATH}/multi-stream-input`, ...socket(true) },
    ],
  };
};
