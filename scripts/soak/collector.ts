/**
 * Has the service collect the garbage of all its threads, by Node's inspector: so that what its memory is told by is
 * what it keeps, and not how long ago V8 last collected.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

const answerMsMax = 10_000;
/** Between threads: each stands still for a moment, and no listener is to wait for all of them. */
const pauseMs = 150;

interface Answer {
  readonly id?: number;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message?: string };
}

export class Collector {
  readonly #url: string;

  /** @param url of the inspector of the service's process, as it tells on its standard error */
  constructor(url: string) {
    this.#url = url;
  }

  /**
   * The front thread last: it makes most garbage, megabytes of it in the second that the others take.
   *
   * @param onCollected called as soon as the last thread is done
   * @throws when the inspector does not answer
   */
  async collect(onCollected: () => void): Promise<void> {
    const socket = new WebSocket(this.#url, { perMessageDeflate: false, handshakeTimeout: answerMsMax });
    const pending = new Map<number, (error?: Answer['error']) => void>();
    const workers: string[] = [];
    let lastId = 0;
    const onAnswer = ({ id, error, method, params }: Answer): void => {
      if (id !== undefined) pending.get(id)?.(error);
      if (params === undefined) return;
      if (method === 'NodeWorker.attachedToWorker') workers.push(params.sessionId);
      if (method === 'NodeWorker.receivedMessageFromWorker')
        onAnswer(JSON.parse(params.message ?? '{}') as Answer);
    };
    socket.on('message', (data: Buffer) => onAnswer(JSON.parse(data.toString()) as Answer));
    const call = (sessionId: string | null, method: string, params: object = {}): Promise<void> =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        const timer = setTimeout(() => reject(new Error(`no answer to ${method}`)), answerMsMax);
        pending.set(id, (error) => {
          clearTimeout(timer);
          pending.delete(id);
          if (error === undefined) resolve();
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
      for (const worker of workers) {
        await call(worker, 'HeapProfiler.collectGarbage');
        await sleep(pauseMs);
      }
      await call(null, 'HeapProfiler.collectGarbage');
      onCollected();
      await call(null, 'NodeWorker.disable');
    } finally {
      socket.terminate();
    }
  }
}
