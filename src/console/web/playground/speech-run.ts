/** One request for speech: sends it, decodes and plays the audio, and keeps it for replay and download. */
import type { AudioFormat, Encoding } from '../../../api/formats.js';
import { call, CallError, jsonBody } from '../call.js';
import { formatSeconds } from '../format.js';
import { saveFile } from '../parts/copy.js';
import { riffHeaderBytes } from './decoder.js';
import { speechOf } from './problems.js';
import { Track, type AudioOutput } from './track.js';
import { decodeBase64, recordsOf, wordsOf, type Word } from './wire.js';

const files: Readonly<Record<Encoding, { readonly extension: string; readonly type: string }>> = {
  mp3: { extension: 'mp3', type: 'audio/mpeg' },
  wav: { extension: 'wav', type: 'audio/wav' },
  pcm: { extension: 'pcm', type: 'application/octet-stream' },
  linear16: { extension: 'wav', type: 'audio/wav' },
  opus: { extension: 'opus', type: 'audio/ogg' },
  mulaw: { extension: 'ulaw', type: 'audio/basic' },
  alaw: { extension: 'alaw', type: 'application/octet-stream' },
  flac: { extension: 'flac', type: 'audio/flac' },
  aac: { extension: 'aac', type: 'audio/aac' },
};

export const extensionOf = (encoding: Encoding): string => files[encoding].extension;

/** A stream does not know its length: its header has no sizes, and `linear16` has a header on each record. */
const riffFile = (parts: readonly Uint8Array<ArrayBuffer>[]): Blob => {
  const [first] = parts;
  if (first === undefined) return new Blob();
  const header = first.slice(0, riffHeaderBytes(first));
  const bodies = parts.map((part) => part.subarray(riffHeaderBytes(part)));
  const bytes = bodies.reduce((sum, body) => sum + body.length, 0);
  const view = new DataView(header.buffer);
  view.setUint32(4, header.length - 8 + bytes, true);
  view.setUint32(header.length - 4, bytes, true);
  return new Blob([header, ...bodies], { type: files.wav.type });
};

export type RunState =
  /** The request is sent. */
  | 'asking'
  | 'receiving'
  /** All of it has arrived. */
  | 'complete'
  /** Stopped by the user. */
  | 'stopped'
  | 'failed';

export interface SpeakQuestion {
  readonly accountId: number;
  /** A body of POST /v1/tts/stream. */
  readonly request: Readonly<Record<string, unknown>>;
}

let runs = 0;

export class SpeechRun {
  /** From 1, in the order of the requests. */
  readonly number = ++runs;
  readonly question: SpeakQuestion;
  readonly format: AudioFormat;
  readonly track: Track;
  readonly words: Word[] = [];
  readonly #onChange: () => void;
  /** Encoded, as received. */
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  readonly #aborter = new AbortController();
  readonly #startMs = performance.now();
  state: RunState = 'asking';
  problem: string | null = null;
  /** From the request to the first byte of the answer. */
  firstByteMs: number | null = null;

  /** Starts at once. @param onChange called when the page must be drawn again */
  constructor(question: SpeakQuestion, format: AudioFormat, output: AudioOutput, onChange: () => void) {
    this.question = question;
    this.format = format;
    this.#onChange = onChange;
    this.track = new Track(format, output, onChange);
    void this.#receive();
  }

  get text(): string {
    return String(this.question.request['text']);
  }

  /** From the request to the first sample that one can hear. */
  get firstAudibleMs(): number | null {
    const { audibleAtMs } = this.track;
    return audibleAtMs === null ? null : audibleAtMs - this.#startMs;
  }

  get isReceiving(): boolean {
    return this.state === 'asking' || this.state === 'receiving';
  }

  get hasAudio(): boolean {
    return this.#parts.length > 0;
  }

  /** Gives the browser a file with the audio so far, in the requested format. */
  download(name: string): void {
    const { encoding } = this.format;
    const isRiff = encoding === 'wav' || encoding === 'linear16';
    const file = isRiff ? riffFile(this.#parts) : new Blob(this.#parts, { type: files[encoding].type });
    saveFile(`${name}.${extensionOf(encoding)}`, file);
  }

  /** Barge-in: ends the request and falls silent at once. Idempotent. */
  stop(): void {
    if (this.isReceiving) this.state = 'stopped';
    this.#aborter.abort();
    this.track.cut();
    this.track.stop();
    this.#onChange();
  }

  /** Idempotent. */
  close(): void {
    this.stop();
    this.track.close();
  }

  async #receive(): Promise<void> {
    try {
      const { accountId, request } = this.question;
      const { signal } = this.#aborter;
      const path = `/api/v1/tts/stream?accountId=${accountId}`;
      const response = await speechOf(path, { ...jsonBody(JSON.stringify(request)), signal });
      this.state = 'receiving';
      this.#onChange();
      for await (const record of recordsOf(response.body!)) {
        this.firstByteMs ??= performance.now() - this.#startMs;
        if (record.type === 'timestamps') this.words.push(...wordsOf(record));
        else {
          const bytes = decodeBase64(record.audio_chunk);
          this.#parts.push(bytes);
          this.track.push(bytes);
        }
        this.#onChange();
      }
      await this.track.complete();
      this.#end('complete');
    } catch (error) {
      await this.track.complete().catch(() => undefined);
      if (this.isReceiving) this.#end('failed', await this.#brokenOff(error));
      // The rest of an invalid stream is not needed.
      this.#aborter.abort();
    }
  }

  async #brokenOff(error: unknown): Promise<string> {
    if (error instanceof CallError) return error.message;
    if (error instanceof DOMException && error.name === 'EncodingError')
      return 'This browser cannot decode the audio. Choose pcm as the format and speak again.';
    const account = await call('account', { accountId: this.question.accountId }).catch(() => null);
    const cause =
      account !== null && account.suspendedAtMs !== null
        ? 'The account was suspended. It speaks again when an operator resumes it.'
        : 'The connection was lost, or the service ended. Speak again to hear the rest.';
    const seconds = formatSeconds(this.track.receivedSeconds * 1_000);
    return `The speech broke off after ${seconds} s. ${cause} You can play and download this part.`;
  }

  #end(state: RunState, problem: string | null = null): void {
    // The user stopped it, so a broken stream is not a fault.
    if (!this.isReceiving) return;
    this.state = state;
    this.problem = problem;
    this.#onChange();
  }
}
