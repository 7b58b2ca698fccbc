/** A key that is greedy over WebSockets: as many sockets as it gets, as much text, as many frames. */
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultCodecFormat } from '../../../src/api/formats.js';
import { encodeFrame, encodeMessage, encodeStart, opcodes, SocketConnection } from '../../rig/socket.js';
import { longText } from '../../rig/texts.js';
import { CountingSocket, openSockets } from '../floods/flood.js';
import { Attack, type Target } from './attack.js';

const dialers = 32;
const socketCount = 9;
const contextsPerSocket = 60;
const charactersPerContext = 50_000;
const answerMsMax = 30_000;

/** Opens sockets without end, and keeps those that it gets. */
export class SocketsAttack extends Attack {
  readonly #open: CountingSocket[] = [];

  async begin(): Promise<void> {
    this.loop(dialers, () => this.#dial());
    while (this.answers.sum < 2_000) await sleep(20);
  }

  protected override async ended(): Promise<void> {
    const answered = await Promise.all(this.#open.map((socket) => socket.caughtUp(answerMsMax)));
    const silent = answered.filter((isAnswered) => !isAnswered).length;
    for (const socket of this.#open) socket.close();
    if (silent > 0) this.faults.push(`${silent} open sockets do not answer`);
    for (const answer of this.answers.names)
      if (!['101', '503'].includes(answer)) this.faults.push(`a handshake ended with ${answer}`);
  }

  async #dial(): Promise<void> {
    const { key, port } = this.target;
    const socket = new CountingSocket(port, key);
    try {
      await socket.opened();
      this.#open.push(socket);
      this.answers.add('101');
    } catch {
      const answer = /answered HTTP\/1\.1 (\d+)/.exec(socket.end ?? '')?.[1];
      this.answers.add(answer ?? socket.end ?? 'nothing');
      socket.close();
    }
  }
}

/** Fills nine sockets with contexts, and each context with text. */
export class TextAttack extends Attack {
  protected sockets: CountingSocket[] = [];

  async begin(): Promise<void> {
    const { key, port, voice } = this.target;
    this.sockets = await openSockets(port, [key], socketCount);
    const text = longText.repeat(Math.ceil(charactersPerContext / longText.length));
    for (const socket of this.sockets)
      for (let context = 0; context < contextsPerSocket; context++) {
        const context_id = `${context}`;
        socket.start(voice, context_id);
        socket.send({ send_text: text.slice(0, charactersPerContext), context_id });
      }
  }

  protected override async ended(): Promise<void> {
    const { answers, faults } = this;
    await Promise.all(
      this.sockets.map(async (socket, i) => {
        for (let context = 0; context < contextsPerSocket; context++)
          socket.send({ cancel_context: true, context_id: `${context}` });
        if (!(await socket.caughtUp(answerMsMax)))
          faults.push(`socket ${i} does not answer: ${socket.end ?? 'open'}`);
        const [started, closed] = [socket.of('context_started'), socket.of('context_closed')];
        if (started !== contextsPerSocket || closed !== started)
          faults.push(`socket ${i}: ${started} contexts started, ${closed} closed`);
        // Its slot still speaks, to the end.
        const audio = socket.of('audio_chunk');
        socket.start(this.target.voice, 'last');
        socket.send({ send_text: 'Still here.', context_id: 'last' });
        socket.send({ close_context: true, context_id: 'last' });
        const isWhole = await socket.until('context_closed', closed + 1, answerMsMax);
        if (!isWhole || socket.of('audio_chunk') === audio) faults.push(`socket ${i} does not speak`);
        answers.merge(socket.counts);
        answers.merge(socket.errors);
        socket.close();
      }),
    );
  }
}

/** The same, and reads nothing until the end. */
export class UnreadTextAttack extends TextAttack {
  override async begin(): Promise<void> {
    await super.begin();
    for (const socket of this.sockets) socket.pause();
  }

  protected override ended(): Promise<void> {
    for (const socket of this.sockets) socket.resume();
    return super.ended();
  }
}

/** Of one socket: what was sent must be answered once, and flushes in their order. */
class FrameSocket {
  readonly #connection: SocketConnection;
  /** Frames that are answered by one message each. */
  #asked = 0;
  #flushes = 0;
  #answeredFlushes = 0;
  fault: string | null = null;

  constructor({ key, port }: Target) {
    this.#connection = new SocketConnection(
      { port, key },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => (this.fault ??= error.message),
      },
    );
  }

  get answered(): number {
    return this.#connection.messages;
  }

  get unanswered(): number {
    return this.#asked - this.#connection.messages;
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  write(voice: string, count: number): void {
    const frames: Buffer[] = [];
    for (let i = 0; i < count; i++) {
      const context_id = `c${this.#asked}`;
      frames.push(
        pingFrame,
        encodeMessage({ flush: true, flush_id: `f${this.#flushes++}`, context_id: 'nobody' }),
        brokenFrame,
        encodeStart({ voice, format: encoderFormat }, context_id),
        encodeMessage({ cancel_context: true, context_id }),
      );
      this.#asked += 4;
    }
    this.#connection.write(Buffer.concat(frames));
  }

  close(): void {
    this.#connection.close();
  }

  #onMessage(json: string): void {
    const id = /"flush_id":"f(\d+)"/.exec(json)?.[1];
    if (id !== undefined && Number(id) !== this.#answeredFlushes++)
      this.fault ??= `flush ${id} was answered in the place of ${this.#answeredFlushes - 1}`;
  }
}

const pingFrame = encodeFrame(Buffer.alloc(0), { opcode: opcodes.ping });
/** Its encoder is costly to make. */
const encoderFormat = defaultCodecFormat('mp3');
const brokenFrame = encodeFrame(Buffer.from('{'), { opcode: opcodes.text });
const burst = 100;
/** So that the end does not have to wait for long. */
const unansweredMax = 4_000;

/** Sends small frames as fast as they are read. */
export class FramesAttack extends Attack {
  #sockets: FrameSocket[] = [];

  async begin(): Promise<void> {
    this.#sockets = Array.from({ length: socketCount }, () => new FrameSocket(this.target));
    await Promise.all(this.#sockets.map((socket) => socket.opened()));
    this.loop(socketCount, async (i) => {
      const socket = this.#sockets[i]!;
      if (socket.fault === null && socket.unanswered < unansweredMax) socket.write(this.target.voice, burst);
      await sleep(1);
    });
  }

  protected override async ended(): Promise<void> {
    const endMs = performance.now() + answerMsMax;
    while (performance.now() < endMs && this.#sockets.some(({ unanswered }) => unanswered > 0))
      await sleep(20);
    for (const [i, socket] of this.#sockets.entries()) {
      const { answered, fault, unanswered } = socket;
      if (fault !== null) this.faults.push(`socket ${i}: ${fault}`);
      if (unanswered !== 0) this.faults.push(`socket ${i}: ${unanswered} frames without an answer`);
      this.answers.add('frame', answered);
      socket.close();
    }
  }
}
