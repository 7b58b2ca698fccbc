/** Packs of Kokoro and KittenTTS with graphs that echo their inputs, and the inputs that their sound shows. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { closeFiles, type VoicePack } from '../../src/threads/voices.js';
import type { LoadedVoices } from '../../workers/engines/engine.js';
import { kokoro } from '../../workers/engines/kokoro/format.js';
import { loadPacks, readPacks } from '../../workers/engines/registry.js';
import {
  type EchoOptions,
  echoModel,
  echoTable,
  levelOfId,
  unitSamples,
  unitsOfId,
  writeModel,
} from '../../scripts/voices/fixtures/kokoro.js';
import { testMeans } from './voices.js';

export { npzOf } from '../../scripts/voices/fixtures/kokoro.js';

export type PackFiles = Readonly<Record<string, EchoOptions | Buffer | string>>;

/** Writes a pack: models by their options, other files by their content. */
export const writePack = (folder: string, files: PackFiles): void => {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (typeof content === 'string' || Buffer.isBuffer(content)) writeFileSync(path, content);
    else writeModel(path, echoModel(content));
  }
};

export const rawTable = (voice: number, rows = 510): Buffer => {
  const table = echoTable(voice, rows);
  return Buffer.from(table.buffer);
};

/** An array of NumPy that has nothing but its header. */
export const npyWith = (header: string): Buffer => {
  const start = Buffer.from('\x93NUMPY\x02\x00....', 'latin1');
  start.writeUInt32LE(header.length, 8);
  return Buffer.concat([start, Buffer.from(header, 'latin1')]);
};

/** Reads a pack of that name. @throws {VoicePackError} */
export const readPack = async (t: Test, files: PackFiles, name = 'pack') => {
  const modelsDir = mkdtempSync(join(tmpdir(), 'syrinx-kokoro-'));
  t.teardown(() => rmSync(modelsDir, { recursive: true }));
  writePack(join(modelsDir, name), files);
  const read = await readPacks({ modelsDir, cacheDir: join(modelsDir, '.cache') }, [kokoro]);
  t.teardown(() => closeFiles(read.files));
  return read.packs[0]!;
};

export const load = (pack: VoicePack): Promise<LoadedVoices> => loadPacks([pack], testMeans, [kokoro]);

/** The inputs of a run of the graph. */
export interface Heard {
  readonly ids: readonly number[];
  /** Levels of the style's first two numbers, and of the speed. */
  readonly row: number;
  readonly voice: number;
  readonly speed: number;
  /** Samples of the ids, in order. */
  readonly starts: readonly number[];
}

const levelsAt = (pcm: Int16Array, unit: number): number[] =>
  [0, 1, 2, 3].map((level) => pcm[unit * unitSamples + ((2 * level + 1) * unitSamples) / 8]! / 32_767);

/** Reads the inputs of the graph from its sound, at speed 1. */
export const heardIn = (pcm: Int16Array): Heard => {
  const ids: number[] = [];
  const starts: number[] = [];
  const [, row = 0, voice = 0, speed = 0] = levelsAt(pcm, 0);
  for (let unit = 0; (unit + 1) * unitSamples <= pcm.length;) {
    const [level = 0] = levelsAt(pcm, unit);
    // The silence after the speech.
    if (level < levelOfId(0) / 2) break;
    const id = Math.round((level - levelOfId(0)) * 400);
    ids.push(id);
    starts.push(unit * unitSamples);
    unit += unitsOfId(id);
  }
  return {
    ids,
    row: Math.round((row - 0.1) * 1000),
    voice: Math.round((voice - 0.1) * 5000) / 100,
    speed: Math.round(speed * 400) / 100,
    starts,
  };
};
