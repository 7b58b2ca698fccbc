/** A raw client of the WebSockets of the ElevenLabs API: it sends what a test says, and keeps what comes. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { Changes } from '../../scripts/rig/changes.js';
import type { Alignment, ElevenLabsMessage } from '../../scripts/rig/elevenlabs.js';

export class ElevenLabsClient {
  readonly messages: ElevenLabsMessage[] = [];
  closed: { readonly code: number; readonly atMs: number } | null = null;
  readonly #socket: WebSocket;
  readonly #changes = new Changes();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      this.messages.push(JSON.parse((data as Buffer).toString()) as ElevenLabsMessage);
      this.#changes.notify();
    });
    socket.on('close', (code) => {
      this.closed = { code, atMs: performance.now() };
      this.#changes.notify();
    });
    socket.on('error', () => undefined);
  }

  /**
   * @param url with the query
   * @param ca the certificate to trust, for `wss`
   * @returns the client, or the refusal of the handshake
   */
  static async open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    ca?: string,
  ): Promise<ElevenLabsClient | { readonly status: number; readonly body: unknown }> {
    const socket = new WebSocket(url, { headers, ca });
    const client = new ElevenLabsClient(socket);
    const refused = once(socket, 'unexpected-response').then(async ([, response]) => {
      const { statusCode = 0 } = response as { statusCode?: number };
      const pieces: Buffer[] = [];
      for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece);
      return { status: statusCode, body: JSON.parse(Buffer.concat(pieces).toString()) as unknown };
    });
    refused.catch(() => undefined);
    return Promise.race([once(socket, 'open').then(() => client), refused]);
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.#socket.send(JSON.stringify(message));
  }

  close(): void {
    this.#socket.close();
  }

  /** Resolves when the condition holds. @throws if the socket closes before */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.closed !== null)
        throw new Error(`closed ${this.closed.code}: ${JSON.stringify(this.messages.at(-1))}`);
      await this.#changes.next();
    }
  }

  async untilClosed(): Promise<{ readonly code: number; readonly atMs: number }> {
    await this.#changes.until(() => this.closed !== null);
    return this.closed!;
  }

  of(contextId: string | undefined): ElevenLabsMessage[] {
    return this.messages.filter((message) => message.contextId === contextId);
  }

  isFinal(contextId: string | undefined): boolean {
    return this.of(contextId).some(({ isFinal }) => isFinal === true);
  }

  audio(contextId: string | undefined): Buffer {
    return Buffer.concat(this.of(contextId).map(({ audio }) => Buffer.from(audio ?? '', 'base64')));
  }

  alignments(contextId: string | undefined): Alignment[] {
    return this.of(contextId).flatMap(({ alignment }) => alignment ?? []);
  }
}

export const textOf = (alignments: readonly Alignment[]): string =>
  alignments.flatMap(({ chars }) => chars).join('');

/** A word as Pipecat counts: it adds the end of each message with a whole word to its clock. */
export const pipecatWords = (alignments: readonly Alignment[]): { word: string; startMs: number }[] => {
  const words: { word: string; startMs: number }[] = [];
  let clockMs = 0;
  let word = '';
  let startMs: number | null = null;
  for (const { chars, charStartTimesMs, charDurationsMs } of alignments) {
    const before = words.length;
    chars.forEach((character, index) => {
      if (character !== ' ') {
        startMs ??= clockMs + charStartTimesMs[index]!;
        word += character;
      } else if (word !== '') {
        words.push({ word, startMs: startMs ?? clockMs });
        word = '';
        startMs = null;
      }
    });
    if (words.length > before) clockMs += charStartTimesMs.at(-1)! + charDurationsMs.at(-1)!;
  }
  return words;
};
