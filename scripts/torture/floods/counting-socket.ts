/** A WebSocket that counts what it receives. */
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeMessage, encodeStart, SocketConnection } from '../../rig/socket.js';
import { Tally } from '../../rig/tally.js';

const kinds = ['context_started', 'flush_completed', 'context_closed', 'error', 'audio_chunk'];

export class CountingSocket {
  /** Frames by kind. */
  readonly counts = new Tally();
  /** By text. */
  readonly errors = new Tally();
  /** Why the connection ended; `null` while it is open. */
  end: string | null = null;
  readonly #connection: SocketConnection;
  #markers = 0;

  /** @param onMessage called with each message */
  constructor(port: number, key: string, onMessage: (json: string) => void = () => undefined) {
    this.#connection = new SocketConnection(
      { port, key },
      {
        onMessage: (json) => {
          onMessage(json);
          this.counts.add(kinds.find((kind) => json.includes(`"${kind}"`)) ?? 'other');
          const error = /"error":"([^"]{0,60})/.exec(json)?.[1];
          if (error !== undefined) this.errors.add(error);
        },
        onError: (error) => (this.end = error.message),
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  of(kind: string): number {
    return this.counts.of(kind);
  }

  write(bytes: Uint8Array): void {
    this.#connection.write(bytes);
  }

  send(message: object): void {
    this.write(encodeMessage(message));
  }

  start(voice: string, contextId: string): void {
    this.write(encodeStart({ voice }, contextId));
  }

  /** Resolves when the service has answered everything sent so far. @returns false if the socket closes first */
  async caughtUp(msMax = 30_000): Promise<boolean> {
    const contextId = `marker-${this.#markers++}`;
    const error = `unknown context_id: ${contextId}`;
    this.send({ flush: true, context_id: contextId });
    const isAnswered = await this.#waitUntil(() => this.errors.of(error) > 0, msMax);
    if (!isAnswered) return false;
    // The answer to the marker is not one to the flood.
    this.errors.add(error, -1);
    this.counts.add('error', -1);
    return true;
  }

  /** @returns false if so many frames of a kind do not come in time */
  until(kind: string, count: number, msMax = 30_000): Promise<boolean> {
    return this.#waitUntil(() => this.of(kind) >= count, msMax);
  }

  pause(): void {
    this.#connection.pause();
  }

  resume(): void {
    this.#connection.resume();
  }

  close(): void {
    this.#connection.close();
  }

  async #waitUntil(condition: () => boolean, msMax: number): Promise<boolean> {
    const endMs = performance.now() + msMax;
    while (!condition() && this.end === null && performance.now() < endMs) await sleep(5);
    return condition();
  }
}

/** Open sockets, which use the keys in turn. */
export const openSockets = async (
  port: number,
  keys: readonly string[],
  count: number,
): Promise<CountingSocket[]> => {
  const sockets = Array.from({ length: count }, (_, i) => new CountingSocket(port, keys[i % keys.length]!));
  await Promise.all(sockets.map((socket) => socket.opened()));
  return sockets;
};
