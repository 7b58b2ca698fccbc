/**
 * The part of a speech request that all speech routes share: who asks, what for, whether they may, and then a
 * context whose frames go to the route's responder.
 *
 *   key 401 -> body 413, 400, 422 -> voice 422 -> draining 503 -> credit 402, slots 429 -> context
 */
import type { Admission } from '../accounts/admission.js';
import type { Lease } from '../accounts/lease.js';
import type { ActiveKey } from '../store/store.js';
import type { Refusal } from '../api/body.js';
import type { SpeechRequest } from '../api/speech-request.js';
import { unknownVoice } from '../api/error-shape.js';
import type { ApiBounds } from '../api/issues.js';
import type { Framing } from '../threads/messages.js';
import type { FrameSink, Speech } from '../speech/speech.js';
import { errors } from '../errors.js';
import { codePointCount } from '../text/code-points.js';
import { readBody } from './body-reader.js';
import type { Exchange } from './exchange.js';
import type { Handler } from './handler.js';
import { reply, replyError, replyUnavailable } from './reply.js';
import type { RequestHead } from './request-head.js';
import type { AudioFrame } from './sender.js';

export interface SpeechRouteParts {
  readonly speech: Speech;
  readonly admission: Admission;
  /** No new speech is taken on. */
  readonly isDraining: () => boolean;
}

/** What a route asks for: `null` for nothing, which is answered by an empty 200. */
export type Asked = { readonly ok: true; readonly request: SpeechRequest | null } | Refusal;

/** From the whole body to what is asked for. */
export type Parser = (body: Uint8Array, head: RequestHead, bounds: ApiBounds) => Asked;

/** What a route makes of the frames. */
export interface Responder {
  readonly framing: Framing;
  /** @param onHanded to be called with each audio frame whose bytes went where they belong */
  begin(exchange: Exchange, request: SpeechRequest, onHanded: (frame: AudioFrame) => void): FrameSink;
}

interface Caller {
  readonly key: ActiveKey;
  /** Came when no new speech is taken on any more. */
  readonly isLate: boolean;
}

const open = (
  parts: SpeechRouteParts,
  exchange: Exchange,
  request: SpeechRequest,
  lease: Lease,
  responder: Responder,
): void => {
  const { settings, format, timestamps, text } = request;
  let onHanded: (frame: AudioFrame) => void = () => {};
  const sink = exchange.guarded(responder.begin(exchange, request, (frame) => onHanded(frame)));
  const context = parts.speech.open(
    { lease, settings, format, framing: responder.framing, timestamps },
    sink,
  );
  if (context === null) {
    lease.close();
    replyUnavailable(exchange, 'contextPoolExhausted');
    return;
  }
  exchange.isSpokenFor = true;
  onHanded = (frame) => context.handed(frame);
  // However the exchange ends, its slot is free at that moment.
  exchange.onOver(() => {
    // What was charged when the last frame came, and then could not be delivered by our fault.
    if (responder.framing === 'whole' && exchange.outcome === 'failed') lease.void();
    context.release();
  });
  context.append(text);
  context.end();
};

const answer = (
  parts: SpeechRouteParts,
  exchange: Exchange,
  { key, isLate }: Caller,
  asked: Asked,
  responder: Responder,
): void => {
  if (!asked.ok) {
    const isBody = asked.status === errors.bodyUnreadable.status;
    exchange.noteRefusal(isBody ? 'bodyUnreadable' : 'requestInvalid');
    reply(exchange, { ...asked, contentType: 'application/json' });
    return;
  }
  const { request } = asked;
  if (request === null) {
    reply(exchange, { status: 200, contentType: null, body: '' });
    return;
  }
  const { speakerIds } = parts.speech.voices;
  const { voiceId } = request.settings;
  if (!speakerIds.includes(voiceId)) {
    exchange.noteRefusal('voiceUnknown');
    reply(exchange, {
      ...unknownVoice(voiceId, speakerIds, exchange.services.bounds),
      contentType: 'application/json',
    });
    return;
  }
  if (isLate) {
    replyUnavailable(exchange, 'draining', { close: true });
    return;
  }
  exchange.characters = codePointCount(request.text);
  const { textBudget } = exchange.services;
  const { characters } = exchange;
  if (!textBudget.take(characters)) {
    replyUnavailable(exchange, 'textPoolExhausted');
    return;
  }
  exchange.onOver(() => {
    textBudget.giveBack(characters);
  });
  const admitted = parts.admission.admit(key, exchange.characters, exchange.id);
  if (!admitted.ok) {
    replyError(exchange, admitted.code);
    return;
  }
  const { lease } = admitted;
  try {
    open(parts, exchange, request, lease, responder);
  } catch (error) {
    lease.void();
    throw error;
  }
};

export const speechRoute =
  (parts: SpeechRouteParts, parse: Parser, responder: Responder): Handler =>
  (exchange, head) => {
    const caller = parts.admission.authenticate(head.apiKey);
    if (!caller.ok) {
      replyError(exchange, caller.code);
      return;
    }
    exchange.keyId = caller.key.keyId;
    // Asked now: a drain that begins while the body is on its way finds a request that was taken on.
    const isLate = parts.isDraining();
    readBody(exchange, head, (bytes) =>
      answer(
        parts,
        exchange,
        { key: caller.key, isLate },
        parse(bytes, head, exchange.services.bounds),
        responder,
      ),
    );
  };
