/** Independent decoders: functions from a file to its samples. They throw what the program writes to standard error. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Encoding } from '../../src/api/formats.js';

export interface Decoder {
  readonly program: string;
  /** Options of ffmpeg for the file. */
  readonly input?: readonly string[];
  /** @param path of the file; a file beside it with a longer name may be overwritten */
  decode(path: string): Int16Array;
}

/** A file for a decoder. */
export interface Decoding {
  readonly decoder: Decoder;
  readonly path: string;
}

const run = (program: string, args: readonly string[]): Buffer => {
  const { status, stdout, stderr, error } = spawnSync(program, args, { maxBuffer: 2 ** 30 });
  if (error !== undefined) throw error;
  const complaint = stderr.toString().trim();
  if (status !== 0 || complaint !== '')
    throw new Error(`${program} ${args.join(' ')}: ${status} ${complaint}`);
  return stdout;
};

const asSamples = (bytes: Buffer): Int16Array =>
  new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~1)));

const decodedPath = (path: string): string => `${path}.ffmpeg`;

const runFfmpeg = (files: readonly Pick<Decoding, 'path'>[], inputs: readonly string[]): Int16Array[] => {
  const outputs = files.flatMap(({ path }, i) => ['-map', String(i), '-f', 's16le', decodedPath(path)]);
  run('ffmpeg', ['-v', 'error', '-y', ...inputs, ...outputs]);
  return files.map(({ path }) => asSamples(readFileSync(decodedPath(path))));
};

const ffmpeg = (...input: readonly string[]): Decoder => ({
  program: 'ffmpeg',
  input,
  decode: (path) => runFfmpeg([{ path }], [...input, '-i', path])[0]!,
});

/** Decodes many files. ffmpeg takes a third of a second to start, so one process decodes all of its files. */
export const decodeAll = (wanted: readonly Decoding[]): Int16Array[] => {
  const together = wanted.filter(({ decoder }) => decoder.input !== undefined);
  const inputs = together.flatMap(({ decoder, path }) => [...decoder.input!, '-i', path]);
  const made = together.length === 0 ? [] : runFfmpeg(together, inputs);
  return wanted.map((decoding) => {
    const place = together.indexOf(decoding);
    return place < 0 ? decoding.decoder.decode(decoding.path) : made[place]!;
  });
};

const sox = (...input: readonly string[]): Decoder => ({
  program: 'sox',
  decode: (path) =>
    asSamples(run('sox', ['-V1', ...input, path, '-t', 'raw', '-e', 'signed', '-b', '16', '-L', '-'])),
});

const mpg123: Decoder = {
  program: 'mpg123',
  decode: (path) => asSamples(run('mpg123', ['-q', '-s', path])),
};

const opusdec: Decoder = {
  program: 'opusdec',
  decode: (path) => {
    run('opusdec', ['--quiet', '--no-dither', '--rate', '48000', path, `${path}.pcm`]);
    return asSamples(readFileSync(`${path}.pcm`));
  },
};

/** Two decoders of different origin, but for AAC: only ffmpeg's keeps its rate below 32 kHz. @param sampleRateHz for encodings without a header */
export const decodersOf = (encoding: Encoding, sampleRateHz: number): readonly Decoder[] => {
  const rate = String(sampleRateHz);
  const rawFfmpeg = (format: string) => ffmpeg('-f', format, '-ar', rate, '-ac', '1');
  switch (encoding) {
    case 'mp3':
      return [ffmpeg(), mpg123];
    case 'opus':
      return [ffmpeg(), opusdec];
    case 'mulaw':
      return [rawFfmpeg('mulaw'), sox('-t', 'ul', '-r', rate, '-c', '1')];
    case 'alaw':
      return [rawFfmpeg('alaw'), sox('-t', 'al', '-r', rate, '-c', '1')];
    case 'pcm':
      return [rawFfmpeg('s16le'), sox('-t', 'raw', '-r', rate, '-e', 'signed', '-b', '16', '-L', '-c', '1')];
    case 'aac':
      return [ffmpeg()];
    case 'flac':
      return [ffmpeg(), sox('-t', 'flac')];
    case 'wav':
    case 'linear16':
      return [ffmpeg(), sox('-t', 'wav')];
  }
};
