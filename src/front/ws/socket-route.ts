/**
 * A WebSocket route: the handshake, and the library's callbacks to a session.
 *
 *   handshake: not authenticated 401, store away or draining 503 -> 101 -> key not valid: error frame, close 1008
 */
import type { ActiveKey } from '../../store/store.js';
import { errors } from '../../errors.js';
import { describeFault } from '../../fault.js';
import type { Exchange } from '../exchange.js';
import { replyUnavailable } from '../reply.js';
import type { RequestHead } from '../request-head.js';
import { otherMethod, withExchange, wrapHandler } from '../routes.js';
import type { Services } from '../services.js';
import { traceFields } from '../trace.js';
import {
  socketReading,
  type HttpRequest,
  type SocketReading,
  type TemplatedApp,
  type UpgradeContext,
  type WebSocket,
} from '../uws.js';
import { errorFrame } from './server-frames.js';
import type { Session } from './session.js';
import type { Handshake, OpenSocket, Sockets } from './sockets.js';

/** Who opens a WebSocket. */
export interface SocketCaller {
  /** `null`: well-formed, but not valid. */
  readonly key: ActiveKey | null;
  /** The socket is open. @returns what is called when it has closed */
  readonly watch?: (session: Pick<Session, 'revoke'>) => () => void;
}

/** Answers the request itself, or calls `proceed` once, now or later. */
export type SocketAuthentication = (
  exchange: Exchange,
  head: RequestHead,
  proceed: (caller: SocketCaller) => void,
) => void;

export interface SocketRouteParts {
  readonly services: Services;
  readonly authenticate: SocketAuthentication;
  readonly sockets: Sockets;
  readonly isDraining: () => boolean;
  /** The connection of a WebSocket ended. */
  readonly onEnded: () => void;
}

/** The data that the library keeps with a socket. */
interface Attached extends Handshake {
  readonly caller: SocketCaller;
  readonly reading: SocketReading;
  opened: OpenSocket | null;
  unwatch: (() => void) | undefined;
}

const POLICY_VIOLATION = 1008;

const handshake = (
  parts: SocketRouteParts,
  exchange: Exchange,
  head: RequestHead,
  req: HttpRequest,
  context: UpgradeContext,
): void => {
  const [socketKey, protocol, extensions] = ['key', 'protocol', 'extensions'].map((name) =>
    req.getHeader(`sec-websocket-${name}`),
  );
  const upgrade = (caller: SocketCaller): void => {
    if (caller.key !== null) exchange.keyId = caller.key.keyId;
    const refusal = parts.isDraining() ? 'draining' : parts.sockets.refusalOf(caller.key);
    if (refusal !== null) {
      replyUnavailable(exchange, refusal, { close: true });
      return;
    }
    exchange.switchProtocols((res) => {
      const { id, route, trace } = exchange;
      const attached: Attached = {
        ...{ id, route, trace, caller },
        reading: socketReading(res),
        opened: null,
        unwatch: undefined,
      };
      res.upgrade(attached, socketKey ?? '', protocol ?? '', extensions ?? '', context);
    });
  };
  parts.authenticate(exchange, head, exchange.guarded(upgrade));
};

const onOpen = (
  { services, sockets }: SocketRouteParts,
  ws: WebSocket<Attached>,
  attached: Attached,
): void => {
  const { key, watch } = attached.caller;
  if (key !== null) {
    const { reading } = attached;
    attached.opened = sockets.open(attached, key, ws, {
      pause: () => reading.pause(ws),
      resume: () => reading.resume(ws),
    });
    attached.unwatch = watch?.(attached.opened.session);
    return;
  }
  const { socketText } = errors.keyUnknown;
  ws.send(errorFrame(socketText, null));
  ws.end(POLICY_VIOLATION, socketText);
  services.metrics.refused('keyUnknown', attached.route);
  services.log.info(
    {
      requestId: attached.id,
      ...traceFields(attached.trace),
      route: attached.route,
      status: 101,
      outcome: 'key-unknown',
      code: POLICY_VIOLATION,
    },
    'socket',
  );
};

/** The library throws if the socket has ended. */
const closeIfOpen = (ws: WebSocket<Attached>): void => {
  try {
    ws.close();
  } catch {
    // It has ended.
  }
};

export const addSocketRoute = (app: TemplatedApp, path: string, parts: SocketRouteParts): void => {
  const { services } = parts;
  const { bounds, log } = services;
  /** The library must not see an exception; a session's fault ends that session. */
  const guard = (ws: WebSocket<Attached>, react: (opened: OpenSocket) => void): void => {
    const { opened } = ws.getUserData();
    opened?.session.guard(() => react(opened));
  };
  app.ws<Attached>(path, {
    compression: 0,
    maxPayloadLength: bounds.socketMessageBytesMax,
    // The session checks silence, sends pings and drops slow readers: it knows whether a reader takes anything.
    idleTimeout: 0,
    sendPingsAutomatically: false,
    maxBackpressure: bounds.senderQueueBytesMax,
    closeOnBackpressureLimit: false,
    upgrade: (res, req, context) =>
      withExchange(services, path, res, req, (exchange, head) =>
        handshake(parts, exchange, head, req, context),
      ),
    open: (ws) => {
      const attached = ws.getUserData();
      try {
        onOpen(parts, ws, attached);
      } catch (error) {
        log.error({ requestId: attached.id, ...describeFault(error) }, 'socket failed');
        closeIfOpen(ws);
      }
    },
    message: (ws, message, isBinary) => guard(ws, ({ reader }) => reader.message(message, isBinary)),
    ping: (ws) => guard(ws, ({ reader }) => reader.control(null)),
    pong: (ws, payload) => guard(ws, ({ reader }) => reader.control(Buffer.from(payload).toString('latin1'))),
    drain: (ws) => guard(ws, ({ session }) => session.drained()),
    close: (ws, code) => {
      parts.onEnded();
      const attached = ws.getUserData();
      try {
        attached.unwatch?.();
        attached.opened?.reader.close();
        attached.opened?.session.closed(code);
      } catch (error) {
        log.error({ requestId: attached.id, ...describeFault(error) }, 'clean-up of a socket failed');
      }
    },
  });
  app.any(path, wrapHandler(services, path, otherMethod('GET')));
};
