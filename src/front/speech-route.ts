/**
 * What all speech routes share: authenticate the caller, parse the body, admit the request, and open a context whose
 * frames go to the route's responder.
 *
 *   key 401 -> connections of its account 503 -> body 413, 400, 422 -> voice 422 -> draining 503 -> credit 402, slots 429 -> capacity 503 -> context
 */
import type { Admission, Authentication } from '../accounts/admission.js';
import { voicesOf } from '../accounts/keys.js';
import type { Lease } from '../accounts/lease.js';
import type { ActiveKey } from '../store/store.js';
import type { Refusal } from '../api/body.js';
import type { ErrorAnswer } from '../api/error-shape.js';
import type { SpeechRequest } from '../api/speech-request.js';
import { settingsOf } from '../api/speech-settings.js';
import { isWholeFraming, type Frame, type Framing } from '../threads/messages.js';
import type { FrameSink, Speech } from '../speech/speech.js';
import { errors } from '../errors.js';
import { askedVoice } from '../recent-requests.js';
import type { RefusalReason } from '../metrics.js';
import { codePointCount } from '../text/code-points.js';
import { readBody } from './body-reader.js';
import type { Exchange } from './exchange.js';
import { identify, reply, replyError, replyRefused, replyUnavailable } from './reply.js';
import type { RequestHead } from './request-head.js';
import type { Handler } from './routes.js';
import type { Bounds } from '../limits.js';

export interface SpeechRouteParts {
  readonly speech: Speech;
  readonly admission: Admission;
  /** The service takes no new speech. */
  readonly isDraining: () => boolean;
  /** Finds the caller; absent: by the key in `x-api-key`. */
  readonly authenticate?: (exchange: Exchange, head: RequestHead) => Authentication;
}

/** A route's parsed body; without a request, the answer is an empty 200. */
export type Asked =
  | {
      readonly ok: true;
      readonly request: SpeechRequest | null;
      /** For a body that chooses it. By default it is that of the route. */
      readonly responder?: Responder;
    }
  | (Refusal & Partial<ErrorAnswer> & { readonly reason?: RefusalReason });

/** Parses a whole body. A dialect words its own refusals. */
export type Parser = (body: Uint8Array, head: RequestHead, bounds: Bounds, key: ActiveKey) => Asked;

type AudioFrame = Extract<Frame, { type: 'audio' }>;

/** Turns frames into a response. */
export interface Responder {
  readonly framing: Framing;
  /** @param onHanded the responder calls it for each audio frame that the socket, or the result, has */
  begin(exchange: Exchange, request: SpeechRequest, onHanded: (frame: AudioFrame) => void): FrameSink;
}

const open = (
  parts: SpeechRouteParts,
  exchange: Exchange,
  request: SpeechRequest,
  key: ActiveKey,
  lease: Lease,
  responder: Responder,
): void => {
  const { format, timestamps, text, pieces = [{ text }] } = request;
  const settings = settingsOf(request.settings, key.speaking);
  const utterance = { lease, settings, format, framing: responder.framing, pieces };
  if (!parts.speech.admits(utterance)) {
    lease.close();
    replyError(exchange, 'overloaded');
    return;
  }
  let onHanded: (frame: AudioFrame) => void = () => {};
  const sink = exchange.guarded(responder.begin(exchange, request, (frame) => onHanded(frame)));
  const context = parts.speech.open(
    { lease, settings, format, framing: responder.framing, timestamps },
    sink,
  );
  if (typeof context === 'string') {
    lease.close();
    replyUnavailable(exchange, context);
    return;
  }
  exchange.hasContext = true;
  onHanded = (frame) => context.handed(frame);
  // However the exchange ends, its slot is free at once.
  exchange.onOver(() => {
    // The last frame charged the text, and the service could not deliver the result.
    if (isWholeFraming(responder.framing) && exchange.outcome === 'failed') lease.void();
    context.release();
  });
  context.append(text, pieces);
  context.end();
};

/** The key was revoked, or has expired, or its account is suspended: what it speaks ends. */
const endRevoked = (exchange: Exchange): void => {
  if (exchange.hasBegun) exchange.drop('revoked');
  else replyError(exchange, 'keyUnknown');
};

/**
 * Answers with the speech that was asked for, or with why not.
 *
 * @param isLate the request came after the service had stopped to take new speech
 */
export const speak = (
  parts: SpeechRouteParts,
  exchange: Exchange,
  { key, isLate }: { readonly key: ActiveKey; readonly isLate: boolean },
  asked: Asked,
  responder: Responder,
): void => {
  if (!asked.ok) {
    const isBody = asked.status === errors.bodyUnreadable.status;
    const { reason = isBody ? 'bodyUnreadable' : 'requestInvalid', ...answer } = asked;
    replyRefused(exchange, reason, { contentType: 'application/json', ...answer });
    return;
  }
  const { request } = asked;
  if (request === null) {
    reply(exchange, { status: 200, contentType: null, body: '' });
    return;
  }
  const speakerIds = voicesOf(key, parts.speech.voices.speakerIds);
  const { voiceId } = request.settings;
  if (!speakerIds.includes(voiceId)) {
    exchange.voice = askedVoice(voiceId);
    const answer = exchange.services.errors.unknownVoice(voiceId, speakerIds);
    replyRefused(exchange, 'voiceUnknown', answer);
    return;
  }
  exchange.voice = voiceId;
  if (isLate) {
    replyUnavailable(exchange, 'draining', { close: true });
    return;
  }
  exchange.characters = codePointCount(request.text);
  const { keys, textBudget } = exchange.services;
  const { characters } = exchange;
  const refusal = textBudget.take(key.accountId, characters);
  if (refusal !== null) {
    replyUnavailable(exchange, refusal === 'pool' ? 'textPoolExhausted' : 'textsOfAccountExhausted');
    return;
  }
  const use = keys.use(key, (now) => {
    if (now === null) exchange.guard(() => endRevoked(exchange));
  });
  exchange.onOver(() => {
    textBudget.giveBack(key.accountId, characters);
    use.end();
  });
  const admit = (): void => {
    const admitted = parts.admission.admit(key, characters, exchange.id);
    if (!admitted.ok) {
      replyError(exchange, admitted.code);
      return;
    }
    const { lease } = admitted;
    try {
      open(parts, exchange, request, key, lease, asked.responder ?? responder);
    } catch (error) {
      lease.void();
      throw error;
    }
  };
  const waiting =
    parts.admission.waitForCredit?.(key, characters, key.keyId, false, exchange.guarded(admit)) ?? null;
  if (waiting === null) admit();
  else exchange.onOver(() => waiting.cancel());
};

/** @returns the key of the request; `null` if it is answered */
export const callerOf = (
  parts: Pick<SpeechRouteParts, 'admission' | 'authenticate'>,
  exchange: Exchange,
  head: RequestHead,
): ActiveKey | null =>
  identify(exchange, parts.authenticate?.(exchange, head) ?? parts.admission.authenticate(head.apiKey));

export const speechRoute =
  (parts: SpeechRouteParts, parse: Parser, responder: Responder): Handler =>
  (exchange, head) => {
    const key = callerOf(parts, exchange, head);
    if (key === null) return;
    // Read now: a drain that begins while the body arrives lets the request go on.
    const isLate = parts.isDraining();
    readBody(exchange, head, key.accountId, (bytes) => {
      const asked = parse(bytes, head, exchange.services.bounds, key);
      speak(parts, exchange, { key, isLate }, asked, responder);
    });
  };
