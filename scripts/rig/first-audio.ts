/** First audio as a client has it: when its bytes came, and what a decoder makes of them. */
import { spawnSync } from 'node:child_process';
import type { AudioFormat } from '../../src/api/formats.js';
import { RecordReader } from './http.js';

/** Encoded audio. */
export interface Arrival {
  /** Since the request. */
  readonly atMs: number;
  readonly bytes: Buffer;
}

/** The three figures, in milliseconds since the request; scripts/deploy/metrics.md defines them. */
export interface FirstAudio {
  readonly byteMs: number;
  readonly decodedMs: number;
  readonly audibleMs: number;
}

export interface Decoder {
  readonly sampleRateHz: number;
  /** Samples that it makes before those of the speech. */
  readonly delaySamples: number;
  /** @param bytes of a stream from its start, up to the end of a frame */
  decode(bytes: Buffer): Int16Array;
}

/** -50 dBFS. */
const audibleMin = 32_768 * 10 ** (-50 / 20);
/** LAME's 576 samples and the 529 of every decoder. */
const mp3DelaySamples = 1_105;
const opusHz = 48_000;

const asSamples = (bytes: Buffer): Int16Array =>
  new Int16Array(Uint8Array.from(bytes).buffer, 0, bytes.length >> 1);

const ffmpeg = (container: string) => (bytes: Buffer) =>
  asSamples(
    spawnSync('ffmpeg', ['-v', 'quiet', '-f', container, '-i', '-', '-f', 's16le', '-'], { input: bytes })
      .stdout,
  );

const isFfmpegThere = (): boolean => spawnSync('ffmpeg', ['-version']).status === 0;

/** @returns `null` if nothing here decodes the format: without ffmpeg, only pcm can be decoded */
export const decoderOf = ({ encoding, sampleRateHz }: AudioFormat): Decoder | null => {
  if (encoding === 'pcm') return { sampleRateHz, delaySamples: 0, decode: asSamples };
  if ((encoding !== 'mp3' && encoding !== 'opus') || !isFfmpegThere()) return null;
  return encoding === 'mp3'
    ? { sampleRateHz, delaySamples: mp3DelaySamples, decode: ffmpeg('mp3') }
    : { sampleRateHz: opusHz, delaySamples: 0, decode: ffmpeg('ogg') };
};

/**
 * What a listener hears who decodes all that has come and plays from the first sample on.
 *
 * @returns `null` if there is no audible sample in it
 */
export const heardFirst = (
  arrivals: readonly Arrival[],
  decoder: Decoder,
): Omit<FirstAudio, 'byteMs'> | null => {
  const msPerSample = 1_000 / decoder.sampleRateHz;
  let bytes = Buffer.alloc(0);
  let decodedSamples = 0;
  let decodedMs: number | undefined;
  let dryMs = 0;
  for (const arrival of arrivals) {
    bytes = Buffer.concat([bytes, arrival.bytes]);
    const samples = decoder.decode(bytes);
    if (samples.length > decoder.delaySamples) decodedMs ??= arrival.atMs;
    const playMs = Math.max(dryMs, arrival.atMs);
    const audible = samples.subarray(decodedSamples).findIndex((sample) => Math.abs(sample) > audibleMin);
    if (audible >= 0)
      return { decodedMs: decodedMs ?? arrival.atMs, audibleMs: playMs + audible * msPerSample };
    dryMs = playMs + (samples.length - decodedSamples) * msPerSample;
    decodedSamples = samples.length;
  }
  return null;
};

/** Watches one response of `POST /v1/tts/stream` as its bytes come. */
export class FirstAudioProbe {
  readonly #decoder: Decoder;
  readonly #arrivals: Arrival[] = [];
  readonly #reader = new RecordReader();
  #byteMs: number | undefined;

  constructor(decoder: Decoder) {
    this.#decoder = decoder;
  }

  /** @param piece of the body, valid only during the call */
  push(piece: Buffer, atMs: number): void {
    this.#byteMs ??= atMs;
    for (const record of this.#reader.push(piece)) {
      const { audio_chunk: audio } = JSON.parse(record.slice('data: '.length)) as { audio_chunk?: string };
      if (audio !== undefined) this.#arrivals.push({ atMs, bytes: Buffer.from(audio, 'base64') });
    }
  }

  /** Decodes what has come. @returns `null` if nothing of it can be heard */
  figures(): FirstAudio | null {
    const heard = heardFirst(this.#arrivals, this.#decoder);
    return heard === null || this.#byteMs === undefined ? null : { byteMs: this.#byteMs, ...heard };
  }
}
