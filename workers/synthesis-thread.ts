/**
 * What a synthesis thread does, whatever its voices: it runs many jobs, a step at a time, and posts each step's chunk
 * straight to the actor thread of the job's context.
 */
import { MessageChannel, parentPort, type MessagePort } from 'node:worker_threads';
import { faultPlace } from '../src/fault.js';
import { monotonicMs } from '../src/monotonic.js';
import { nameThread } from '../src/thread-name.js';
import { JobControl } from '../src/threads/control.js';
import { EffortTable, type Effort } from '../src/threads/effort.js';
import { ClockTable, type PlaybackClock } from '../src/threads/playback-clock.js';
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
import type { LongStep } from '../src/threads/voices.js';
import type { Engine, EngineChunk, LoadedVoices, PackHold, SegmentSynthesis } from './engines/engine.js';
import { BEFORE_FILES_MS, type BatchStep, type StepDue, StepQueue } from './step-queue.js';

/** Milliseconds between attempts to load the voices. The thread stays meanwhile: piscina would not replace it. */
const LOAD_RETRY_MS = 1_000;

/** Milliseconds between two checks for a port that a job needs and that has not arrived. */
const PORT_RETRY_MS = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Milliseconds for which a segment of a whole file lets listeners of other packs go first. */
const FILE_WAITS_MS = 3_000;

/** A pause takes its turn like speech: one account may ask for hours of them. */
const silence = (durationMs: number, sampleRateHz: number): SegmentSynthesis => {
  const pcm = new Int16Array(Math.round((durationMs * sampleRateHz) / 1000));
  return { sampleRateHz, step: () => Promise.resolve({ pcm, words: [], last: true }) };
};

/** The next step of a job. */
interface JobStep extends BatchStep {
  readonly engine: Engine['batches'];
  readonly slot: number;
  readonly isFirst: boolean;
  readonly longMs: number;
  /** Of silence, which says nothing about how long steps take. */
  readonly isSilence: boolean;
  readonly open: () => SegmentSynthesis;
  /** `null`: the job was cancelled before the step. */
  readonly settle: (made: Stepped | null) => void;
  readonly fail: (error: unknown) => void;
}

interface Stepped {
  readonly chunk: EngineChunk | null;
  readonly startedMs: number;
  readonly passedMs: number;
  readonly effort: Effort;
}

/** Several steps are of one engine, which makes batches. @returns what each made, or why it cannot go on */
const stepSegments = async (
  steps: readonly JobStep[],
): Promise<PromiseSettledResult<EngineChunk | null>[]> => {
  const runs = steps.map(
    ({ open }) =>
      async () =>
        open().step(),
  );
  const { engine } = steps[0]!;
  return engine === undefined || runs.length === 1
    ? Promise.allSettled(runs.map((run) => run()))
    : engine.together(runs);
};

/** A step of so many times `stepComputeMsTarget` of CPU time keeps others waiting. */
const SLOW_STEP_FACTOR = 20;
/** So do steps of so many times the target, if they come in such a row: one alone may be the machine's. */
const SLOW_ROW_FACTOR = 4;
const SLOW_ROW_STEPS = 3;
/** A step that is so many times as long as its voice's longest was at load: the load's sentence said too little. */
const LONGER_TIMES = 2;

/** The ports to the actor threads. Their numbers only grow, and are never used again. */
export class ActorPorts {
  readonly #ports = new Map<number, MessagePort>();
  #highest = -1;

  /** The port is dropped when the actor thread ends. */
  add(actor: number, port: MessagePort): void {
    this.#highest = Math.max(this.#highest, actor);
    this.#ports.set(actor, port);
    port.once('close', () => this.#ports.delete(actor));
  }

  get(actor: number): MessagePort | undefined {
    return this.#ports.get(actor);
  }

  /** Ports keep no common order: the port to an actor thread can arrive after a job for it. */
  isExpected(actor: number): boolean {
    return actor > this.#highest;
  }
}

/**
 * Loads the voices, reports to the front thread, and returns the job handler that piscina calls.
 * @param load if it rejects, the front thread gets the reason, and the load is repeated. All native code that it and its
 *   engines run goes through the guard
 * @param report a test that plays a thread gives its own
 */
export const serveSynthesis = async (
  data: Pick<SynthesisThreadData, 'control' | 'vitals' | 'effort' | 'clocks' | 'bounds'>,
  load: (native: NativeGuard) => Promise<LoadedVoices>,
  report: Report = reportToParent,
): Promise<(job: SynthesisJob) => Promise<SynthesisResult>> => {
  nameThread('synthesis');
  const control = new JobControl(data.control);
  const vitals = new Vitals(data.vitals);
  const efforts = new EffortTable(data.effort);
  const clocks = new ClockTable(data.clocks);
  vitals.live(data.bounds);
  const actorPorts = new ActorPorts();
  const steps = new StepQueue<JobStep>();
  const voices = await loadPatiently(() => load(vitals.native), actorPorts, report);
  const rows = new Map(voices.voices.map(({ id }, row) => [id, row]));
  const longSteps = longStepsOf(voices);
  const { stepComputeMsTarget } = data.bounds;
  const usesGpu = voices.executionProvider !== 'cpu';
  const rooms = roomsOf(voices);

  /**
   * Runs the steps of one or more jobs, which are of one engine. Each one settles. Never rejects.
   *
   * @returns how many ran, if they are neither long nor silence
   */
  const runSteps = async (jobs: readonly JobStep[]): Promise<number> => {
    const running = jobs.filter(({ slot }) => !control.isCancelled(slot));
    for (const job of jobs) if (!running.includes(job)) job.settle(null);
    const [first] = running;
    if (first === undefined) return 0;
    const setStepping = (isStepping: boolean) => {
      vitals.setStepping(isStepping, isStepping ? first.longMs : 0);
      for (const { slot } of running) control.setStepping(slot, isStepping);
    };
    const startedMs = monotonicMs();
    setStepping(true);
    const end = efforts.begin();
    const results = await stepSegments(running);
    setStepping(false);
    const costMs = usesGpu ? (monotonicMs() - startedMs) / running.length : undefined;
    for (const [place, result] of results.entries()) {
      const { isFirst, open, settle, fail } = running[place]!;
      if (result.status === 'rejected') {
        fail(result.reason);
        continue;
      }
      const chunk = result.value;
      const speechMs = chunk === null ? 0 : (chunk.pcm.length * 1000) / open().sampleRateHz;
      const ended = end(speechMs, isFirst, costMs, running.length);
      efforts.add(rows.size, { ...ended.effort, cpuMs: ended.effort.cpuMs + ended.asideMs });
      settle({ chunk, startedMs, ...ended });
    }
    return first.longMs > 0 || first.isSilence ? 0 : running.length;
  };

  /** @param madeMs what was made of the job */
  const dueOf = ({ slot, clock, share, urgency, account }: SynthesisJob, madeMs = () => 0): StepDue => {
    const playback = clocks.clock(clock);
    return {
      dueMs: () => playback.at(control.startMs(slot) + madeMs()),
      share: share === undefined ? undefined : { group: share, clock: clocks.clock(share) },
      ...{ urgency, account },
    };
  };

  const speak = async (job: SynthesisJob): Promise<SynthesisResult> => {
    const { contextId, segment, slot, actor } = job;
    const { voiceId } = job.settings;
    const row = rows.get(voiceId) ?? 0;
    const isSilence = job.pauseMs !== undefined;
    const longMs = isSilence ? 0 : (longSteps.get(voiceId)?.ms ?? 0);
    if (!control.has(slot)) throw new RangeError(`no job slot ${slot}`);
    while (actorPorts.isExpected(actor)) {
      if (control.isCancelled(slot)) return { type: 'cancelled', effort: null };
      await pause(PORT_RETRY_MS);
    }
    let synthesis: SegmentSynthesis | undefined;
    const open = () =>
      (synthesis ??=
        job.pauseMs === undefined
          ? voices.open(job)
          : silence(job.pauseMs, voices.voices[row]!.sampleRateHz));
    let samples = 0;
    let madeMs = 0;
    let hasSound = false;
    const parts: Effort[] = [];
    const due = dueOf(job, () => madeMs);
    const { share } = due;
    // If the actor thread ended, the job goes on without a port: the front thread is about to cancel it.
    const post = ({ pcm, words }: Pick<EngineChunk, 'pcm' | 'words'>, sampleRateHz: number) => {
      // Until the listener has first audio it cannot run dry, however late that is.
      if (samples === 0 && job.urgency === 'first')
        clocks.clock(job.clock).reach(control.startMs(slot), monotonicMs());
      const mail: ChunkMail = { type: 'chunk', contextId, segment, startSample: samples, pcm, words };
      // Before the transfer, which empties the chunk.
      samples += pcm.length;
      hasSound ||= pcm.some((sample) => sample !== 0);
      if (share !== undefined) {
        const durationMs = (pcm.length * 1000) / sampleRateHz;
        countShare(share.clock, durationMs, monotonicMs(), steps.waitingOf(share.group));
      }
      actorPorts.get(actor)?.postMessage(mail, [pcm.buffer as ArrayBuffer]);
      madeMs = (samples * 1000) / sampleRateHz;
    };
    const done = (made: SynthesisEffort): SynthesisResult => {
      const mail: ChunkMail = { type: 'segment-done', contextId, segment, samples };
      actorPorts.get(actor)?.postMessage(mail);
      // Long chunks of a whole file cost less than those of listeners, and silence for a text without words costs nothing. Of a
      // segment that was cancelled, the first step has all that its analysis costs, and little speech.
      if (job.urgency !== 'file' && hasSound) for (const part of parts) efforts.add(row, part);
      return { type: 'done', samples, effort: made };
    };
    let effort: SynthesisEffort | null = null;
    let slowInRow = 0;
    for (;;) {
      const stepped = await new Promise<Stepped | null>((settle, fail) => {
        const step: JobStep = {
          ...{ engine: isSilence ? undefined : voices.batchesOf?.(voiceId), window: synthesis?.window ?? 0 },
          // A step of the longest chunks is no first audio, and would raise what that costs.
          isFirst: effort === null && job.begins !== 'longest',
          ...{ slot, longMs, isSilence, open, settle, fail },
        };
        const stepDue: StepDue = madeMs > 0 && job.urgency === 'first' ? { ...due, urgency: 'playing' } : due;
        void steps.enter(stepDue, longMs, step).then(async (others) => {
          steps.leave(await runSteps([step, ...others]));
        });
      });
      if (stepped === null) return { type: 'cancelled', effort };
      const { chunk, startedMs, passedMs } = stepped;
      const { cpuMs, speechMs } = stepped.effort;
      const isSlow = (factor: number): boolean =>
        cpuMs > Math.max(factor * stepComputeMsTarget, LONGER_TIMES * (longSteps.get(voiceId)?.ms ?? 0));
      slowInRow = isSlow(SLOW_ROW_FACTOR) ? slowInRow + 1 : 0;
      if (slowInRow >= SLOW_ROW_STEPS || isSlow(SLOW_STEP_FACTOR)) {
        if (longMs > 0) longSteps.set(voiceId, { ms: cpuMs, speechMs });
        report({ type: 'slow-step', voiceId, step: { ms: cpuMs, speechMs } });
      }
      parts.push(stepped.effort);
      const before: SynthesisEffort = effort ?? { startedMs, computeMs: 0 };
      effort = { ...before, computeMs: before.computeMs + passedMs };
      if (control.isCancelled(slot)) return { type: 'cancelled', effort };
      if (chunk !== null && chunk.pcm.length > 0) post(chunk, open().sampleRateHz);
      // Sent with the last chunk, not after another step: the end of a response must not trail its last sound.
      if (chunk === null || chunk.last) return done(effort);
    }
  };

  /** Keeps the pack of the job's voice loaded, and loads it first if it is not. Each graph is loaded in its own step. */
  const hold = async (job: SynthesisJob): Promise<PackHold | null> => {
    const { slot, settings } = job;
    const due = dueOf(job);
    // A file that is late would otherwise keep its pack until all of its segments are spoken.
    const fileDueMs = monotonicMs() + FILE_WAITS_MS;
    const held = await voices.hold!({
      voiceId: settings.voiceId,
      dueMs: job.urgency === 'file' ? () => fileDueMs : due.dueMs,
      isCancelled: () => control.isCancelled(slot),
      asStep: async (expectedMs, run) => {
        await steps.enter(due, expectedMs);
        try {
          vitals.setStepping(true, expectedMs);
          control.setStepping(slot, true);
          return await run();
        } finally {
          // The load of a pack is no cost of speech.
          efforts.leaveOut();
          control.setStepping(slot, false);
          vitals.setStepping(false);
          steps.leave();
        }
      },
    });
    const load = held?.load ?? null;
    if (load !== null) report({ type: 'pack-loaded', ...load, loadedPacks: voices.loadedPacks?.() ?? 0 });
    return held;
  };

  return async (job) => {
    const room = rooms.get(job.settings.voiceId);
    let held: PackHold | null = null;
    try {
      await room?.enter(dueOf(job));
      // White space is free, so it must load no pack.
      if (voices.hold !== undefined && job.pauseMs === undefined) {
        held = await hold(job);
        if (held === null) return { type: 'cancelled', effort: null };
      }
      return await speak(job);
    } catch (error) {
      return { type: 'failed', reason: faultPlace(error) };
    } finally {
      held?.release();
      room?.leave();
    }
  };
};

/** Milliseconds of audio that a group's listeners have in hand, as far as others can tell, while it has had its share. */
const SHARE_LEAD_MS = 500;
/** And for each step of the group that waits beside the one that ran. */
const WAITING_LEAD_MS = 100;

/**
 * Audio was made for a group, whose share is the clock of one listener who gets all of it, and who waits when it has none. So
 * under contention all contexts of a group together get what one context gets. The clock is never far ahead of the present:
 * what the group got from an idle machine does not count against it later, and once the other listeners have that much in hand,
 * the group gets what they do not need. If two threads count at the same moment, one chunk can be lost.
 *
 * @param waiting steps of the group that wait. With many, whole files go first while the chunk plays: otherwise
 *   the group would get a chunk of a second every tenth of a second
 */
export const countShare = (share: PlaybackClock, durationMs: number, nowMs: number, waiting = 0): void => {
  share.reach(0, nowMs);
  share.advance(durationMs);
  const chunkMs = Math.max(SHARE_LEAD_MS, BEFORE_FILES_MS + durationMs);
  share.limit(0, nowMs + Math.min(SHARE_LEAD_MS + WAITING_LEAD_MS * waiting, chunkMs));
};

/** Queues for engines that bound their open segments. The most urgent segment begins first. */
const roomsOf = ({ crowded = [] }: LoadedVoices): Map<string, StepQueue> => {
  const rooms = new Map<string, StepQueue>();
  for (const { voices, segmentsMax } of crowded) {
    const room = new StepQueue(monotonicMs, segmentsMax);
    for (const { id } of voices) rooms.set(id, room);
  }
  return rooms;
};

const longStepsOf = ({ voices }: LoadedVoices): Map<string, LongStep> =>
  new Map(voices.flatMap(({ id, longStep }) => (longStep === undefined ? [] : [[id, longStep]])));

const loadPatiently = async (
  load: () => Promise<LoadedVoices>,
  actorPorts: ActorPorts,
  report: Report,
): Promise<LoadedVoices> => {
  for (;;) {
    const startedMs = performance.now();
    try {
      const voices = await load();
      reportReady(voices, actorPorts, performance.now() - startedMs, report);
      return voices;
    } catch (error) {
      // The message names a file; it cannot quote a text.
      const message = error instanceof Error ? error.message : String(error);
      report({ type: 'load-failed', message });
      await pause(LOAD_RETRY_MS);
    }
  }
};

const reportReady = (voices: LoadedVoices, actorPorts: ActorPorts, loadMs: number, report: Report): void => {
  const { executionProvider, faults = new Map(), graphs = new Map(), costs = new Map() } = voices;
  const longSteps = longStepsOf(voices);
  const { port1, port2 } = new MessageChannel();
  port1.on('message', ({ actor, port }: SynthesisControl) => actorPorts.add(actor, port));
  port1.unref();
  const loadedPacks = voices.loadedPacks?.() ?? 0;
  report(
    {
      ...{ type: 'ready', control: port2, loadMs, loadedPacks },
      ...{ executionProvider, faults, graphs, longSteps, costs },
    },
    [port2],
  );
};

type Report = (message: SynthesisHello, transfer?: MessagePort[]) => void;

const reportToParent: Report = (message, transfer = []) => {
  if (parentPort === null) throw new Error('a synthesis thread runs under a pool');
  parentPort.postMessage(message, transfer);
};
