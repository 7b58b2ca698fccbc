/** Another key, which asks for one sentence after the other and measures the time to its first audio. */
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeRequest, HttpConnection, speechRequest } from '../../rig/http.js';
import { encodeMessage, encodeStart, SocketConnection } from '../../rig/socket.js';

const text = 'The kettle is on.';
const waitMsMax = 30_000;
/** For what is left of a sentence that is not heard to its end. */
const restMs = 30;

export class OtherKey {
  readonly #port: number;
  readonly #key: string;
  readonly #voice: string;
  readonly #socket: SocketConnection;
  #onAudio: () => void = () => undefined;
  #contexts = 0;
  /** What went wrong. */
  readonly faults: string[] = [];

  constructor(port: number, key: string, voice: string) {
    this.#port = port;
    this.#key = key;
    this.#voice = voice;
    this.#socket = new SocketConnection(
      { port, key },
      {
        onAudio: () => this.#onAudio(),
        onMessage: (json) => {
          if (json.includes('"error"')) this.faults.push(json.slice(0, 200));
        },
        onError: (error) => this.faults.push(error.message),
      },
    );
  }

  /** Times to first audio in milliseconds, over HTTP and over a WebSocket in turn. */
  async sentences(count: number): Promise<number[]> {
    await this.#socket.opened();
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      times.push(await (i % 2 === 0 ? this.#overHttp() : this.#overSocket()));
      await sleep(restMs);
    }
    return times;
  }

  close(): void {
    this.#socket.close();
  }

  async #overHttp(): Promise<number> {
    const connection = new HttpConnection({ port: this.#port });
    await connection.opened();
    const request = encodeRequest(speechRequest({ key: this.#key, voice: this.#voice, text }));
    const ms = await this.#timed((heard) =>
      connection.request(request, {
        onHead: (status) => {
          if (status !== 200) this.faults.push(`answered ${status}`);
        },
        onBody: heard,
        onEnd: heard,
        onError: (error) => {
          this.faults.push(error.message);
          heard();
        },
      }),
    );
    connection.close();
    return ms;
  }

  async #overSocket(): Promise<number> {
    const context_id = `${this.#contexts++}`;
    const ms = await this.#timed((heard) => {
      this.#onAudio = heard;
      this.#socket.write(
        Buffer.concat([
          encodeStart({ voice: this.#voice }, context_id),
          encodeMessage({ send_text: text, context_id }),
          encodeMessage({ flush: true, context_id }),
        ]),
      );
    });
    this.#socket.write(encodeMessage({ cancel_context: true, context_id }));
    return ms;
  }

  async #timed(ask: (heard: () => void) => void): Promise<number> {
    const startMs = performance.now();
    const heard = new Promise<void>((resolve) => ask(resolve));
    await Promise.race([heard, sleep(waitMsMax, undefined, { ref: false })]);
    return performance.now() - startMs;
  }
}
