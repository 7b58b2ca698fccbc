/** Someone who listens over HTTP, and looks at each page and word of it. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { OggPages } from '../../rig-old/ogg-pages.js';
import { Playback } from './playback.js';
import type { NeighboursPlan } from './report.js';

interface StreamRecord {
  readonly type: string;
  readonly audio_chunk?: string;
  readonly words?: readonly string[];
  readonly end_seconds?: readonly number[];
}

export interface NeighbourParts {
  readonly plan: NeighboursPlan;
  readonly name: string;
  readonly nextText: () => string;
  /** From 0, below 1. */
  readonly random: () => number;
  readonly onUtterance: () => void;
  readonly onFault: (what: string) => void;
  /** A failure that a client sees for what it is. */
  readonly onFailure: (what: string) => void;
}

/** What a page may end short of its words: what an encoder looks ahead, and rounding. */
const lookaheadMs = 20;
/** When it has less than this to hear, it asks again. */
const aheadMsMin = 200;

export class StreamNeighbour {
  readonly playback = new Playback();
  readonly #parts: NeighbourParts;
  #request: ClientRequest | null = null;
  #isEnding = false;

  constructor(parts: NeighbourParts) {
    this.#parts = parts;
  }

  get isOver(): boolean {
    return this.#isEnding && this.#request === null;
  }

  tick(nowMs: number): void {
    this.playback.tick(nowMs);
    if (this.#request === null && !this.#isEnding && this.playback.aheadMs(nowMs) < aheadMsMin) this.#ask();
  }

  /** What is spoken is heard to its end. */
  end(): void {
    this.#isEnding = true;
  }

  close(): void {
    this.#isEnding = true;
    if (this.#request === null) return;
    this.#fault('never came to its end');
    this.#request.destroy();
  }

  #ask(): void {
    const { plan, nextText } = this.#parts;
    const text = nextText();
    const body = JSON.stringify({
      text,
      voice: plan.voice,
      timestamps: true,
      response_format: { encoding: 'opus', sample_rate: 24_000, bitrate: 64 },
    });
    this.playback.asked(performance.now());
    const asked = request({
      host: '127.0.0.1',
      port: plan.port,
      method: 'POST',
      path: '/v1/tts/stream',
      // A kept connection may be closed at the very moment in which it is used again.
      agent: false,
      headers: {
        'x-api-key': plan.key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
    this.#request = asked;
    asked.on('error', (error) => {
      if (!isAnswered && this.#request === asked) this.#fault(`the connection broke: ${error.message}`);
    });
    let isAnswered = false;
    asked.on('close', () => {
      if (isAnswered || this.#request !== asked) return;
      this.#fault('the connection was closed before an answer');
      this.#over();
    });
    asked.on('response', (response) => {
      isAnswered = true;
      this.#listen(response, text.split(' '));
    });
    asked.end(body);
  }

  #listen(response: IncomingMessage, words: string[]): void {
    const pages = new OggPages();
    let pending = '';
    let endSeconds = 0;
    const { statusCode = 0 } = response;
    if (statusCode >= 500) this.#parts.onFailure(`${this.#parts.name}: answered ${String(statusCode)}`);
    else if (statusCode !== 200) this.#fault(`answered ${String(statusCode)}`);
    const onRecord = (record: StreamRecord): void => {
      if (record.audio_chunk !== undefined) {
        const fault = pages.push(Buffer.from(record.audio_chunk, 'base64'));
        if (fault !== null) this.#fault(fault);
        this.playback.audio(performance.now(), pages.durationMs);
      }
      for (const word of record.words ?? []) {
        const expected = words.shift();
        if (word !== expected) this.#fault(`the word "${word}" comes where "${expected ?? 'none'}" must be`);
      }
      endSeconds = record.end_seconds?.at(-1) ?? endSeconds;
    };
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      const records = (pending + text).split('\n\n');
      pending = records.pop() ?? '';
      if (response.statusCode !== 200) return;
      for (const record of records) {
        if (record.startsWith('data: ')) onRecord(JSON.parse(record.slice('data: '.length)) as StreamRecord);
        else this.#fault(`no record: ${record.slice(0, 80)}`);
      }
    });
    response.on('error', () => undefined);
    response.on('close', () => {
      if (!response.complete) this.#parts.onFailure(`${this.#parts.name}: the stream was cut`);
      else if (response.statusCode === 200) {
        if (pending !== '') this.#fault('the stream ended inside a record');
        if (words.length > 0) this.#fault(`${String(words.length)} words are lost`);
        if (!pages.isComplete) this.#fault('the end of the audio is lost');
        if (pages.durationMs < endSeconds * 1000 - lookaheadMs) this.#fault('audio ends before its words');
      }
      this.#over();
    });
  }

  #over(): void {
    if (this.#request === null) return;
    this.#request = null;
    this.playback.ended();
    this.#parts.onUtterance();
  }

  #fault(what: string): void {
    this.#parts.onFault(`${this.#parts.name}: ${what}`);
  }
}
