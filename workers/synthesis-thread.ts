/**
 * What a synthesis thread does, whatever its engine: takes jobs, turns between them step by step, and posts each
 * step's chunk straight to the actor thread of its context.
 */
import { MessageChannel, parentPort, threadId, type MessagePort } from 'node:worker_threads';
import { faultPlace } from '../src/fault.js';
import { JobControl } from '../src/threads/control.js';
import type {
  ChunkMail,
  SynthesisControl,
  SynthesisEffort,
  SynthesisHello,
  SynthesisJob,
  SynthesisResult,
  SynthesisThreadData,
} from '../src/threads/messages.js';
import { Vitals, type NativeGuard } from '../src/threads/vitals.js';
import { monotonicMs } from '../src/monotonic.js';
import { nameThread } from '../src/thread-name.js';
import type { EngineChunk, LoadedVoices, SegmentSynthesis } from './engines/engine.js';
import { Turns } from './turns.js';

/** Milliseconds between attempts to load the voices; a thread that cannot load stays, as piscina does not replace it. */
const LOAD_RETRY_MS = 1_000;

/** Of a load: it names a file, and no text was there to be quoted. */
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Milliseconds between looks for a port that a job needs and that has not come yet. */
const PORT_RETRY_MS = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Loads the engine, reports to the front thread, and returns the job handler that piscina calls.
 * @param load may reject: the front thread is told why, and it is tried again. All native code that it and its engine
 *   run goes through the guard
 */
export const serveSynthesis = async (
  data: Pick<SynthesisThreadData, 'control' | 'vitals'>,
  load: (native: NativeGuard) => Promise<LoadedVoices>,
): Promise<(job: SynthesisJob) => Promise<SynthesisResult>> => {
  nameThread('synthesis');
  const control = new JobControl(data.control);
  const vitals = new Vitals(data.vitals);
  vitals.live();
  /** By number of the actor thread. Kept when that dies: what a late job tells it is heard by nobody. */
  const actorPorts = new Map<number, MessagePort>();
  const turns = new Turns();
  const voices = await loadPatiently(() => load(vitals.native), actorPorts);

  const speak = async (job: SynthesisJob): Promise<SynthesisResult> => {
    let port = actorPorts.get(job.actor);
    // Ports keep no common order: a job can come before the port to its actor. If that thread has died the port never
    // comes, but then the job is cancelled.
    while (port === undefined) {
      if (control.isCancelled(job.slot)) return { type: 'cancelled', effort: null };
      await pause(PORT_RETRY_MS);
      port = actorPorts.get(job.actor);
    }
    let synthesis: SegmentSynthesis | undefined;
    let samples = 0;
    let madeMs = 0;
    let effort: SynthesisEffort | null = null;
    for (;;) {
      await turns.enter(() => control.dueMs(job.slot, madeMs));
      let chunk: EngineChunk | null;
      try {
        if (control.isCancelled(job.slot)) return { type: 'cancelled', effort };
        const stepMs: number = monotonicMs();
        vitals.setStepping(true);
        control.setStepping(job.slot, true);
        synthesis ??= voices.open(job);
        [chunk = null] = await synthesis.engine.step([synthesis]);
        const { startedMs, computeMs }: SynthesisEffort = effort ?? { startedMs: stepMs, computeMs: 0 };
        effort = { startedMs, computeMs: computeMs + monotonicMs() - stepMs };
      } finally {
        control.setStepping(job.slot, false);
        vitals.setStepping(false);
        turns.leave();
      }
      const { contextId, segment } = job;
      if (chunk !== null) {
        const startSample = samples;
        samples += chunk.pcm.length;
        madeMs = (samples * 1000) / synthesis.sampleRateHz;
        const mail: ChunkMail = {
          type: 'chunk',
          contextId,
          segment,
          startSample,
          pcm: chunk.pcm,
          words: chunk.words,
        };
        port.postMessage(mail, [chunk.pcm.buffer as ArrayBuffer]);
      }
      // Told with the last chunk, not after another step: a response's end must not trail its last sound.
      if (chunk === null || chunk.last) {
        port.postMessage({ type: 'segment-done', contextId, segment, samples } satisfies ChunkMail);
        return { type: 'done', samples, effort };
      }
    }
  };

  return async (job) => {
    try {
      return await speak(job);
    } catch (error) {
      return { type: 'failed', reason: faultPlace(error) };
    }
  };
};

const loadPatiently = async (
  load: () => Promise<LoadedVoices>,
  actorPorts: Map<number, MessagePort>,
): Promise<LoadedVoices> => {
  for (;;) {
    const startedMs = performance.now();
    try {
      const voices = await load();
      sayReady(voices, actorPorts, performance.now() - startedMs);
      return voices;
    } catch (error) {
      say({ type: 'load-failed', threadId, message: reasonOf(error) });
      await pause(LOAD_RETRY_MS);
    }
  }
};

const sayReady = (voices: LoadedVoices, actorPorts: Map<number, MessagePort>, loadMs: number): void => {
  const { port1, port2 } = new MessageChannel();
  port1.on('message', (message: SynthesisControl) => actorPorts.set(message.actor, message.port));
  port1.unref();
  const { executionProvider } = voices;
  say({ type: 'ready', threadId, control: port2, loadMs, executionProvider }, [port2]);
};

const say = (message: SynthesisHello, transfer: MessagePort[] = []): void => {
  if (parentPort === null) throw new Error('a synthesis thread runs under a pool');
  parentPort.postMessage(message, transfer);
};
