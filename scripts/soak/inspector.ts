/** Node's inspector of a process, with all its threads: https://nodejs.org/api/debugger.html and Chrome's protocol. */
import { WebSocket } from 'ws';

const answerMsMax = 10_000;

/** Of the main thread; else the session that Node made for a thread. */
export type Thread = string | null;

interface Message {
  readonly id?: number;
  readonly result?: object;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message?: string };
}

/** Owns a connection, until it is closed or the process ends. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, (answer: Message) => void>();
  readonly #workers = new Set<string>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#onMessage(JSON.parse(data.toString()) as Message));
    // What was asked gets no answer then, and is told so.
    socket.on('error', () => this.close());
    socket.on('close', () => this.close());
  }

  /** @throws when nobody answers at `url` */
  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: answerMsMax });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    const inspector = new Inspector(socket);
    // Else a process that wants to end waits for us.
    await inspector.call(null, 'NodeRuntime.notifyWhenWaitingForDisconnect', { enabled: true });
    await inspector.call(null, 'NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  /** All that run now, the main thread last. */
  get threads(): readonly Thread[] {
    return [...this.#workers, null];
  }

  /** @throws when no answer comes, or a bad one */
  call(thread: Thread, method: string, params: object = {}): Promise<object> {
    return new Promise((resolve, reject) => {
      if (this.#socket.readyState !== WebSocket.OPEN) throw new Error(`${method}: not connected any more`);
      const id = ++this.#lastId;
      const settle = ({ error, result = {} }: Message): void => {
        clearTimeout(timer);
        this.#pending.delete(id);
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${error.message}`));
      };
      const timer = setTimeout(() => settle({ error: { message: 'no answer' } }), answerMsMax);
      this.#pending.set(id, settle);
      const message = JSON.stringify({ id, method, params });
      if (thread === null) this.#socket.send(message);
      else {
        const toWorker = { sessionId: thread, message };
        const wrapped = { id: ++this.#lastId, method: 'NodeWorker.sendMessageToWorker', params: toWorker };
        this.#socket.send(JSON.stringify(wrapped));
      }
    });
  }

  /** Idempotent. */
  close(): void {
    this.#socket.terminate();
    for (const settle of [...this.#pending.values()]) settle({ error: { message: 'the connection closed' } });
  }

  #onMessage(message: Message): void {
    const { id, method, params } = message;
    if (id !== undefined) this.#pending.get(id)?.(message);
    if (method === 'NodeRuntime.waitingForDisconnect') this.close();
    if (params === undefined) return;
    if (method === 'NodeWorker.attachedToWorker') this.#workers.add(params.sessionId);
    if (method === 'NodeWorker.detachedFromWorker') this.#workers.delete(params.sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker')
      this.#onMessage(JSON.parse(params.message ?? '{}') as Message);
  }
}
