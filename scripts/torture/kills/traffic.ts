/** Clients with several keys, over HTTP and WebSockets, for as long as the service lives. */
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../../rig/http.js';
import type { Dice } from '../../rig/random.js';
import { Tally } from '../../rig/tally.js';
import { CountingSocket } from '../floods/counting-socket.js';

const sentences = [
  'The train was late again, so we walked along the river.',
  'Nobody had told the baker about the change.',
  'It rained.',
  'When the lights came back, the band played on as if nothing had happened.',
];

/** No request, and no WebSocket in one life, has more text or costs more. */
export const CHARACTERS_MAX = 3_000;

const textOf = (dice: Dice, characters: number): string => {
  let text = dice.pick(sentences);
  while (text.length < characters) text += ` ${dice.pick(sentences)}`;
  return text.slice(0, characters);
};

export class Traffic {
  readonly #port: number;
  readonly #keys: readonly string[];
  readonly #dice: Dice;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #sockets: CountingSocket[] = [];
  /** The most that a request can be charged, by its id. */
  readonly costs = new Map<string, number>();
  /** When requests were answered to the end with 200, by their ids. */
  readonly wholes = new Map<string, number>();
  /** Of responses over HTTP. */
  readonly statuses = new Tally();

  constructor(port: number, keys: readonly string[], dice: Dice) {
    this.#port = port;
    this.#keys = keys;
    this.#dice = dice;
  }

  start(requests: number, sockets: number): void {
    for (let i = 0; i < requests; i += 1) this.#running.push(this.#request());
    for (let i = 0; i < sockets; i += 1) this.#converse();
  }

  /** Call it when the service has ended. */
  async end(): Promise<void> {
    this.#abort.abort();
    for (const socket of this.#sockets) socket.close();
    await Promise.all(this.#running);
  }

  /** One request after the other. */
  async #request(): Promise<void> {
    while (!this.#abort.signal.aborted) if (!(await this.#ask())) await sleep(10);
  }

  /** @returns whether there was speech to its end: otherwise the client waits a moment */
  async #ask(): Promise<boolean> {
    const dice = this.#dice;
    const text = textOf(dice, dice.pick([1, 30, 200, 1_500, CHARACTERS_MAX]));
    const hangUp = dice.chance(0.2) ? [AbortSignal.timeout(dice.below(150))] : [];
    const path = `/v1/tts${dice.pick(['', '/stream'])}`;
    const key = dice.pick(this.#keys);
    const body = { text, voice: 'wren', response_format: dice.pick(['pcm', 'mp3', 'opus']) };
    const signal = AbortSignal.any([this.#abort.signal, ...hangUp]);
    const { headers, isWhole, status } = await exchange(this.#port, { path, key, body }, { signal });
    if (status > 0) this.statuses.add(String(status));
    const id = headers.get('x-request-id');
    if (id !== undefined) this.costs.set(id, status === 200 ? text.length : 0);
    if (id !== undefined && status === 200 && isWhole) this.wholes.set(id, performance.now());
    return isWhole && status === 200;
  }

  /** One context after the other. */
  #converse(): void {
    const dice = this.#dice;
    let left = CHARACTERS_MAX;
    let contexts = 0;
    const say = (): void => {
      const send_text = textOf(dice, Math.min(left, dice.pick([40, 120, 400])));
      left -= send_text.length;
      contexts += 1;
      const context_id = `context-${contexts}`;
      socket.start('wren', context_id);
      socket.send({ send_text, context_id });
      socket.send({ close_context: true, context_id });
    };
    const socket = new CountingSocket(this.#port, dice.pick(this.#keys), (json) => {
      if (json.includes('"context_closed"') && left > 0) say();
    });
    this.#sockets.push(socket);
    socket.opened().then(say, () => undefined);
  }
}
