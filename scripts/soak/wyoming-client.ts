/**
 * A voice assistant over the Wyoming protocol: some texts on each connection, whole or word by word as a language model writes
 * them, played to their ends or left in mid-speech. Each has its events in order, one format, and as much audio as its text takes.
 */
import { connect, type Socket } from 'node:net';
import { Playback } from '../rig/playback.js';
import { unavailable } from '../rig/socket.js';
import { encodeWyoming, WyomingReader, type WyomingEvent } from '../rig/wyoming.js';
import { SoakClient, type ClientParts } from './client.js';
import type { Reply } from './meter.js';
import { plausible } from './plausible.js';
import { drawAssistant, type AssistantPlan } from './population.js';

const answerMsMax = 60_000;
const BYTES_A_SAMPLE = 2;

/** A text that the service speaks. */
interface Turn {
  readonly text: string;
  readonly isStreamed: boolean;
  readonly reply: Reply;
  /** Not sent yet. */
  words: string[];
  /** When its last word was sent; `null`: not yet. */
  completeMs: number | null;
  rateHz: number | null;
  audioMs: number;
  isStopped: boolean;
}

export class WyomingClient extends SoakClient<ClientParts & { readonly port: number }> {
  readonly #playback = new Playback();
  #life = -1;
  #plan: AssistantPlan;
  #texts = 0;
  #socket: Socket | null = null;
  #reader = new WyomingReader();
  #turn: Turn | null = null;
  #turnBeganMs = 0;

  constructor(parts: ClientParts & { readonly port: number }) {
    super(parts);
    this.#plan = drawAssistant(parts.seed, parts.client, 0);
  }

  protected override begin(nowMs: number): void {
    const { client, meter, port, seed, target } = this.parts;
    this.#plan = drawAssistant(seed, client, ++this.#life);
    this.#texts = 0;
    this.#reader = new WyomingReader();
    this.#turnBeganMs = nowMs;
    meter.lives++;
    const socket = connect({ host: target.host, port, noDelay: true });
    this.#socket = socket;
    socket.on('data', (bytes) => this.#onData(bytes));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.fault('sockets', 'the service closed the connection');
      this.#leave();
    });
  }

  protected override act(nowMs: number): void {
    const turn = this.#turn;
    const { texts, vanishesAfterMs } = this.#plan;
    if (turn === null) {
      if (this.#playback.aheadMs(nowMs) > 0 && !this.isStopping) return;
      if (this.#texts === texts.length || this.isStopping) this.#leave();
      else this.#speak(nowMs);
      return;
    }
    const spokenMs = nowMs - this.#turnBeganMs;
    if (turn.isStreamed && turn.completeMs === null) this.#sendWords(turn, nowMs);
    const isLast = this.#texts === texts.length;
    if (isLast && vanishesAfterMs !== null && spokenMs >= vanishesAfterMs) this.#leave();
    else if (spokenMs > answerMsMax) {
      this.fault('answers', 'no end of a text');
      this.#leave();
    }
  }

  #speak(nowMs: number): void {
    const { meter, target } = this.parts;
    const { text, voice, wordsPerSecond } = this.#plan.texts[this.#texts++]!;
    const name = target.voices[voice % target.voices.length];
    const isStreamed = wordsPerSecond !== null;
    const words = isStreamed ? (text.match(/\S+\s*/g) ?? []) : [];
    this.#turn = {
      ...{ text, isStreamed, words, completeMs: isStreamed ? null : nowMs },
      ...{ reply: { isSpoilt: false }, rateHz: null, audioMs: 0, isStopped: false },
    };
    this.#turnBeganMs = nowMs;
    this.#playback.begin(nowMs);
    meter.contexts++;
    meter.streams++;
    if (isStreamed) this.#write('synthesize-start', { voice: { name } });
    else this.#write('synthesize', { text, voice: { name } });
  }

  #sendWords(turn: Turn, nowMs: number): void {
    const pace = this.#plan.texts[this.#texts - 1]!.wordsPerSecond ?? 0;
    const total = turn.text.match(/\S+\s*/g)?.length ?? 0;
    const due = Math.ceil(((nowMs - this.#turnBeganMs) / 1_000) * pace);
    while (turn.words.length > 0 && total - turn.words.length < due)
      this.#write('synthesize-chunk', { text: turn.words.shift() });
    if (turn.words.length > 0) return;
    turn.completeMs = nowMs;
    // Home Assistant sends the whole text as well, for services without streams.
    this.#write('synthesize', { text: turn.text });
    this.#write('synthesize-stop');
  }

  #onData(bytes: Buffer): void {
    try {
      for (const event of this.#reader.push(bytes)) this.#onEvent(event);
    } catch (error) {
      this.fault('frames', (error as Error).message);
      this.#leave();
    }
  }

  #onEvent(event: WyomingEvent): void {
    const { meter, mayRefuse } = this.parts;
    const turn = this.#turn;
    // A late event of a connection that the client has left.
    if (this.#socket === null) return;
    meter.frames++;
    if (mayRefuse && turn !== null && event.type === 'error' && event.data['text'] === unavailable) {
      meter.refusals++;
      this.#leave();
      return;
    }
    const isExpected = turn !== null && this.#take(turn, event);
    if (!isExpected) this.fault('frames', `unexpected: ${event.type} ${JSON.stringify(event.data)}`);
  }

  /** @returns false if this event may not come now */
  #take(turn: Turn, { data, payload, type }: WyomingEvent): boolean {
    switch (type) {
      case 'audio-start':
        if (turn.rateHz !== null) return false;
        turn.rateHz = Number(data['rate']);
        return turn.rateHz > 0 && data['width'] === BYTES_A_SAMPLE && data['channels'] === 1;
      case 'audio-chunk':
        if (turn.isStopped || turn.rateHz === null || data['rate'] !== turn.rateHz) return false;
        this.#hear(turn, payload.length, turn.rateHz);
        return true;
      case 'audio-stop':
        if (turn.isStopped || turn.audioMs === 0 || turn.completeMs === null) return false;
        turn.isStopped = true;
        if (!turn.isStreamed) this.#finish(turn);
        return true;
      case 'synthesize-stopped':
        if (!turn.isStreamed || !turn.isStopped) return false;
        this.#finish(turn);
        return true;
      default:
        return false;
    }
  }

  #hear(turn: Turn, bytes: number, rateHz: number): void {
    const { meter } = this.parts;
    const nowMs = performance.now();
    const ms = (bytes / BYTES_A_SAMPLE / rateHz) * 1_000;
    if (bytes % BYTES_A_SAMPLE !== 0) this.fault('audio', `a chunk of ${bytes} bytes`);
    turn.audioMs += ms;
    meter.audioMs += ms;
    const arrival = this.#playback.audio(turn.audioMs, nowMs);
    if (arrival?.kind === 'first') meter.replies++;
    this.hear(arrival, nowMs, turn.completeMs, turn.reply, !turn.isStreamed);
  }

  #finish(turn: Turn): void {
    const msPerCharacter = turn.audioMs / turn.text.length;
    const { max, min } = plausible(this.parts.target).httpMsPerCharacter;
    if (msPerCharacter < min || msPerCharacter > max)
      this.fault('audio', `${turn.audioMs} ms for ${turn.text.length} characters`);
    this.#endTurn();
  }

  #endTurn(): void {
    if (this.#turn !== null) this.parts.meter.streams--;
    this.#turn = null;
    this.#playback.end();
  }

  #leave(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.destroy();
    this.#endTurn();
    this.rest(this.#plan.pauseMs);
  }

  #write(type: string, data?: Readonly<Record<string, unknown>>): void {
    this.#socket?.write(encodeWyoming(type, data));
  }

  protected override get name(): string {
    return `wyoming ${this.parts.client}.${this.#life}`;
  }
}
