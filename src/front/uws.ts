/**
 * The part of uWebSockets.js that we use, with types that its own declarations lack. The official build is CommonJS and the
 * repack is not; this file accepts both, so that an owner can swap one for the other.
 */
import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
} from 'uWebSockets.js';
import type { TlsFiles } from '../config.js';

/**
 * Bytes of a request's head; a longer one is answered 431. The library reads it when it is loaded. Its default, 4,096, is too
 * short for the console: a browser sends it the cookies of everything else that ran under the same name, as `localhost`.
 */
const HEAD_BYTES_MAX = 8_192;

process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(HEAD_BYTES_MAX);
const namespace = await import('uWebSockets.js');

export type { HttpRequest, HttpResponse, TemplatedApp, WebSocket };
export type UpgradeContext = us_socket_context_t;
export type ListenSocket = us_listen_socket;

/** Without it, a second process binds silently and gets half of the connections. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

type Native = Pick<typeof namespace, 'App' | 'SSLApp' | 'us_listen_socket_close' | 'us_socket_local_port'> & {
  _cfg(option: 'silent'): void;
};

const native = ((namespace as { default?: unknown }).default ?? namespace) as Native;

/**
 * Pauses and resumes the reading of WebSockets. The library declares `pause` and `resume` for responses only. A WebSocket is
 * the same kind of native socket, and the functions do not check whose method they are.
 */
export class SocketReading {
  readonly #pause: HttpResponse['pause'];
  readonly #resume: HttpResponse['resume'];

  /** @param res of any handshake of the app: each app has functions of its own */
  constructor(res: HttpResponse) {
    // oxlint-disable-next-line typescript/unbound-method -- that is the point
    ({ pause: this.#pause, resume: this.#resume } = res);
  }

  pause(ws: unknown): void {
    this.#pause.call(ws as HttpResponse);
  }

  resume(ws: unknown): void {
    this.#resume.call(ws as HttpResponse);
  }
}

/** Methods that the library knows apart. The answer to another one ends its connection. */
const METHODS = ['get', 'head', 'post', 'put', 'patch', 'del', 'options'] as const;
/** As clients write them. The library routes by case: `get` is another method for it. */
const knownMethods = new Set(METHODS.map((method) => (method === 'del' ? 'DELETE' : method.toUpperCase())));

/** Of the request that is being routed. */
let spare: HttpResponse | null = null;

/**
 * An answer spends the library's object of a request, and nothing else can end the connection after a long answer, or report
 * when one ends that waits for the next request. But the library makes an object for each handler that it passes a request
 * to, and passes it to those of its method before those of any (`Expect: 100-continue` is answered by each). So the first
 * keeps a spare.
 */
const withSpares = (app: TemplatedApp): TemplatedApp => {
  for (const method of METHODS)
    app[method]('/*', (res, req) => {
      spare = res;
      req.setYield(true);
    });
  return app;
};

/**
 * Call it once for each request. That of another request would be another caller's connection, or freed memory: so a spare is
 * given out once, and only for a method whose handler has just put it there.
 *
 * @returns for a handler of any method: a second object of its request, if the library knows the method
 */
export const spareOf = (req: Pick<HttpRequest, 'getCaseSensitiveMethod'>): HttpResponse | null => {
  const own = knownMethods.has(req.getCaseSensitiveMethod()) ? spare : null;
  spare = null;
  return own;
};

/**
 * An app without the library's name in its responses. Its handlers but the spare's are for any method.
 *
 * @param files with them it serves TLS 1.2 and 1.3. The certificate's file may hold its chain
 * @throws if the library refuses the files
 */
export const createApp = (files?: TlsFiles): TemplatedApp => {
  native._cfg('silent');
  if (files === undefined) return withSpares(native.App());
  return withSpares(
    native.SSLApp({
      cert_file_name: files.certPath,
      key_file_name: files.keyPath,
      // An idle connection keeps no buffers of 16 KiB in each direction.
      ssl_prefer_low_memory_usage: true,
    }),
  );
};

/**
 * @param isShared others may listen on the port too
 * @returns the listen socket, or `null` if the port is not available; the library does not say why
 */
export const listenOn = (
  app: TemplatedApp,
  host: string,
  port: number,
  isShared: boolean,
): ListenSocket | null => {
  let result: ListenSocket | null = null;
  // The callback runs before `listen` returns.
  (app.listen as (...parameters: unknown[]) => unknown)(
    host,
    port,
    isShared ? SHARED_PORT : EXCLUSIVE_PORT,
    (socket: ListenSocket | false) => {
      result = socket === false ? null : socket;
    },
  );
  return result;
};

export const localPort = (socket: ListenSocket): number => native.us_socket_local_port(socket);

export const closeListenSocket = (socket: ListenSocket): void => native.us_listen_socket_close(socket);
