/** Entry of the process that tries a voice pack: reads a line with its order from standard input, and answers in one. */
import { readSync } from 'node:fs';
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { GpuState } from '../src/threads/gpu.js';
import { unguarded } from '../src/threads/vitals.js';
import { type VoicePack, closeFiles } from '../src/threads/voices.js';
import type { EngineMeans } from './engines/engine.js';
import { firstLine } from './engines/entries.js';
import { derivedIn, loadPacks, meansOf, readEntry } from './engines/registry.js';
import { Weighing, inMiB, peakBytes, restartPeak } from './engines/weighing.js';
import { chunksOf, sampleOf } from './engines/steps.js';
import type { TrialOrder, TrialOutcome } from './engines/trial.js';

/** A sound whose loudest sample is below this is silence: -60 dB of full scale. */
const audible = 33;

const NEWLINE = 0x0a;

/** The niceness of synthesis threads. */
const lowPriority = 10;

/** Loads the pack and speaks a sentence with its first voice. */
const measure = async (pack: VoicePack, means: EngineMeans): Promise<TrialOutcome> => {
  const startedMs = performance.now();
  const weighing = new Weighing(pack);
  const engine = await loadPacks([pack], { ...means, weigh: weighing.weigh });
  const loadMs = performance.now() - startedMs;
  const sample = sampleOf(pack);
  if (sample === null) return { fault: 'it has no voice' };
  // What the load left behind would hide what the segment takes.
  globalThis.gc?.();
  const baseBytes = restartPeak();
  const segment = engine.open(sample);
  let samples = 0;
  let loudest = 0;
  let firstChunkMs = 0;
  let stepMsMax = 0;
  let samplesMax = 0;
  const speakingMs = performance.now();
  let stepMs = speakingMs;
  for await (const { pcm } of chunksOf(segment)) {
    stepMsMax = Math.max(stepMsMax, performance.now() - stepMs);
    if (samples === 0) firstChunkMs = performance.now() - speakingMs;
    samples += pcm.length;
    samplesMax = Math.max(samplesMax, pcm.length);
    for (const sample of pcm) loudest = Math.max(loudest, Math.abs(sample));
    stepMs = performance.now();
  }
  if (loudest < audible)
    return {
      fault:
        'it makes only silence, or samples that are not numbers: exports in 16 bits do that on some machines, ' +
        'so use the one in 32 or 8 bits',
    };
  const longest = engine.voices[0]?.longStep?.speechMs ?? 0;
  const scale = Math.max(1, longest / ((1000 * samplesMax) / segment.sampleRateHz));
  const round = (value: number, digits = 0) => Number(value.toFixed(digits));
  return {
    graphs: Object.fromEntries(engine.graphs ?? []),
    result: {
      loadMs: round(loadMs),
      firstChunkMs: round(firstChunkMs, 1),
      stepMsMax: round(stepMsMax, 1),
      realTimeFactor: round((performance.now() - speakingMs) / ((1000 * samples) / segment.sampleRateHz), 3),
      peakMiB: round(process.resourceUsage().maxRSS / 1024),
      loadMiB: inMiB(weighing.loadBytes),
      runMiB: inMiB(scale * Math.max(0, peakBytes() - baseBytes)),
    },
  };
};

const answer = async ({
  entry,
  cacheDir,
  gpu,
  bounds,
  hasLowPriority,
}: TrialOrder): Promise<TrialOutcome> => {
  if (hasLowPriority) setPriority(lowPriority);
  const files: number[] = [];
  try {
    const { pack } = await readEntry(entry, derivedIn(cacheDir), files);
    const means = meansOf(
      {
        ...{ executionProvider: gpu?.executionProvider ?? 'cpu', logLevel: 'silent', bounds },
        ...(gpu !== undefined && { gpu: { ...gpu, state: new GpuState().buffer } }),
      },
      unguarded,
    );
    return await measure(pack, means);
  } catch (error) {
    // Its message can quote no more than the sample sentence.
    return { fault: firstLine(error) };
  } finally {
    closeFiles(files);
  }
};

/** Not by `process.stdin`: the other thread reads on. */
const readOrder = (): TrialOrder => {
  const parts: Buffer[] = [];
  for (let isWhole = false; !isWhole;) {
    const part = Buffer.alloc(64 * 1024);
    const bytes = readSync(0, part);
    if (bytes === 0) process.exit(1);
    parts.push(part.subarray(0, bytes));
    isWhole = part[bytes - 1] === NEWLINE;
  }
  return JSON.parse(Buffer.concat(parts).toString()) as TrialOrder;
};

process.env['ORT_DISABLE_TELEMETRY'] = '1';
const order = readOrder();
new Worker(new URL('./trial-end.js', import.meta.url));
const outcome = await answer(order);
process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0));
