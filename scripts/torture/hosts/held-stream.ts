/** A stream whose client stops reading until it is asked to go on, so that the service cannot finish it. */
import { encodeRequest, HttpConnection, speechRequest } from '../../rig/http.js';

export interface StreamEnd {
  readonly status: number;
  readonly requestId: string;
  readonly isWhole: boolean;
}

export class HeldStream {
  readonly ended: Promise<StreamEnd>;
  readonly #connection: HttpConnection;

  private constructor(port: number, key: string, text: string, onBegun: () => void) {
    this.#connection = new HttpConnection({ port });
    let head = { status: 0, requestId: '' };
    this.ended = new Promise((resolve) => {
      const end = (isWhole: boolean): void => {
        onBegun();
        resolve({ ...head, isWhole });
      };
      // More than the buffers on the way hold, at this rate.
      const format = { encoding: 'pcm', sampleRateHz: 48_000 } as const;
      this.#connection.request(encodeRequest(speechRequest({ key, voice: 'wren', text, format })), {
        onHead: (status, headers) => void (head = { status, requestId: headers.get('x-request-id') ?? '' }),
        onBody: () => {
          if (this.#isHeld) this.#connection.pause();
          onBegun();
        },
        onEnd: () => end(true),
        onError: () => end(false),
      });
    });
  }

  #isHeld = true;

  /** Resolves when its first audio has come, or when it has ended. */
  static open(port: number, key: string, text: string): Promise<HeldStream> {
    return new Promise((resolve) => {
      const stream: HeldStream = new HeldStream(port, key, text, () => queueMicrotask(() => resolve(stream)));
    });
  }

  goOn(): void {
    this.#isHeld = false;
    this.#connection.resume();
  }
}
