/**
 * A client of the ElevenLabs API, as voice agents use it: turns on one WebSocket, sentence by sentence with a flush each, played
 * to their ends or interrupted. Every message is checked: the characters rebuild the text within the audio, and a turn has one end.
 */
import type { ElevenLabsMessage } from '../rig/elevenlabs.js';
import { Dice } from '../rig/random.js';
import { Playback } from '../rig/playback.js';
import { encodeMessage, SocketConnection } from '../rig/socket.js';
import { SoakClient, type ClientParts } from './client.js';
import type { Reply } from './meter.js';
import { drawReply } from './population.js';

const SAMPLES_A_MS = 24;
const answerMsMax = 60_000;

interface Turn {
  readonly id: string;
  readonly text: string;
  readonly beganMs: number;
  /** Milliseconds until the client interrupts it; `null`: it is heard to its end. */
  readonly cutAfterMs: number | null;
  readonly reply: Reply;
  isCut: boolean;
  audioBytes: number;
  characters: string;
  lastMs: number;
}

export class ElevenLabsClient extends SoakClient<ClientParts & { readonly port: number }> {
  #state: 'connecting' | 'here' | 'leaving' = 'connecting';
  #sinceMs = 0;
  #life = -1;
  #turnsLeft = 0;
  #dice: Dice;
  #connection: SocketConnection | null = null;
  #turn: Turn | null = null;
  #playback = new Playback();

  constructor(parts: ClientParts & { readonly port: number }) {
    super(parts);
    this.#dice = new Dice(parts.seed, 4, parts.client, 0);
  }

  protected override act(nowMs: number): void {
    if (this.#state === 'here') {
      if (this.#turn === null) {
        if (this.#playback.aheadMs(nowMs) === 0 || this.isStopping) this.#next(nowMs);
        return;
      }
      if (!this.#turn.isCut) this.#cutIfDue(this.#turn, nowMs);
    }
    if (nowMs - this.#sinceMs <= answerMsMax) return;
    this.fault('answers', `no end of ${this.#turn === null ? this.#state : 'a turn'}`);
    this.#connection?.close();
    this.#end();
  }

  protected override begin(nowMs: number): void {
    const { client, key, meter, port, seed, target } = this.parts;
    this.#dice = new Dice(seed, 4, client, ++this.#life);
    this.#turnsLeft = this.#dice.between(1, 6);
    this.#state = 'connecting';
    this.#sinceMs = nowMs;
    meter.lives++;
    const voice = this.#dice.pick(target.voices);
    const query = 'output_format=pcm_24000&auto_mode=true&sync_alignment=true';
    const path = `/v1/text-to-speech/${voice}/multi-stream-input?${query}`;
    const connection: SocketConnection = new SocketConnection(
      { host: target.host, port, path, key },
      {
        onMessage: (json) => this.#onMessage(JSON.parse(json) as ElevenLabsMessage),
        onError: (error) => {
          if (this.#state !== 'leaving') this.fault('sockets', error.message);
          if (this.#state === 'here') meter.sockets--;
          this.#end();
        },
      },
    );
    this.#connection = connection;
    connection.opened().then(
      () => {
        if (this.#connection !== connection) return;
        this.#state = 'here';
        meter.sockets++;
      },
      // `onError` reports it.
      () => undefined,
    );
  }

  #next(nowMs: number): void {
    this.#sinceMs = nowMs;
    if (this.isStopping || this.#turnsLeft-- === 0) {
      this.#state = 'leaving';
      this.parts.meter.sockets--;
      this.#connection?.leave('close-frame', () => this.#end());
      return;
    }
    const { key, meter } = this.parts;
    const sentences = drawReply(this.#dice, false).text.match(/[^.]+\.\s*/g) ?? [];
    const flushed = sentences.map((sentence) => `${sentence.trim()} `);
    const turn: Turn = {
      id: `${this.name}.${this.#turnsLeft}`,
      text: flushed.join(''),
      beganMs: nowMs,
      cutAfterMs: this.#dice.chance(0.4) ? this.#dice.within(10, 1_500) : null,
      reply: { isSpoilt: false },
      ...{ isCut: false, audioBytes: 0, characters: '', lastMs: 0 },
    };
    this.#turn = turn;
    this.#playback = new Playback();
    this.#playback.begin(nowMs);
    meter.contexts++;
    meter.streams++;
    meter.sent(key, turn.text.length);
    this.#write({ text: ' ' });
    for (const text of flushed) this.#write({ text, flush: true });
    if (turn.cutAfterMs === null) this.#write({ text: '', flush: true }, { close_context: true });
  }

  /** As Pipecat and LiveKit Agents barge in: after the close alone, the rest would be spoken. */
  #cutIfDue(turn: Turn, nowMs: number): void {
    if (turn.cutAfterMs === null || nowMs - turn.beganMs < turn.cutAfterMs) return;
    turn.isCut = true;
    this.#write({ close_context: true });
    this.#write(this.#dice.chance(0.5) ? { close_context: true } : { text: '', flush: true });
  }

  #onMessage(message: ElevenLabsMessage): void {
    const { meter } = this.parts;
    const turn = this.#turn;
    meter.frames++;
    if (turn !== null && this.parts.mayRefuse && message.error === 'system_busy') {
      this.#turn = null;
      meter.refusals++;
      meter.streams--;
      return;
    }
    if (turn === null || message.contextId !== turn.id || message.error !== undefined) {
      this.fault('frames', `unexpected: ${JSON.stringify(message).slice(0, 200)}`);
      return;
    }
    if (message.isFinal === true) {
      this.#onFinal(turn);
      return;
    }
    const bytes = Buffer.byteLength(message.audio ?? '', 'base64');
    turn.audioBytes += bytes;
    meter.audioMs += bytes / 2 / SAMPLES_A_MS;
    if (!turn.isCut) this.#hear(turn);
    const { chars = [], charStartTimesMs = [], charDurationsMs = [] } = message.alignment ?? {};
    turn.characters += chars.join('');
    for (const [index, startMs] of charStartTimesMs.entries()) {
      if (startMs < turn.lastMs) this.fault('words', `a character at ${startMs} after ${turn.lastMs} ms`);
      turn.lastMs = startMs + charDurationsMs[index]!;
    }
  }

  #hear(turn: Turn): void {
    const nowMs = performance.now();
    const arrival = this.#playback.audio(turn.audioBytes / 2 / SAMPLES_A_MS, nowMs);
    if (arrival?.kind === 'first') this.parts.meter.replies++;
    this.hear(arrival, nowMs, turn.beganMs, turn.reply);
  }

  #onFinal(turn: Turn): void {
    const { key, meter } = this.parts;
    this.#turn = null;
    meter.streams--;
    if (turn.isCut) {
      // An interruption ends the playback too.
      this.#playback = new Playback();
      return;
    }
    meter.spoken(key, turn.text.length);
    const audioMs = turn.audioBytes / 2 / SAMPLES_A_MS;
    if (turn.audioBytes % 2 !== 0 || audioMs === 0) this.fault('audio', `${turn.audioBytes} bytes`);
    if (turn.characters !== turn.text) this.fault('words', `${turn.characters} instead of ${turn.text}`);
    if (turn.lastMs > audioMs + 1) this.fault('words', `they end at ${turn.lastMs} of ${audioMs} ms`);
  }

  #write(...messages: readonly object[]): void {
    const contextId = { context_id: this.#turn?.id };
    for (const message of messages) this.#connection?.write(encodeMessage({ ...message, ...contextId }));
  }

  #end(): void {
    if (this.#turn !== null) this.parts.meter.streams--;
    this.#turn = null;
    this.#connection = null;
    this.rest(this.#dice.within(50, 1_500));
  }

  protected override get name(): string {
    return `elevenlabs ${this.parts.client}.${this.#life}`;
  }
}
