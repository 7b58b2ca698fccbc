/**
 * A WebSocket route: the handshake, and the library's callbacks to a session.
 *
 *   handshake: malformed 400, another version 426, not authenticated 401, store away or draining 503 -> 101
 *   101 -> key not valid: error frame, close 1008
 *   101 -> (a dialect's clients may send the key in the first message) waiting -> open, or error frame, close 1008
 *   101 -> (the console asks its store for the key) waiting, unread -> open, or error frame, close 1008
 *
 * The handshake is answered in the tick of its request. Later, an upgrade would have to run in a cork of the response, after
 * which the library reads the state of the response in memory that the upgrade has freed: it closes some of the sockets.
 */
import type { Member } from '../../byte-budget.js';
import type { ActiveKey } from '../../store/store.js';
import { errors, type ErrorCode } from '../../errors.js';
import { describeFault } from '../../fault.js';
import type { RefusalReason } from '../../metrics.js';
import type { Header } from '../cors.js';
import type { Exchange } from '../exchange.js';
import { networkOf } from '../../network.js';
import { replyError, replyUnavailable } from '../reply.js';
import { logEnd } from '../request-end.js';
import type { RequestHead } from '../request-head.js';
import { addHandler, otherMethod, withExchange } from '../routes.js';
import type { Services } from '../services.js';
import { traceFields } from '../trace.js';
import {
  type HttpRequest,
  type HttpResponse,
  SocketReading,
  type TemplatedApp,
  type UpgradeContext,
  type WebSocket,
} from '../uws.js';
import type { SocketProtocol } from './protocol.js';
import type { Handshake, Session } from './session.js';
import type { Sockets } from './sockets.js';

/** Who opens a WebSocket. */
export interface SocketCaller {
  /** `null`: well-formed, but not valid; or not known yet. */
  readonly key: ActiveKey | null;
  /** Without a key: why. By default it is not valid. */
  readonly refused?: RefusedSocket;
  /** By default the specification's. */
  readonly protocol?: SocketProtocol;
  /** The key comes with the first message. @returns the key, or why the socket is refused */
  readonly keyIn?: (message: Buffer) => ActiveKey | RefusedSocket;
  readonly keyLater?: KeyLater;
}

/** The key is looked up while the socket waits, unread. */
export interface KeyLater {
  /** The member whose budget pays for the longest messages; `null`: it sends short ones only. */
  readonly payer: Member | null;
  /** @param revoke ends the session of the socket */
  readonly lookUp: (revoke: () => void) => Promise<FoundKey | RefusedSocket>;
}

export interface FoundKey {
  readonly key: ActiveKey;
  /** For the route to call, once, when the socket has closed. */
  readonly onClosed: () => void;
}

/** Why a socket is refused after its handshake. */
export interface RefusedSocket {
  readonly reason: RefusalReason;
  readonly text: string;
}

/** @returns `null`: it has answered the request */
export type SocketAuthentication = (exchange: Exchange, head: RequestHead) => SocketCaller | null;

export interface SocketRouteParts {
  readonly services: Services;
  readonly authenticate: SocketAuthentication;
  readonly sockets: Sockets;
  readonly isDraining: () => boolean;
}

/** The data that the library keeps with a socket. It copies each property to an object whose properties are slow and large. */
interface SocketData {
  readonly attached: Attached;
}

interface Attached extends Handshake {
  /** Until its session is open, which has the key then. */
  caller: SocketCaller;
  readonly reading: SocketReading;
  readonly protocol: SocketProtocol;
  session: Session | null;
  /** Ends the time in which a refused socket stays open, or in which a socket waits for its key. */
  timer: NodeJS.Timeout | undefined;
  isRefused: boolean;
  isClosed: boolean;
  onClosed: (() => void) | undefined;
  /** The network whose stranger its connection is; `null`: its key is known. */
  strangerOf: string | null;
  /** `null`: its key is not known. */
  account: number | null;
  /** Ends the time in which it counts among the sockets that wait for a key. */
  waited: (() => void) | undefined;
  /** The member whose budget pays for its longest messages until the connection ends; `null`: it sends short ones only. */
  readonly longOf: Member | null;
  keylessFrames: number;
}

const POLICY_VIOLATION = 1008;
const NO_CLOSE_FRAME = 1006;

/** Sixteen bytes in base64. */
const keyShape = /^[\w+/]{22}==$/;
const VERSION = '13';

/** How long the messages of a socket may be. The library has one bound for all sockets of a context, and cannot move one. */
type Messages = 'keyless' | 'short' | 'long';

/** What all sockets of a path share. */
interface Path {
  readonly contexts: Map<Messages, UpgradeContext>;
  /** `null` until the first handshake. */
  reading: SocketReading | null;
}

interface HandshakeFault {
  readonly headers: readonly Header[];
  readonly code: Extract<ErrorCode, 'badRequest' | 'upgradeRequired'>;
}

const malformed: HandshakeFault = { code: 'badRequest', headers: [] };
const otherVersion: HandshakeFault = {
  code: 'upgradeRequired',
  headers: [
    ['upgrade', 'websocket'],
    ['sec-websocket-version', VERSION],
  ],
};

/**
 * RFC 6455, 4.2.1. The library looks only at the length of the key.
 *
 * @returns why the connection must not become a WebSocket; `null`: it may
 */
const handshakeFault = (
  req: Pick<HttpRequest, 'forEach'>,
  { contentLength }: Pick<RequestHead, 'contentLength'>,
): HandshakeFault | null => {
  const seen = new Map<string, string[]>();
  req.forEach((name, value) => seen.set(name, [...(seen.get(name) ?? []), value]));
  const has = (name: string, token: string): boolean =>
    (seen.get(name) ?? []).some((value) =>
      value.split(',').some((part) => part.trim().toLowerCase() === token),
    );
  const [key = '', secondKey] = seen.get('sec-websocket-key') ?? [];
  const isUpgrade = has('upgrade', 'websocket') && has('connection', 'upgrade');
  // The bytes of a body would be read as frames.
  if (!isUpgrade || secondKey !== undefined || !keyShape.test(key) || contentLength > 0) return malformed;
  const versions = seen.get('sec-websocket-version') ?? [];
  return versions.length === 1 && versions[0] === VERSION ? null : otherVersion;
};

/**
 * The library closes a connection at the latest so long after the end of its WebSocket: it counts four seconds in steps of four.
 * Until then a client can keep it open, and it counts for its account.
 */
const ENDED_MS = 8_000;

/** @returns why there is no room for a WebSocket of this key; `null`: there is */
const refusalOf = (parts: SocketRouteParts, key: ActiveKey | null): RefusalReason | null => {
  if (parts.isDraining()) return 'draining';
  if (key !== null && !parts.services.connections.hasRoomFor(key.accountId))
    return 'connectionsOfAccountExhausted';
  return parts.sockets.refusalOf(key);
};

const handshake = (
  parts: SocketRouteParts,
  exchange: Exchange,
  head: RequestHead,
  req: HttpRequest,
  path: Path,
): void => {
  const fault = handshakeFault(req, head);
  if (fault !== null) {
    replyError(exchange, fault.code, { close: true, headers: fault.headers });
    return;
  }
  const [socketKey, protocol, extensions] = ['key', 'protocol', 'extensions'].map((name) =>
    req.getHeader(`sec-websocket-${name}`),
  );
  const caller = parts.authenticate(exchange, head);
  if (caller === null) return;
  if (caller.key !== null) exchange.key = caller.key;
  const refusal = refusalOf(parts, caller.key);
  if (refusal !== null) {
    replyUnavailable(exchange, refusal, { close: true });
    return;
  }
  const waits = caller.keyIn !== undefined || caller.keyLater !== undefined;
  const waited = waits ? parts.sockets.waitForKey(networkOf(exchange.peer)) : undefined;
  if (waited === null) {
    replyUnavailable(exchange, 'keylessSocketsExhausted', { close: true });
    return;
  }
  exchange.switchProtocols((res, strangerOf) => {
    const { id, route, trace } = exchange;
    const member = caller.key?.accountId ?? caller.keyLater?.payer ?? null;
    const longOf = member !== null && parts.sockets.takeLong(member) ? member : null;
    const attached: Attached = {
      ...{ id, route, trace, caller, strangerOf, waited, longOf },
      reading: (path.reading ??= new SocketReading(res)),
      protocol: caller.protocol ?? parts.sockets.protocol,
      session: null,
      account: null,
      timer: undefined,
      isRefused: false,
      isClosed: false,
      onClosed: undefined,
      keylessFrames: 0,
    };
    const isKeyless = member === null && caller.keyLater === undefined;
    const messages = isKeyless ? 'keyless' : longOf === null ? 'short' : 'long';
    const data: SocketData = { attached };
    res.upgrade(data, socketKey ?? '', protocol ?? '', extensions ?? '', path.contexts.get(messages)!);
  });
};

/** The library throws if the socket has ended. */
const closeIfOpen = (ws: WebSocket<SocketData>): void => {
  try {
    ws.close();
  } catch {
    // It has ended.
  }
};

const fail = (
  { services }: SocketRouteParts,
  ws: WebSocket<SocketData>,
  attached: Attached,
  error: unknown,
): void => {
  services.log.error({ requestId: attached.id, ...describeFault(error) }, 'socket failed');
  closeIfOpen(ws);
};

const OPENED: SocketCaller = { key: null };
const INVALID_KEY: RefusedSocket = { reason: 'keyUnknown', text: errors.keyUnknown.socketText };

/**
 * Sends the error, and closes.
 *
 * @param afterMs delay of the close, because some clients reconnect at once after it, without end
 */
const refuse = (
  { services }: SocketRouteParts,
  ws: WebSocket<SocketData>,
  attached: Attached,
  { reason, text }: RefusedSocket,
  afterMs: number,
): void => {
  const { id, protocol, route, trace } = attached;
  attached.isRefused = true;
  clearTimeout(attached.timer);
  ws.send(protocol.error(reason, text, null));
  if (afterMs === 0) ws.end(POLICY_VIOLATION, text);
  else attached.timer = setTimeout(() => ws.end(POLICY_VIOLATION, text), afterMs);
  services.metrics.refused(reason);
  services.metrics.ended({
    ...{ requestId: id, route, status: 101, outcome: 'refused', refusal: reason, totalMs: 0 },
  });
  const line = {
    ...{ requestId: id, ...traceFields(trace), route, refusal: reason, code: POLICY_VIOLATION },
    ...{ status: 101, outcome: reason === 'keyUnknown' ? 'key-unknown' : 'refused' },
  };
  logEnd(services, true, line, 'socket');
};

const openSession = (
  { services, sockets }: SocketRouteParts,
  ws: WebSocket<SocketData>,
  attached: Attached,
  key: ActiveKey,
): Session => {
  const { protocol, reading, strangerOf } = attached;
  if (strangerOf !== null) {
    services.connections.known.add(strangerOf, true);
    services.connections.strangers.remove(strangerOf);
  }
  attached.strangerOf = null;
  attached.account = key.accountId;
  attached.caller = OPENED;
  attached.session = sockets.open(attached, key, protocol, ws, reading);
  return attached.session;
};

/** @param afterMs see `refuse` @returns the session of a socket that waited for its key; `null`: it is refused */
const settle = (
  parts: SocketRouteParts,
  ws: WebSocket<SocketData>,
  attached: Attached,
  found: ActiveKey | RefusedSocket,
  afterMs: number,
): Session | null => {
  let why: RefusedSocket;
  if ('keyId' in found) {
    attached.waited?.();
    attached.waited = undefined;
    const full = refusalOf(parts, found);
    if (full === null) {
      clearTimeout(attached.timer);
      return openSession(parts, ws, attached, found);
    }
    why = { reason: full, text: errors.unavailable.socketText };
  } else why = found;
  refuse(parts, ws, attached, why, afterMs);
  return null;
};

/** Reads nothing until the key is found: a stranger's messages would take memory. */
const lookUp = async (
  parts: SocketRouteParts,
  ws: WebSocket<SocketData>,
  attached: Attached,
): Promise<void> => {
  const {
    caller: { keyLater },
    reading,
  } = attached;
  if (keyLater === undefined) return;
  reading.pause(ws);
  const found = await keyLater.lookUp(() => attached.session?.revoke());
  const isRefused = 'reason' in found;
  if (!isRefused) attached.onClosed = found.onClosed;
  if (attached.isClosed) attached.onClosed?.();
  else if (!attached.isRefused) {
    reading.resume(ws);
    settle(parts, ws, attached, isRefused ? found : found.key, 0);
  }
};

const onOpen = (parts: SocketRouteParts, ws: WebSocket<SocketData>, attached: Attached): void => {
  const { key, refused = INVALID_KEY } = attached.caller;
  const { socketKeyMsMax } = parts.services.bounds;
  if (key !== null) openSession(parts, ws, attached, key);
  else if (attached.waited === undefined) refuse(parts, ws, attached, refused, 0);
  else {
    attached.timer = setTimeout(() => {
      attached.reading.resume(ws);
      refuse(parts, ws, attached, INVALID_KEY, 0);
    }, socketKeyMsMax);
    lookUp(parts, ws, attached).catch((error: unknown) => fail(parts, ws, attached, error));
  }
};

/** The first message of a socket whose key is not known. */
const onKeyMessage = (
  parts: SocketRouteParts,
  ws: WebSocket<SocketData>,
  message: ArrayBuffer,
  isBinary: boolean,
): void => {
  const { attached } = ws.getUserData();
  const { socketFrameBytesMax, socketRefusedMs } = parts.services.bounds;
  const isReadable = !isBinary && message.byteLength <= socketFrameBytesMax;
  const found = (isReadable && attached.caller.keyIn?.(Buffer.from(message))) || INVALID_KEY;
  settle(parts, ws, attached, found, socketRefusedMs)?.reader.message(message, isBinary);
};

/** Frames cost time, and the answers to pings memory. A client that was refused may have sent some before it knows. */
const onKeylessFrame = ({ services }: SocketRouteParts, ws: WebSocket<SocketData>): void => {
  const { attached } = ws.getUserData();
  attached.keylessFrames++;
  if (attached.keylessFrames > services.bounds.keylessFramesMax) closeIfOpen(ws);
};

const addHandlers = (
  app: TemplatedApp,
  pattern: string,
  parts: SocketRouteParts,
  messageBytesMax: number,
  upgrade: (res: HttpResponse, req: HttpRequest, context: UpgradeContext) => void,
): void => {
  const { services } = parts;
  const { bounds, log } = services;
  /** The library must not see an exception; a session's fault ends that session. */
  const guard = (ws: WebSocket<SocketData>, react: (session: Session) => void): void => {
    const { session } = ws.getUserData().attached;
    session?.guard(() => react(session));
  };
  app.ws<SocketData>(pattern, {
    compression: 0,
    maxPayloadLength: messageBytesMax,
    // The session checks silence, sends pings and drops slow readers: it knows whether a reader takes anything.
    idleTimeout: 0,
    sendPingsAutomatically: false,
    maxBackpressure: bounds.senderQueueBytesMax,
    closeOnBackpressureLimit: false,
    upgrade,
    open: (ws) => {
      const { attached } = ws.getUserData();
      try {
        onOpen(parts, ws, attached);
      } catch (error) {
        fail(parts, ws, attached, error);
      }
    },
    message(ws, message, isBinary) {
      const { attached } = ws.getUserData();
      if (attached.session === null && !attached.isRefused) {
        try {
          onKeyMessage(parts, ws, message, isBinary);
        } catch (error) {
          fail(parts, ws, attached, error);
        }
      } else if (attached.session === null) onKeylessFrame(parts, ws);
      else guard(ws, ({ reader }) => reader.message(message, isBinary));
    },
    ping(ws) {
      if (ws.getUserData().attached.session === null) onKeylessFrame(parts, ws);
      else guard(ws, ({ reader }) => reader.control(null));
    },
    pong(ws, payload) {
      if (ws.getUserData().attached.session === null) onKeylessFrame(parts, ws);
      else guard(ws, ({ reader }) => reader.control(Buffer.from(payload).toString('latin1')));
    },
    drain: (ws) => guard(ws, (session) => session.drained()),
    close: (ws, code, message) => {
      const { attached } = ws.getUserData();
      clearTimeout(attached.timer);
      attached.waited?.();
      const { account, longOf, strangerOf } = attached;
      const { accounts, strangers } = services.connections;
      if (account !== null) accounts.add(account);
      const ended = (): void => {
        if (account !== null) accounts.remove(account);
        if (strangerOf !== null) strangers.remove(strangerOf);
        if (longOf !== null) parts.sockets.giveBackLong(longOf);
        services.connections.socketEnded();
      };
      // Without a close frame the connection is closed already.
      if (code === NO_CLOSE_FRAME) ended();
      else setTimeout(ended, ENDED_MS).unref();
      try {
        attached.isClosed = true;
        attached.onClosed?.();
        attached.session?.reader.close();
        // Without a close frame, the message is the library's and says what was wrong. Otherwise it is the client's.
        const cause = code === NO_CLOSE_FRAME ? Buffer.from(message).toString() : undefined;
        attached.session?.closed(code, cause);
      } catch (error) {
        log.error({ requestId: attached.id, ...describeFault(error) }, 'clean-up of a socket failed');
      }
    },
  });
};

const lastOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** For the same paths, and others: the library compares patterns, and the same one again would replace the first. */
const patternBeside = (path: string, name: string): string =>
  `${path.slice(0, -lastOf(path).length)}:${name}-${lastOf(path)}`;

/**
 * The library sets aside room for a message when its first bytes come, and tells a context only to a handshake of its
 * pattern. So the first handshake goes through all patterns of the path, and each may use any of their contexts.
 */
export const addSocketRoute = (app: TemplatedApp, path: string, parts: SocketRouteParts): void => {
  const { services } = parts;
  const { keylessMessageBytesMax, socketMessageBytesMax, socketShortMessageBytesMax } = services.bounds;
  const shared: Path = { contexts: new Map(), reading: null };
  const patterns: readonly (readonly [Messages, string, number])[] = [
    ['long', path, socketMessageBytesMax],
    ['short', patternBeside(path, 'short'), socketShortMessageBytesMax],
    ['keyless', patternBeside(path, 'keyless'), keylessMessageBytesMax],
  ];
  for (const [messages, pattern, bytesMax] of patterns)
    addHandlers(app, pattern, parts, bytesMax, (res, req, context) => {
      shared.contexts.set(messages, context);
      if (shared.contexts.size === patterns.length && lastOf(req.getUrl()) === lastOf(path))
        withExchange(services, path, res, req, null, (exchange, head) =>
          handshake(parts, exchange, head, req, shared),
        );
      else req.setYield(true);
    });
  const other = otherMethod('GET');
  // A handshake whose key has another length comes here.
  addHandler(app, services, [path, path], (req) =>
    req.getMethod() === 'get' && req.getHeader('upgrade') !== ''
      ? (exchange) => replyError(exchange, 'badRequest', { close: true })
      : other,
  );
};
