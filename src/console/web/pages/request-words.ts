/** Why requests end, in words: what happened, and what to do. */
import type { RequestReason } from '../../contract.js';

const busy = 'The service has too much of this at once, from all callers. Try again in a moment.';
const ofAccount = 'The account has too much of this at once. Use less at once, or try again in a moment.';

export const requestWords: Readonly<Record<RequestReason, string>> = {
  complete: 'All of it was sent.',
  refused: 'It was refused.',
  failed: 'A fault of the service. The log has the cause, with the request id.',
  aborted: 'The client closed the connection before the end.',
  cancelled: 'The client cancelled the context.',
  'reader-stalled':
    'The client took no audio for a minute. Check its network, and that it reads the response.',
  'body-late': 'The body did not arrive in time. Check the network of the client.',
  revoked:
    'The key was revoked or has expired, the account was suspended, or the session ended, while it spoke.',
  silent: 'The client gave no sign of life: it answered no ping, or sent nothing for too long.',
  flooded: 'The client sent more than the service takes at once.',
  drained: 'The service stopped. Connect again.',

  keyMissing: 'The request had no key. Send it in the header x-api-key.',
  keyMalformed: 'What was sent is no key. Keys begin with svc_sk_.',
  keyUnknown:
    'The key does not exist, was revoked or has expired, or its account is suspended. Compare its start with the list of keys.',
  creditExhausted:
    'The account, or the key, has not enough credit. Add credit, or raise the limit of the key.',
  methodNotAllowed: 'The path does not take this method.',
  bodyUnreadable: 'The body is no JSON, or not in UTF-8.',
  badRequest: 'The request is not valid HTTP, or has a header twice.',
  lengthRequired: 'The request had no Content-Length: send the body in one piece.',
  bodyTooLarge: 'The body is larger than 1 MiB. Divide the text.',
  upgradeRequired: 'The handshake is not of version 13 of the WebSocket protocol.',
  slotsExhausted:
    'The key has as many requests in progress as it may have. Wait for one to end, or use another key.',
  overloaded: 'The machine is full: one more listener would wait for audio. Try again in a second.',
  textExhausted: 'Too much text waits to be spoken. Send more when some of it is spoken.',
  flushesExhausted: 'Too many flushes wait. Send more when some of them are completed.',
  contextsExhausted: 'Too many contexts are open. Close some of them.',
  voiceRetired: 'The voice was replaced. Start another context.',
  draining: 'The service is stopping, and takes no new speech. Try again in a moment.',
  storeUnavailable: 'The store of keys and credit cannot be used. The log says why.',
  answerPoolExhausted: busy,
  bodyPoolExhausted: busy,
  connectionPoolExhausted: busy,
  contextPoolExhausted: busy,
  socketPoolExhausted: busy,
  textPoolExhausted: busy,
  answersOfAccountExhausted: ofAccount,
  bodiesOfAccountExhausted: ofAccount,
  connectionsOfAccountExhausted: ofAccount,
  contextsOfAccountExhausted: ofAccount,
  socketsOfAccountExhausted: ofAccount,
  textsOfAccountExhausted: ofAccount,
  socketsOfKeyExhausted: 'The key has as many WebSockets as the operator allows.',
  connectionsOfAddressExhausted: 'The address has too many connections that have shown no key.',
  keylessSocketsExhausted: 'Too many WebSockets have shown no key yet.',
  requestInvalid: 'The body or the query is not as the API wants it. The answer named the fields.',
  voiceUnknown: 'The voice does not exist, or the key may not use it. The answer had the list.',
  addressNotAllowed: 'WYOMING_ALLOW does not contain the address of the client.',
  frameInvalid: 'The WebSocket message is not as the API wants it. The answer said what is wrong.',
  contextUnknown: 'The WebSocket message named a context that is not open.',
};
