/** Why requests, frames and texts are refused, as the metrics count it. */
import { errors, type ErrorCode } from './errors.js';

/** The reasons that are not errors of the contract. */
const otherReasons = [
  // Each is answered 503. A pool is shared by all callers.
  'draining',
  'storeUnavailable',
  'answerPoolExhausted',
  'bodyPoolExhausted',
  'connectionPoolExhausted',
  'contextPoolExhausted',
  'socketPoolExhausted',
  'textPoolExhausted',
  // An account's part of such a pool.
  'answersOfAccountExhausted',
  'bodiesOfAccountExhausted',
  'connectionsOfAccountExhausted',
  'contextsOfAccountExhausted',
  'socketsOfAccountExhausted',
  'textsOfAccountExhausted',
  // The bound that the operator gave each key.
  'socketsOfKeyExhausted',
  // What callers may have who have not shown a key.
  'connectionsOfAddressExhausted',
  'keylessSocketsExhausted',
  /** The body or query does not validate: 422. */
  'requestInvalid',
  'voiceUnknown',
  'addressNotAllowed',
  /** A WebSocket frame does not validate, or names a context that does not exist. */
  'frameInvalid',
  'contextUnknown',
] as const;

/** Why a request, frame or text was refused. */
export type RefusalReason = Exclude<ErrorCode, 'internal' | 'unavailable'> | (typeof otherReasons)[number];

/** The reason for a code of the lower stages: there only the store answers `unavailable`. */
export const refusalOf = (code: Exclude<ErrorCode, 'internal'>): RefusalReason =>
  code === 'unavailable' ? 'storeUnavailable' : code;

export const refusalReasons: readonly RefusalReason[] = [
  ...(Object.keys(errors) as ErrorCode[]).filter((code) => code !== 'internal' && code !== 'unavailable'),
  ...otherReasons,
];
