/**
 * Makes the service collect the garbage of all its threads, by Node's inspector: then its memory is what it keeps, whenever
 * V8 last collected.
 */
import { WebSocket } from 'ws';
import type { KeptByScript } from './measures.js';

const answerMsMax = 10_000;

/** `null`: the main thread; else the session of a worker thread. */
type Thread = string | null;

interface Message {
  readonly id?: number;
  readonly result?: object;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message?: string };
}

/** A connection to Node's inspector: https://nodejs.org/api/debugger.html and Chrome's protocol. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, (answer: Message) => void>();
  readonly #workers = new Set<string>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#onMessage(JSON.parse(data.toString()) as Message));
    socket.on('error', () => this.close());
    socket.on('close', () => this.close());
  }

  /** @throws when `url` does not answer */
  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: answerMsMax });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    const inspector = new Inspector(socket);
    // Otherwise a process that ends would wait for us.
    await inspector.call(null, 'NodeRuntime.notifyWhenWaitingForDisconnect', { enabled: true });
    await inspector.call(null, 'NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  /** All running threads, the main thread last. */
  get threads(): readonly Thread[] {
    return [...this.#workers, null];
  }

  /** @throws when the answer is an error, or does not come */
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

const usage = { expression: 'process.memoryUsage()', returnByValue: true };
interface UsageAnswer {
  readonly result: { readonly value: NodeJS.MemoryUsage };
}

export class Collector {
  readonly #url: string;
  /**
   * Kept between collections: Node leaks about 9 kB per session of a thread, so connecting each time would be the growth
   * that is looked for (measured with Node 22: 100 looks at an idle service, 3.6 MB).
   */
  #inspector: Promise<Inspector> | null = null;

  /** @param url of the process's inspector */
  constructor(url: string) {
    this.#url = url;
  }

  /** @throws when the inspector does not answer; the next call connects again */
  async collect(): Promise<KeptByScript> {
    try {
      const inspector = await (this.#inspector ??= Inspector.connect(this.#url));
      let [heapBytes, externalBytes] = [0, 0];
      for (const thread of inspector.threads) {
        await inspector.call(thread, 'HeapProfiler.collectGarbage');
        const { result } = (await inspector.call(thread, 'Runtime.evaluate', usage)) as UsageAnswer;
        heapBytes += result.value.heapUsed;
        externalBytes += result.value.external;
      }
      return { heapBytes, externalBytes };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Idempotent. */
  close(): void {
    void this.#inspector?.then((inspector) => inspector.close()).catch(() => undefined);
    this.#inspector = null;
  }
}
