/** Listeners of several keys, over HTTP and WebSockets, for as long as the service lives. */
import { WebSocket } from 'ws';
import type { Dice } from '../dice.js';

const sentences = [
  'The train was late again, so we walked along the river.',
  'Nobody had told the baker about the change.',
  'It rained.',
  'When the lights came back, the band played on as if nothing had happened.',
];

/** No request, and no WebSocket in one life, has more text: so much it can be charged at most. */
export const CHARACTERS_MAX = 3_000;

const textOf = (dice: Dice, characters: number): string => {
  let text = dice.pick(sentences);
  while (text.length < characters) text += ` ${dice.pick(sentences)}`;
  return text.slice(0, characters);
};

export class Traffic {
  readonly #url: string;
  readonly #keys: readonly string[];
  readonly #dice: Dice;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #sockets: WebSocket[] = [];
  /** What a request can be charged, by its id. */
  readonly costs = new Map<string, number>();
  readonly statuses = new Map<number, number>();

  constructor(port: number, keys: readonly string[], dice: Dice) {
    this.#url = `127.0.0.1:${String(port)}/v1/tts`;
    this.#keys = keys;
    this.#dice = dice;
  }

  start(requests: number, sockets: number): void {
    for (let i = 0; i < requests; i += 1) this.#running.push(this.#request());
    for (let i = 0; i < sockets; i += 1) this.#converse();
  }

  /** To be called when the service is gone. */
  async end(): Promise<void> {
    this.#abort.abort();
    for (const socket of this.#sockets) socket.terminate();
    await Promise.all(this.#running);
  }

  /** One after the other, until the service goes. */
  async #request(): Promise<void> {
    while (!this.#abort.signal.aborted)
      try {
        await this.#ask();
      } catch {
        // It was killed; or this listener hung up, and another one comes.
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
  }

  async #ask(): Promise<void> {
    const dice = this.#dice;
    const text = textOf(dice, dice.pick([1, 30, 200, 1_500, CHARACTERS_MAX]));
    const hangUp = dice.chance(0.2) ? [AbortSignal.timeout(dice.below(150))] : [];
    const response = await fetch(`http://${this.#url}${dice.pick(['', '/stream'])}`, {
      method: 'POST',
      headers: { 'x-api-key': dice.pick(this.#keys), 'content-type': 'application/json' },
      body: JSON.stringify({ text, voice: 'wren', response_format: dice.pick(['pcm', 'mp3', 'opus']) }),
      signal: AbortSignal.any([this.#abort.signal, ...hangUp]),
    });
    this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
    const id = response.headers.get('x-request-id');
    if (id !== null) this.costs.set(id, response.status === 200 ? text.length : 0);
    await response.arrayBuffer();
  }

  #converse(): void {
    const dice = this.#dice;
    const socket = new WebSocket(`ws://${this.#url}/ws`, { headers: { 'x-api-key': dice.pick(this.#keys) } });
    this.#sockets.push(socket);
    socket.on('error', () => undefined);
    let left = CHARACTERS_MAX;
    let turn = 0;
    const say = (): void => {
      const text = textOf(dice, Math.min(left, dice.pick([40, 120, 400])));
      left -= text.length;
      turn += 1;
      const context_id = `turn-${String(turn)}`;
      const start = { voice_id: 'wren', model_id: 'default', response_format: { encoding: 'pcm' } };
      for (const frame of [{ start_context: start }, { send_text: text }, { close_context: true }])
        socket.send(JSON.stringify({ ...frame, context_id }));
    };
    socket.on('open', say);
    socket.on('message', (data) => {
      if ((data as Buffer).includes('"context_closed"') && left > 0) say();
    });
  }
}
