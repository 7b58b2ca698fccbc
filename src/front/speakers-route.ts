/** `GET /v1/tts/speakers`: the live catalogue. */
import type { Admission } from '../admission/admission.js';
import type { VoiceCatalogue } from '../dispatch/speech.js';
import type { Handler } from './handler.js';
import { reply, replyError } from './reply.js';

export const speakersRoute =
  (admission: Admission, voices: VoiceCatalogue): Handler =>
  (exchange, head) => {
    const caller = admission.authenticate(head.apiKey);
    if (!caller.ok) {
      replyError(exchange, caller.code);
      return;
    }
    exchange.keyId = caller.key.keyId;
    reply(exchange, {
      status: 200,
      contentType: 'application/json',
      body: JSON.stringify({ speaker_ids: voices.speakerIds }),
    });
  };
