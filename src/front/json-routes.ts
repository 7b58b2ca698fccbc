/** Routes that ask for a key and answer with JSON that takes no work: the catalogue, and the OpenAPI description. */
import type { Admission } from '../accounts/admission.js';
import type { ApiBounds } from '../api/issues.js';
import { openApiDocument } from '../api/openapi.js';
import type { SpeakerList } from '../api/responses.js';
import type { Speech } from '../speech/speech.js';
import type { Handler } from './handler.js';
import { reply, replyError } from './reply.js';

const keyedJson =
  (admission: Admission, body: () => string): Handler =>
  (exchange, head) => {
    const caller = admission.authenticate(head.apiKey);
    if (!caller.ok) {
      replyError(exchange, caller.code);
      return;
    }
    exchange.keyId = caller.key.keyId;
    reply(exchange, { status: 200, contentType: 'application/json', body: body() });
  };

/** `GET /v1/tts/speakers`: the catalogue of this moment. */
export const speakersRoute = (admission: Admission, speech: Pick<Speech, 'voices'>): Handler =>
  keyedJson(admission, () => {
    const list: SpeakerList = { speaker_ids: [...speech.voices.speakerIds] };
    return JSON.stringify(list);
  });

/** `GET /openapi.json`: built here, and again when it is asked for after the voices changed. */
export const openApiRoute = (
  admission: Admission,
  speech: Pick<Speech, 'voices'>,
  bounds: ApiBounds,
): Handler => {
  let { voices } = speech;
  let document = JSON.stringify(openApiDocument(voices.speakerIds, bounds));
  return keyedJson(admission, () => {
    if (voices !== speech.voices) {
      ({ voices } = speech);
      document = JSON.stringify(openApiDocument(voices.speakerIds, bounds));
    }
    return document;
  });
};
