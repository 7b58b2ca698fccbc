/** Checks one response over HTTP as it arrives: records, raw samples, or a whole result. */
import type { AudioFormat } from '../../src/api/formats.js';
import { codePointCount } from '../../src/text/code-points.js';
import { createAudioCheck, createFileCheck } from './audio-check.js';
import { ContextCheck, type ContextCheckParts } from './context-check.js';
import { RecordReader } from './http.js';
import type { WordTimes } from './socket.js';

export interface CheckedAnswerParts extends Omit<ContextCheckParts, 'audio'> {
  /** `events` are those of OpenAI. */
  readonly kind: 'records' | 'events' | 'samples' | 'whole';
  readonly format: AudioFormat;
  readonly text: string;
  /** Audio arrived; `durationMs` is all of the response so far. */
  readonly onAudio: (durationMs: number) => void;
}

type StreamRecord =
  | { readonly type: 'audio'; readonly audio_chunk: string }
  | ({ readonly type: 'timestamps' } & WordTimes)
  | { readonly type: 'speech.audio.delta'; readonly audio: string }
  | { readonly type: 'speech.audio.done'; readonly usage: { readonly total_tokens: number } };

interface WholeResult {
  readonly audio: string;
  readonly timestamps?: WordTimes | null;
}

const prefix = 'data: ';
const flushId = 'end';

export class CheckedAnswer {
  /** Records so far. */
  records = 0;
  readonly #parts: CheckedAnswerParts;
  readonly #check: ContextCheck;
  readonly #reader = new RecordReader();
  /** Of samples: half of one. */
  #rest: Buffer = Buffer.alloc(0);
  readonly #whole: Buffer[] = [];
  #isDone = false;

  constructor(parts: CheckedAnswerParts) {
    this.#parts = parts;
    const audio = parts.kind === 'whole' ? createFileCheck(parts.format) : createAudioCheck(parts.format);
    this.#check = new ContextCheck({ ...parts, audio });
    this.#check.onFrame({ context_started: {} });
    this.#check.text(parts.text);
    this.#check.flush(flushId);
  }

  /** @param bytes copied where they are kept */
  push(bytes: Buffer): void {
    switch (this.#parts.kind) {
      case 'records':
      case 'events':
        for (const record of this.#reader.push(bytes)) this.#onRecord(record);
        return;
      case 'samples':
        this.#rest = this.#pushSamples(Buffer.concat([this.#rest, bytes]));
        return;
      case 'whole':
        this.#whole.push(Buffer.from(bytes));
    }
  }

  /** The body has ended. */
  end(): void {
    if (this.#parts.kind === 'whole') this.#checkWhole(Buffer.concat(this.#whole));
    else if (!this.#reader.isWhole || this.#rest.length > 0) this.#fault('the body ends within a record');
    else if (this.#parts.kind === 'events' && !this.#isDone) this.#fault('the last event is missing');
    this.#check.onFrame({ flush_completed: true, flush_id: flushId });
    this.#check.ended();
  }

  #pushSamples(bytes: Buffer): Buffer {
    // The last byte may be half a sample.
    const whole = bytes.length - (bytes.length % 2);
    if (whole > 0) this.#onAudio(bytes.toString('base64', 0, whole));
    return bytes.subarray(whole);
  }

  #checkWhole(body: Buffer): void {
    const result = this.#parsed(body.toString()) as WholeResult | null;
    if (result === null) return;
    const { audio, timestamps = null } = result;
    if (timestamps !== null) this.#check.onFrame({ timestamps });
    this.#onAudio(audio);
  }

  #onRecord(text: string): void {
    this.records++;
    if (!text.startsWith(prefix)) {
      this.#fault(`no record: ${text.slice(0, 100)}`);
      return;
    }
    const record = this.#parsed(text.slice(prefix.length)) as StreamRecord | null;
    if (record === null) return;
    if (this.#isDone) this.#fault('an event comes after the last');
    switch (record.type) {
      case 'audio':
        this.#onAudio(record.audio_chunk);
        return;
      case 'timestamps':
        this.#check.onFrame({ timestamps: record });
        return;
      case 'speech.audio.delta':
        this.#onAudio(record.audio);
        return;
      case 'speech.audio.done': {
        this.#isDone = true;
        const characters = codePointCount(this.#parts.text);
        if (record.usage.total_tokens !== characters)
          this.#fault(`${record.usage.total_tokens} of ${characters} characters are counted`);
      }
    }
  }

  #onAudio(base64: string): void {
    this.#check.onFrame({ audio_chunk: base64 });
    this.#parts.onAudio(this.#check.durationMs);
  }

  #parsed(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      this.#fault(`no JSON: ${json.slice(0, 100)}`);
      return null;
    }
  }

  #fault(what: string): void {
    this.#parts.onFault('frames', what);
  }
}
