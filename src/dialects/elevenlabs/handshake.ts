/** Who may open a WebSocket of the ElevenLabs API, and with what. Refusals come before the socket opens, where clients retry. */
import type { Authentication } from '../../accounts/admission.js';
import { voicesOf } from '../../accounts/keys.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { refuse, type Refusal } from '../../api/body.js';
import { errors, type ErrorRow } from '../../errors.js';
import { replyError, replyRefused } from '../../front/reply.js';
import { keyIn, withoutBearer, type RequestHead } from '../../front/request-head.js';
import type { RefusedSocket, SocketAuthentication } from '../../front/ws/socket-route.js';
import { Query } from '../../front/query.js';
import { refusalOf } from '../../metrics.js';
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

/** A key that may speak, or why every text on its socket would be refused. */
type Found =
  | Authentication
  | {
      readonly ok: false;
      readonly code: 'voiceUnknown' | 'creditExhausted' | 'slotsExhausted' | 'unavailable';
      readonly key: ActiveKey;
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
    const voicesFor = (key: ActiveKey): readonly string[] => voicesOf(key, speech.voices.speakerIds);

    /** Chooses the voice, too. */
    const find = (token: string): Found => {
      const caller = admission.authenticate(token);
      if (!caller.ok) return caller;
      const { key } = caller;
      voiceId = parts.voices.voiceFor(head.parameter, voicesFor(key));
      if (!voicesFor(key).includes(voiceId)) return { ok: false, code: 'voiceUnknown', key };
      const standing = admission.standing(key);
      if (standing === null) return { ok: false, code: 'unavailable', key };
      if (standing.leftCharacters < 1) return { ok: false, code: 'creditExhausted', key };
      return standing.hasFreeSlot ? caller : { ok: false, code: 'slotsExhausted', key };
    };

    const keyOf = (message: Buffer): ActiveKey | RefusedSocket => {
      const found = find(withoutBearer(keyInMessage(message, bounds)));
      if (found.ok) return found.key;
      const { code } = found;
      if (code === 'voiceUnknown')
        return { reason: code, text: unknownVoiceMessage(voiceId, voicesFor(found.key), bounds) };
      const row: ErrorRow = errors[code];
      return { reason: refusalOf(code), text: row.socketText ?? errors.keyUnknown.socketText };
    };

    const token = keyOfHandshake(head);
    if (token === '') return { key: null, protocol, keyIn: keyOf };
    const found = find(token);
    if (found.ok) return { key: found.key, protocol };
    if ('key' in found) exchange.key = found.key;
    if (found.code === 'voiceUnknown') {
      const answer = exchange.services.errors.unknownVoice(voiceId, voicesFor(found.key));
      replyRefused(exchange, 'voiceUnknown', answer);
    } else replyError(exchange, found.code, { close: true });
    return null;
  };
