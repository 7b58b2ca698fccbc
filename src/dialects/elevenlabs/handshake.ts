/** Who may open a WebSocket of the ElevenLabs API, and with what. Refusals come before the socket opens, where clients retry. */
import { voicesOf } from '../../accounts/keys.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { refuse, type Refusal } from '../../api/body.js';
import { errors } from '../../errors.js';
import { replyError, replyRefused } from '../../front/reply.js';
import { keyIn, withoutBearer, type RequestHead } from '../../front/request-head.js';
import type { RefusedSocket, SocketAuthentication } from '../../front/ws/socket-route.js';
import { Query } from '../../front/query.js';
import type { ActiveKey } from '../../store/store.js';
import type { DialectParts } from '../http-listener.js';
import type { StockVoices } from '../stock-voices.js';
import { formatIn } from './formats.js';
import { ElevenLabsProtocol, keyInMessage } from './socket.js';

export interface HandshakeParts extends Pick<DialectParts, 'admission' | 'bounds' | 'speech'> {
  readonly voices: StockVoices;
  /** Contexts have ids. */
  readonly isMulti: boolean;
}

/** `inactivity_timeout` is in seconds. */
const idleMsIn = (query: Query, { bounds }: HandshakeParts): number => {
  const ms = Number(query.get('inactivity_timeout')) * 1_000;
  return ms > 0 ? Math.min(ms, bounds.elevenLabsIdleMsMax) : bounds.elevenLabsIdleMs;
};

type Code = 'creditExhausted' | 'slotsExhausted' | 'unavailable';

/** @returns why a key may not speak now: on its socket every text would be refused */
const refusalOf = ({ admission }: HandshakeParts, key: ActiveKey): Code | null => {
  const standing = admission.standing(key);
  if (standing === null) return 'unavailable';
  if (standing.leftCharacters < 1) return 'creditExhausted';
  return standing.hasFreeSlot ? null : 'slotsExhausted';
};

/** The key of a handshake; empty if it comes with the first message. */
const keyOfHandshake = (head: RequestHead): string =>
  keyIn(head) || withoutBearer(new Query(head.query).get('authorization') ?? '');

export const socketAuthentication =
  (parts: HandshakeParts): SocketAuthentication =>
  (exchange, head) => {
    const { admission, bounds, speech } = parts;
    const query = new Query(head.query);
    const format = formatIn(query, bounds);
    if ('loc' in format) {
      const { status, body }: Refusal = refuse([format], bounds);
      replyRefused(exchange, 'requestInvalid', { status, body, contentType: 'application/json' });
      return null;
    }
    /** Known with the key, which may come later. */
    let voiceId = '';
    const protocol = new ElevenLabsProtocol(
      {
        voiceId: () => voiceId,
        ...{ format, isMulti: parts.isMulti },
        normalization: query.get('apply_text_normalization'),
        isAuto: query.get('auto_mode') === 'true',
        isSync: query.get('sync_alignment') === 'true',
        // The end of a single context would be that of its socket, whose clients keep one open for their next text.
        idleMsMax: parts.isMulti ? idleMsIn(query, parts) : null,
      },
      bounds,
    );
    /** @returns the voices of the key */
    const chooseVoice = (key: ActiveKey): readonly string[] => {
      const speakerIds = voicesOf(key, speech.voices.speakerIds);
      voiceId = parts.voices.voiceFor(head.parameter, speakerIds);
      return speakerIds;
    };

    const keyOf = (message: Buffer): ActiveKey | RefusedSocket => {
      const caller = admission.authenticate(withoutBearer(keyInMessage(message, bounds)));
      if (!caller.ok) {
        const isAway = caller.code === 'unavailable';
        return { reason: isAway ? 'storeUnavailable' : caller.code, text: errors.keyUnknown.socketText };
      }
      const { key } = caller;
      const speakerIds = chooseVoice(key);
      if (!speakerIds.includes(voiceId))
        return { reason: 'voiceUnknown', text: unknownVoiceMessage(voiceId, speakerIds, bounds) };
      const code = refusalOf(parts, key);
      if (code === null) return key;
      return { reason: code === 'unavailable' ? 'storeUnavailable' : code, text: errors[code].socketText };
    };

    const token = keyOfHandshake(head);
    if (token === '') return { key: null, protocol, keyIn: keyOf };
    const caller = admission.authenticate(token);
    if (!caller.ok) {
      replyError(exchange, caller.code, { close: true });
      return null;
    }
    const { key } = caller;
    exchange.key = key;
    const speakerIds = chooseVoice(key);
    const code = refusalOf(parts, key);
    if (!speakerIds.includes(voiceId))
      replyRefused(exchange, 'voiceUnknown', exchange.services.errors.unknownVoice(voiceId, speakerIds));
    else if (code === null) return { key, protocol };
    else replyError(exchange, code, { close: true });
    return null;
  };
