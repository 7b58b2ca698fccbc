/**
 * The stream and the WebSocket of the specification for pages in browsers, which cannot send a key: each request has a token
 * in its address, `?token=`. The token is good for one key, one origin and a minute. So pages of any origin may read the
 * answers: the origin is in the signature.
 */
import type { Authentication } from '../accounts/admission.js';
import type { BrowserTokens } from '../accounts/browser-tokens.js';
import { specificationErrors, type ErrorShape } from '../api/error-shape.js';
import { operations } from '../api/operations.js';
import { errors } from '../errors.js';
import type { Exchange } from '../front/exchange.js';
import { replyError } from '../front/reply.js';
import type { RequestHead } from '../front/request-head.js';
import { streamResponder } from '../front/responders.js';
import { speechBody } from '../front/specification.js';
import { speechRoute } from '../front/speech-route.js';
import { SOCKET_PATH } from '../front/ws/sockets.js';
import { Query } from '../front/query.js';
import type { DialectParts, HttpDialect } from './http-listener.js';

const INVALID =
  'Invalid or missing token: ask your server for a new one. It is good for one minute, one origin and a key that is valid';

const { path: STREAM_PATH } = operations.streamSpeech;

const errorsOf = (parts: DialectParts): ErrorShape => {
  const specification = specificationErrors(parts.bounds);
  const invalid = { ...errors.keyUnknown, body: JSON.stringify({ error: INVALID }) };
  return {
    ...specification,
    of: (code) => (code === 'keyMissing' || code === 'keyUnknown' ? invalid : specification.of(code)),
  };
};

export const browser = (port: number, parts: DialectParts, tokens: BrowserTokens): HttpDialect => {
  const { admission, shared, speech } = parts;
  const authenticate = ({ origin }: Exchange, { query }: RequestHead): Authentication => {
    const token = new Query(query).get('token') ?? '';
    if (token === '' || origin === '') return { ok: false, code: 'keyMissing' };
    const keyId = tokens.keyIdOf(token, origin);
    return keyId === null ? { ok: false, code: 'keyUnknown' } : admission.byId(keyId);
  };
  const keyed = { admission, authenticate, speech, isDraining: shared.isDraining };
  return {
    name: 'browser',
    variables: { host: 'HOST', port: 'BROWSER_PORT' },
    port,
    errors: errorsOf(parts),
    routes: [{ path: STREAM_PATH, method: 'post', handler: speechRoute(keyed, speechBody, streamResponder) }],
    speechPaths: [STREAM_PATH],
    socketPaths: [
      {
        path: SOCKET_PATH,
        authenticate: (exchange, head) => {
          const caller = authenticate(exchange, head);
          if (caller.ok) return caller;
          // A page reads frames, and not the status of a refused handshake.
          if (caller.code === 'keyUnknown')
            return { key: null, refused: { reason: caller.code, text: INVALID } };
          replyError(exchange, caller.code);
          return null;
        },
      },
    ],
    corsOrigins: ['*'],
  };
};
