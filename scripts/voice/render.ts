/**
 * Speaks with the service's own engine, without the service, for the voice's measurements.
 *
 * JSON lines on standard input: `{"id", "voice", "text", "temperature"?, "seed"?, "out", "f32"?, "long"?,
 * "uncut"?, "early"?}`. For each it writes the wave file `out` (and `f32`, the samples before they are rounded to 16 bits) and
 * answers with one line `{"id", "samples", "words": [{"word", "startSample", "endSample"}], "phones": [{"phone",
 * "startSample", "endSample"}], "seams", "chunks", "firstChunkMs", "computeMs", "loadMs"}`, where `seams` are the samples at
 * which a new segment begins, and `chunks` those at which another chunk of the same segment does. `long` makes the chunks of
 * whole files, `uncut` makes one segment of the text, `early` cuts it as that of a WebSocket. MODELS_DIR and
 * EXECUTION_PROVIDER are those of the service.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import typia from 'typia';
import { readConfig } from '../../src/config.js';
import { unguarded } from '../../src/threads/vitals.js';
import { closeFiles } from '../../src/threads/voices.js';
import { limits } from '../../src/limits.js';
import { Segmenter } from '../../src/text/segments.js';
import { joinFloats, toInt16 } from '../../workers/engines/pcm.js';
import { meansOf, readPacks } from '../../workers/engines/registry.js';
import { SyrinxEngine } from '../../workers/engines/syrinx/engine.js';
import type { SyrinxData } from '../../workers/engines/syrinx/manifest.js';
import { deviceData } from '../device.js';
import { settingsOf } from '../../src/api/speech-settings.js';

interface Item {
  readonly id: string;
  readonly voice: string;
  readonly text: string;
  readonly temperature?: number;
  readonly seed?: number;
  readonly out: string;
  readonly f32?: string;
  readonly long?: boolean;
  readonly uncut?: boolean;
  readonly early?: boolean;
}

interface Word {
  word: string;
  startSample: number;
  endSample: number;
}

interface Phone {
  readonly phone: string;
  readonly startSample: number;
  readonly endSample: number;
}

interface Speech {
  readonly pcm: Float32Array;
  readonly words: Word[];
  readonly phones: Phone[];
  readonly seams: number[];
  readonly chunks: number[];
  readonly firstChunkMs: number;
  readonly computeMs: number;
}

const silentLog = { debug: () => {}, warn: (...line: unknown[]) => console.error(...line) };

const waveHeader = (samples: number, sampleRateHz: number): Buffer => {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + 2 * samples, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(2 * sampleRateHz, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(2 * samples, 40);
  return header;
};

interface Voices {
  readonly engine: SyrinxEngine;
  /** Names in id order. */
  readonly phones: readonly string[];
}

const speak = async ({ engine, phones: names }: Voices, item: Item): Promise<Speech> => {
  const bound = item.text.length;
  const segmenter =
    item.uncut === true
      ? new Segmenter({ firstSegmentCharactersMax: bound, segmentCharactersMax: bound })
      : new Segmenter(limits, item.early === true);
  const segments = [...segmenter.push(item.text), ...segmenter.end()].filter(({ speak: spoken }) => spoken);
  const parts: Float32Array[] = [];
  const words: Word[] = [];
  const phones: Phone[] = [];
  const seams: number[] = [];
  const chunks: number[] = [];
  let samples = 0;
  let continues = false;
  let firstChunkMs = 0;
  const start = performance.now();
  for (const [place, segment] of segments.entries()) {
    const seed = item.seed ?? 1;
    const request = {
      ...segment,
      settings: settingsOf({ voiceId: item.voice, temperature: item.temperature }),
      seed: seed + place,
      utteranceSeed: seed,
      ...(item.long === true && { begins: 'longest' as const }),
    };
    const synthesis = engine.open(request);
    const segmentStart = samples;
    if (segmentStart > 0) seams.push(segmentStart);
    for (;;) {
      const chunk = await synthesis.stepFloat();
      if (chunk === null) break;
      firstChunkMs ||= performance.now() - start;
      if (samples > segmentStart) chunks.push(samples);
      for (const { word, startSample, endSample } of chunk.words) {
        const { start: from, end: to } = segment.words[word]!;
        const text = segment.text.slice(from, to);
        const last = words.at(-1);
        if (continues && word === 0 && last !== undefined) {
          last.word += text;
          last.endSample = segmentStart + endSample;
        } else
          words.push({
            word: text,
            startSample: segmentStart + startSample,
            endSample: segmentStart + endSample,
          });
      }
      parts.push(chunk.pcm);
      samples += chunk.pcm.length;
    }
    for (const { id, start: from, end: to } of synthesis.phones)
      phones.push({ phone: names[id]!, startSample: segmentStart + from, endSample: segmentStart + to });
    continues = segment.tokenContinues;
  }
  const computeMs = performance.now() - start;
  return { pcm: joinFloats(parts), words, phones, seams, chunks, firstChunkMs, computeMs };
};

const packageRoot = (): string => {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
};

const config = readConfig({
  MODELS_DIR: join(packageRoot(), 'models'),
  ...process.env,
});
const { dataDir, modelsDir } = config;
const device = await deviceData(config);
const loadStart = performance.now();
const { packs, files } = await readPacks({ modelsDir, cacheDir: join(dataDir, 'voices') });
const loaded: Voices[] = [];
const means = {
  ...meansOf({ ...device, logLevel: 'warn', bounds: limits }, unguarded),
  log: silentLog,
};
for (const pack of packs)
  if (pack.engine === 'syrinx')
    loaded.push({
      engine: await SyrinxEngine.load(pack, means),
      phones: (pack.data as SyrinxData).manifest.phones,
    });
closeFiles(files);
const loadMs = performance.now() - loadStart;

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  const item = typia.json.assertParse<Item>(line);
  const voices = loaded.find(({ engine }) => engine.voices.some(({ id }) => id === item.voice));
  if (voices === undefined) throw new Error(`unknown voice "${item.voice}"`);
  const { pcm, ...speech } = await speak(voices, item);
  const { sampleRateHz } = voices.engine.voices[0]!;
  const samples = toInt16(pcm);
  const bytes = new Uint8Array(samples.buffer);
  await writeFile(item.out, Buffer.concat([waveHeader(samples.length, sampleRateHz), bytes]));
  if (item.f32 !== undefined) await writeFile(item.f32, new Uint8Array(pcm.buffer));
  const answer = { id: item.id, samples: samples.length, ...speech, loadMs };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
