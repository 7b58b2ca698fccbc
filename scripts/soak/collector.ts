/**
 * Makes the service collect the garbage of all its threads, by Node's inspector (https://nodejs.org/api/debugger.html and Chrome's
 * protocol): then its memory is what it keeps, whenever V8 last collected.
 */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { KeptByScript } from './measures.js';

const answerMsMax = 10_000;

/** `null`: the main thread; else the session of a worker thread. */
type Thread = string | null;

interface Message {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value: NodeJS.MemoryUsage } };
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message?: string };
}

const usage = { expression: 'process.memoryUsage()', returnByValue: true };

export class Collector {
  /**
   * Kept between collections: Node leaks about 9 kB per session of a thread, so connecting each time would be the growth
   * that is looked for (measured with Node 22: 100 looks at an idle service, 3.6 MB).
   */
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, PromiseWithResolvers<Message['result']>>();
  readonly #workers = new Set<string>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#onMessage(JSON.parse(data.toString()) as Message));
    socket.on('error', () => this.close());
    socket.on('close', () => this.close());
  }

  /** @param url of the process's inspector @throws when it does not answer */
  static async connect(url: string): Promise<Collector> {
    const socket = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: answerMsMax });
    await once(socket, 'open');
    const collector = new Collector(socket);
    // Otherwise a process that ends would wait for us.
    await collector.#call(null, 'NodeRuntime.notifyWhenWaitingForDisconnect', { enabled: true });
    await collector.#call(null, 'NodeWorker.enable', { waitForDebuggerOnStart: false });
    return collector;
  }

  /** @throws when the inspector does not answer */
  async collect(): Promise<KeptByScript> {
    let [heapBytes, externalBytes] = [0, 0];
    for (const thread of [...this.#workers, null]) {
      await this.#call(thread, 'HeapProfiler.collectGarbage');
      const { heapUsed, external } = (await this.#call(thread, 'Runtime.evaluate', usage))!.result!.value;
      heapBytes += heapUsed;
      externalBytes += external;
    }
    return { heapBytes, externalBytes };
  }

  /** Idempotent. */
  close(): void {
    this.#socket.terminate();
    for (const { reject } of this.#pending.values()) reject(new Error('the connection closed'));
    this.#pending.clear();
  }

  #call(thread: Thread, method: string, params: object = {}): Promise<Message['result']> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<Message['result']>();
    const timer = setTimeout(() => answer.reject(new Error(`${method}: no answer`)), answerMsMax);
    this.#pending.set(id, answer);
    const message = JSON.stringify({ id, method, params });
    const toWorker = { sessionId: thread, message };
    const wrapped = { id: ++this.#lastId, method: 'NodeWorker.sendMessageToWorker', params: toWorker };
    this.#socket.send(thread === null ? message : JSON.stringify(wrapped));
    return answer.promise.finally(() => clearTimeout(timer));
  }

  #onMessage({ error, id = 0, method, params, result }: Message): void {
    const answer = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error.message));
    if (method === 'NodeRuntime.waitingForDisconnect') this.close();
    if (params === undefined) return;
    if (method === 'NodeWorker.attachedToWorker') this.#workers.add(params.sessionId);
    if (method === 'NodeWorker.detachedFromWorker') this.#workers.delete(params.sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker')
      this.#onMessage(JSON.parse(params.message ?? '{}') as Message);
  }
}
