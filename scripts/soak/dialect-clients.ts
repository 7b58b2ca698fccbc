/**
 * Voice agents of the ElevenLabs API and assistants over Wyoming: some texts on each connection, one after the other, played to
 * their ends or broken off. The check of answers over HTTP checks their audio too, and what it lacks is here.
 */
import { connect, type Socket } from 'node:net';
import type { CheckedAnswer } from '../rig/checked-answer.js';
import type { ElevenLabsMessage } from '../rig/elevenlabs.js';
import { Playback } from '../rig/playback.js';
import { Dice } from '../rig/random.js';
import { encodeMessage, SocketConnection, unavailable } from '../rig/socket.js';
import { encodeWyoming, WyomingReader, type WyomingEvent } from '../rig/wyoming.js';
import { SoakClient, type ClientParts } from './client.js';
import type { Reply } from './meter.js';
import { drawAssistant, drawReply, type AssistantPlan } from './population.js';

const answerMsMax = 60_000;

export interface DialectParts extends ClientParts {
  readonly port: number;
}

/** A text that the service speaks. */
interface Turn {
  readonly text: string;
  readonly reply: Reply;
  readonly playback: Playback;
  /** From the first audio on. */
  answer: CheckedAnswer | null;
  isCut: boolean;
  isOver: boolean;
}

abstract class TurnClient extends SoakClient<DialectParts> {
  /** The number of the connection. */
  protected life = -1;
  protected isConnected = false;
  protected turn: Turn | null = null;
  #turns = 0;

  /** @param isComplete whether all of its text is sent at once */
  protected beginTurn(text: string, isComplete: boolean): Turn {
    const { meter } = this.parts;
    const nowMs = performance.now();
    const where = `${this.name}.${this.#turns++}`;
    const reply = { where, completeMs: isComplete ? nowMs : null, isSpoilt: false };
    const playback = new Playback();
    playback.begin(nowMs);
    meter.contexts++;
    meter.streams++;
    this.turn = { ...{ text, reply, playback, answer: null }, ...{ isCut: false, isOver: false } };
    return this.turn;
  }

  /** Samples of a turn that have come. */
  protected hear(turn: Turn, samples: Buffer, sampleRateHz: number): void {
    const { playback, reply, text } = turn;
    const format = { encoding: 'pcm', sampleRateHz } as const;
    const asked = { kind: 'samples', format, text, timestamps: false } as const;
    turn.answer ??= this.answerTo(reply, playback, asked);
    turn.answer.push(samples);
  }

  /** The turn has been spoken. */
  protected finish(turn: Turn): void {
    turn.isOver = true;
    if (turn.isCut) return;
    if (turn.answer === null) this.fault('audio', 'a turn without audio');
    turn.answer?.end();
  }

  /** @returns whether an error may end a turn. A turn that failed may have further errors, for what was written before the client knew */
  protected allows(turn: Turn, isRefusal: boolean): boolean {
    const { mayFail, mayRefuse, meter } = this.parts;
    if (isRefusal ? !mayRefuse : !mayFail) return false;
    if (isRefusal) meter.refusals++;
    else if (!turn.isOver) meter.failures++;
    return true;
  }

  /** Until it is spoken and heard. @param cutMs broken off by then; `null`: it must end */
  protected async endTurn(turn: Turn, cutMs: number | null): Promise<void> {
    const isEnded = () => turn.isOver || !this.isConnected;
    if (!(await this.until(isEnded, cutMs ?? answerMsMax)) && cutMs === null) {
      this.fault('answers', 'no end of a turn');
      this.isConnected = false;
    }
    const aheadMs = turn.playback.aheadMs(performance.now());
    if (turn.isOver && !turn.isCut) await this.until(() => this.isStopping, aheadMs);
  }

  protected dropTurn(): void {
    if (this.turn !== null) this.parts.meter.streams--;
    this.turn = null;
  }
}

/** Sentence by sentence with a flush each. The characters rebuild the text within the audio, and a turn has one end. */
export class ElevenLabsClient extends TurnClient {
  #connection: SocketConnection | null = null;
  #characters = '';
  #lastMs = 0;

  protected override get name(): string {
    return `elevenlabs ${this.parts.client}.${this.life}`;
  }

  protected override async act(): Promise<number> {
    const { client, key, meter, port, seed, target } = this.parts;
    const dice = new Dice(seed, 4, client, ++this.life);
    const query = 'output_format=pcm_24000&auto_mode=true&sync_alignment=true';
    const path = `/v1/text-to-speech/${dice.pick(target.voices)}/multi-stream-input?${query}`;
    let isGone = false;
    const connection = new SocketConnection(
      { host: target.host, port, path, key },
      {
        onMessage: (json) => this.#onMessage(JSON.parse(json) as ElevenLabsMessage),
        onError: (error) => {
          this.fault('sockets', error.message);
          this.isConnected = false;
          isGone = true;
        },
      },
    );
    this.#connection = connection;
    void connection.opened().then(
      () => (this.isConnected = true),
      // `onError` reports it.
      () => undefined,
    );
    if (!(await this.until(() => this.isConnected || isGone, answerMsMax)))
      this.fault('sockets', 'no end of a handshake');
    meter.sockets++;
    for (let left = dice.between(1, 6); left > 0 && this.isConnected && !this.isStopping; left--) {
      await this.#say(dice);
      this.dropTurn();
    }
    meter.sockets--;
    if (this.isConnected) {
      connection.leave('close-frame', () => (isGone = true));
      if (!(await this.until(() => isGone, answerMsMax))) this.fault('answers', 'no end of a connection');
    }
    connection.close();
    this.isConnected = false;
    return dice.within(50, 1_500);
  }

  async #say(dice: Dice): Promise<void> {
    const sentences = drawReply(dice, false).text.match(/[^.]+\.\s*/g) ?? [];
    const flushed = sentences.map((sentence) => `${sentence.trim()} `);
    const turn = this.beginTurn(flushed.join(''), true);
    this.#characters = '';
    this.#lastMs = 0;
    this.parts.meter.sent(this.parts.key, turn.text.length);
    this.#write(turn, { text: ' ' });
    for (const text of flushed) this.#write(turn, { text, flush: true });
    if (dice.chance(0.4)) {
      await this.endTurn(turn, dice.within(10, 1_500));
      if (turn.isOver || !this.isConnected) return;
      // As Pipecat and LiveKit Agents barge in: after the close alone, the rest would be spoken.
      turn.isCut = true;
      this.#write(turn, { close_context: true });
      this.#write(turn, dice.chance(0.5) ? { close_context: true } : { text: '', flush: true });
    } else {
      this.#write(turn, { text: '', flush: true });
      this.#write(turn, { close_context: true });
    }
    await this.endTurn(turn, null);
  }

  #onMessage(message: ElevenLabsMessage): void {
    const { key, meter } = this.parts;
    const { turn } = this;
    meter.frames++;
    if (turn !== null && message.error !== undefined && this.allows(turn, message.error === 'system_busy')) {
      turn.isCut = turn.isOver = true;
      return;
    }
    if (turn?.isOver !== false || message.contextId !== turn.reply.where || message.error !== undefined) {
      this.fault('frames', `unexpected: ${JSON.stringify(message).slice(0, 200)}`);
      return;
    }
    if (message.isFinal === true) {
      this.finish(turn);
      if (turn.isCut) return;
      meter.spoken(key, turn.text.length);
      if (this.#characters !== turn.text) this.fault('words', `${this.#characters} instead of ${turn.text}`);
      const audioMs = turn.playback.audioMs;
      if (this.#lastMs > audioMs + 1) this.fault('words', `they end at ${this.#lastMs} of ${audioMs} ms`);
      return;
    }
    const { chars = [], charStartTimesMs = [], charDurationsMs = [] } = message.alignment ?? {};
    this.#characters += chars.join('');
    for (const [index, startMs] of charStartTimesMs.entries()) {
      if (startMs < this.#lastMs) this.fault('words', `a character at ${startMs} after ${this.#lastMs} ms`);
      this.#lastMs = startMs + charDurationsMs[index]!;
    }
    const samples = Buffer.from(message.audio ?? '', 'base64');
    if (!turn.isCut && samples.length > 0) this.hear(turn, samples, 24_000);
  }

  #write({ reply }: Turn, message: object): void {
    this.#connection?.write(encodeMessage({ ...message, context_id: reply.where }));
  }
}

/** Whole texts, or word by word as a language model writes them. Each has its events in order, and one format. */
export class WyomingClient extends TurnClient {
  #socket: Socket | null = null;
  #rateHz: number | null = null;
  #isStreamed = false;
  #isStopped = false;

  protected override get name(): string {
    return `wyoming ${this.parts.client}.${this.life}`;
  }

  protected override async act(): Promise<number> {
    const { client, seed } = this.parts;
    const { pauseMs, texts, vanishesAfterMs } = drawAssistant(seed, client, ++this.life);
    this.#connect();
    for (const [index, text] of texts.entries()) {
      if (!this.isConnected || this.isStopping) break;
      await this.#say(text, index === texts.length - 1 ? vanishesAfterMs : null);
      this.dropTurn();
    }
    this.isConnected = false;
    this.#socket?.destroy();
    return pauseMs;
  }

  #connect(): void {
    const { port, target } = this.parts;
    const reader = new WyomingReader();
    const socket = connect({ host: target.host, port, noDelay: true });
    this.#socket = socket;
    this.isConnected = true;
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      try {
        for (const event of reader.push(bytes)) this.#onEvent(event);
      } catch (error) {
        this.fault('frames', (error as Error).message);
        this.isConnected = false;
      }
    });
    socket.on('close', () => {
      if (!this.isConnected || this.#socket !== socket) return;
      this.fault('sockets', 'the service closed the connection');
      this.isConnected = false;
    });
  }

  async #say(plan: AssistantPlan['texts'][number], vanishesAfterMs: number | null): Promise<void> {
    const { voices } = this.parts.target;
    const { text, wordsPerSecond } = plan;
    const voice = { name: voices[plan.voice % voices.length] };
    const turn = this.beginTurn(text, wordsPerSecond === null);
    this.#rateHz = null;
    this.#isStreamed = wordsPerSecond !== null;
    this.#isStopped = false;
    if (wordsPerSecond === null) this.#write('synthesize', { text, voice });
    else {
      this.#write('synthesize-start', { voice });
      void this.#writeWords(turn, 1_000 / wordsPerSecond);
    }
    await this.endTurn(turn, vanishesAfterMs);
  }

  async #writeWords(turn: Turn, msPerWord: number): Promise<void> {
    const beganMs = performance.now();
    const isLeft = () => this.turn !== turn || !this.isConnected;
    for (const [index, text] of (turn.text.match(/\S+\s*/g) ?? []).entries()) {
      if (await this.until(isLeft, beganMs + index * msPerWord - performance.now())) return;
      this.#write('synthesize-chunk', { text });
    }
    turn.reply.completeMs = performance.now();
    // Home Assistant sends the whole text as well, for services without streams.
    this.#write('synthesize', { text: turn.text });
    this.#write('synthesize-stop');
  }

  #onEvent(event: WyomingEvent): void {
    // A late event of a connection that the client has left.
    if (!this.isConnected) return;
    const { turn } = this;
    this.parts.meter.frames++;
    if (turn !== null && event.type === 'error' && this.allows(turn, event.data['text'] === unavailable))
      this.isConnected = false;
    else if (turn?.isOver !== false || !this.#take(turn, event))
      this.fault('frames', `unexpected: ${event.type} ${JSON.stringify(event.data)}`);
  }

  /** @returns false if this event may not come now */
  #take(turn: Turn, { data, payload, type }: WyomingEvent): boolean {
    const rateHz = Number(data['rate']);
    switch (type) {
      case 'audio-start':
        if (this.#rateHz !== null) return false;
        this.#rateHz = rateHz;
        return rateHz > 0 && data['width'] === 2 && data['channels'] === 1;
      case 'audio-chunk':
        if (this.#isStopped || this.#rateHz !== rateHz) return false;
        if (payload.length % 2 !== 0) this.fault('audio', `a chunk of ${payload.length} bytes`);
        this.hear(turn, payload, rateHz);
        return true;
      case 'audio-stop':
        if (this.#isStopped || turn.reply.completeMs === null) return false;
        this.#isStopped = true;
        if (!this.#isStreamed) this.finish(turn);
        return true;
      case 'synthesize-stopped':
        if (!this.#isStopped) return false;
        this.finish(turn);
        return true;
      default:
        return false;
    }
  }

  #write(type: string, data?: Readonly<Record<string, unknown>>): void {
    this.#socket?.write(encodeWyoming(type, data));
  }
}
