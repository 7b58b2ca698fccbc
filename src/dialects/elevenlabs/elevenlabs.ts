/** The HTTP API of ElevenLabs, as far as its clients use it to speak. */
import type { Standing } from '../../accounts/admission.js';
import { voicesOf } from '../../accounts/keys.js';
import type { HttpDialectConfig } from '../../config.js';
import { replyError, replyRefused } from '../../front/reply.js';
import { keyIn, type RequestHead } from '../../front/request-head.js';
import { lineResponder, wholeResponder, type WholeShape } from '../../front/responders.js';
import { jsonParts } from '../../front/whole-result.js';
import type { Handler, Route } from '../../front/routes.js';
import { keyedJson } from '../../front/specification.js';
import { speechRoute, type SpeechRouteParts } from '../../front/speech-route.js';
import { Query } from '../../front/query.js';
import type { ActiveKey } from '../../store/store.js';
import { audioResponders } from '../audio.js';
import type { DialectParts, HttpDialect } from '../http-listener.js';
import { likenessToElevenLabs, stockVoices } from '../stock-voices.js';
import { elevenLabsErrors } from './errors.js';
import { modelList, subscription, user, voiceList, voicePage, voiceSettings, voiceView } from './lists.js';
import { socketAuthentication } from './handshake.js';
import { parseSpeechBody } from './request.js';

const SPEAK_PATH = '/v1/text-to-speech/:voice';
const STREAM_PATH = `${SPEAK_PATH}/stream`;

const TIMED_PATH = `${SPEAK_PATH}/with-timestamps`;
const TIMED_STREAM_PATH = `${STREAM_PATH}/with-timestamps`;

const timedShape: WholeShape = {
  framing: 'elevenlabs-whole',
  contentType: 'application/json',
  audioName: 'audio_base64',
  timestamps({ words, starts, ends }) {
    const alignment = jsonParts`{"characters":${words},"character_start_times_seconds":${starts},"character_end_times_seconds":${ends}}`;
    return jsonParts`"alignment":${alignment},"normalized_alignment":${alignment}`;
  },
};

export const elevenLabs = (
  { port, voices: configured }: HttpDialectConfig,
  parts: DialectParts,
): HttpDialect => {
  const { admission, bounds, config, shared, speech } = parts;
  const keyed: SpeechRouteParts = {
    ...{ admission, speech, isDraining: shared.isDraining },
    authenticate: (_, head) => admission.authenticate(keyIn(head)),
  };
  const voiceIds = (key: ActiveKey): readonly string[] => voicesOf(key, speech.voices.speakerIds);
  const voices = stockVoices('ELEVENLABS_VOICES', likenessToElevenLabs, configured, parts);
  const voiceIn = ({ parameter }: RequestHead, key: ActiveKey): string =>
    voices.voiceFor(parameter, voiceIds(key));
  const standingRoute = (view: (standing: Standing, key: ActiveKey) => string): Handler =>
    keyedJson(keyed, (key, _, exchange) => {
      const standing = admission.standing(key);
      if (standing !== null) return view(standing, key);
      replyError(exchange, 'unavailable');
      return null;
    });
  const voiceRoute = (view: (parameter: string, voiceId: string) => string): Handler =>
    keyedJson(keyed, (key, head, exchange) => {
      const known = voiceIds(key);
      const voiceId = voiceIn(head, key);
      if (known.includes(voiceId)) return view(head.parameter, voiceId);
      replyRefused(exchange, 'voiceUnknown', exchange.services.errors.unknownVoice(head.parameter, known));
      return null;
    });
  const { of: responderOf, streamed } = audioResponders(config.dataDir);
  // Files of this API come without their length, so both routes send the audio as it is made.
  const audio = speechRoute(keyed, parseSpeechBody({ voiceIn, timestamps: false, responderOf }), streamed);
  const timed = parseSpeechBody({ voiceIn, timestamps: true });
  const models = (key: ActiveKey): string =>
    modelList(
      voiceIds(key).map((id) => speech.voices.language(id)),
      bounds.bodyBytesMax,
    );
  const socket = (isMulti: boolean) => ({
    authenticate: socketAuthentication({ admission, bounds, speech, voices, isMulti }),
  });
  const routes: readonly Route[] = [
    { path: SPEAK_PATH, method: 'post', handler: audio },
    { path: STREAM_PATH, method: 'post', handler: audio },
    {
      path: TIMED_PATH,
      method: 'post',
      handler: speechRoute(keyed, timed, wholeResponder(config.dataDir, timedShape)),
    },
    { path: TIMED_STREAM_PATH, method: 'post', handler: speechRoute(keyed, timed, lineResponder) },
    { path: '/v1/voices', method: 'get', handler: keyedJson(keyed, (key) => voiceList(voiceIds(key))) },
    {
      path: '/v2/voices',
      method: 'get',
      handler: keyedJson(keyed, (key, { query }) => voicePage(voiceIds(key), new Query(query))),
    },
    { path: '/v1/models', method: 'get', handler: keyedJson(keyed, models) },
    { path: '/v1/voices/:voice', method: 'get', handler: voiceRoute(voiceView) },
    { path: '/v1/voices/:voice/settings', method: 'get', handler: voiceRoute(() => voiceSettings) },
    { path: '/v1/voices/settings/default', method: 'get', handler: keyedJson(keyed, () => voiceSettings) },
    { path: '/v1/user', method: 'get', handler: standingRoute(user) },
    { path: '/v1/user/subscription', method: 'get', handler: standingRoute(subscription) },
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
