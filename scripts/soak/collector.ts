/**
 * Has the service collect the garbage of all its threads, by Node's inspector: so that what its memory is told by is
 * what it keeps, and not how long ago V8 last collected. And asks what that is.
 */
import { WebSocket } from 'ws';

const answerMsMax = 10_000;

/** Of all threads. */
export interface KeptByScript {
  /** Objects in V8's heaps. */
  readonly heapBytes: number;
  /** What they hold outside of these: buffers, and the memory of WebAssembly by its address space. */
  readonly externalBytes: number;
}

interface Answer {
  readonly id?: number;
  readonly result?: object;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message?: string };
}

const usage = { expression: 'process.memoryUsage()', returnByValue: true };
interface UsageAnswer {
  readonly result: { readonly value: NodeJS.MemoryUsage };
}

export class Collector {
  readonly #url: string;

  /** @param url of the inspector of the service's process, as it tells on its standard error */
  constructor(url: string) {
    this.#url = url;
  }

  /** @throws when the inspector does not answer */
  async collect(): Promise<KeptByScript> {
    const socket = new WebSocket(this.#url, { perMessageDeflate: false, handshakeTimeout: answerMsMax });
    const pending = new Map<number, (answer: Answer) => void>();
    const workers: string[] = [];
    let lastId = 0;
    const onAnswer = (answer: Answer): void => {
      const { id, method, params } = answer;
      if (id !== undefined) pending.get(id)?.(answer);
      if (params === undefined) return;
      if (method === 'NodeWorker.attachedToWorker') workers.push(params.sessionId);
      if (method === 'NodeWorker.receivedMessageFromWorker')
        onAnswer(JSON.parse(params.message ?? '{}') as Answer);
    };
    socket.on('message', (data: Buffer) => onAnswer(JSON.parse(data.toString()) as Answer));
    const call = (sessionId: string | null, method: string, params: object = {}): Promise<object> =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        const timer = setTimeout(() => reject(new Error(`no answer to ${method}`)), answerMsMax);
        pending.set(id, ({ error, result = {} }) => {
          clearTimeout(timer);
          pending.delete(id);
          if (error === undefined) resolve(result);
          else reject(new Error(`${method}: ${error.message}`));
        });
        const message = JSON.stringify({ id, method, params });
        const toWorker = { sessionId, message };
        socket.send(
          sessionId === null
            ? message
            : JSON.stringify({ id: ++lastId, method: 'NodeWorker.sendMessageToWorker', params: toWorker }),
        );
      });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('open', resolve);
        // Later ones too: the call that waits then has no answer.
        socket.on('error', reject);
      });
      await call(null, 'NodeWorker.enable', { waitForDebuggerOnStart: false });
      let [heapBytes, externalBytes] = [0, 0];
      for (const thread of [...workers, null]) {
        await call(thread, 'HeapProfiler.collectGarbage');
        const { result } = (await call(thread, 'Runtime.evaluate', usage)) as UsageAnswer;
        heapBytes += result.value.heapUsed;
        externalBytes += result.value.external;
      }
      await call(null, 'NodeWorker.disable');
      return { heapBytes, externalBytes };
    } finally {
      socket.terminate();
    }
  }
}
