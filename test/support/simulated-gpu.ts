/**
 * A synthesis thread on a simulated GPU, in simulated time: listeners arrive, their steps wait in the step queue, and each run
 * takes a launch and a time for each item. The listeners play what was made for them. Admission, if there is one, sees the
 * costs that the thread would measure.
 */
import type { Capacity, CapacityOptions, Demand } from '../../src/speech/capacity.js';
import { Costs } from '../../src/speech/costs.js';
import type { Effort } from '../../src/threads/effort.js';
import { PlaybackClock } from '../../src/threads/playback-clock.js';
import { type BatchStep, StepQueue } from '../../workers/step-queue.js';
import { countShare } from '../../workers/synthesis-thread.js';
import { sizesTo } from '../../workers/engines/windows.js';

/** Audio of each chunk in milliseconds, as our engine makes it; the last repeats. */
const chunksMs = [100, 250, 500, 1_000];
/** A listener with more audio than this gets no more: the gate. */
const aheadMsMax = 3_000;
const measureMs = 250;
const voiceId = 'simulated';

export interface GpuTimes {
  /** Milliseconds of a run, whatever its batch. */
  readonly launchMs: number;
  /** Milliseconds for each second of audio that the run makes, with the items that only fill up the batch. */
  readonly audioSecondMs: number;
  readonly batchMax: number;
}

export interface SimulatedListener {
  readonly arrivesMs: number;
  readonly audioMs: number;
  /** Listeners with the same number are contexts of one WebSocket. */
  readonly group?: number;
}

/** What became of a listener. */
export interface Heard {
  readonly isRefused: boolean;
  readonly firstAudioMs: number;
  /** The longest time without audio after the first. */
  readonly dryMs: number;
  readonly endedMs: number;
}

export interface SimulatedRun {
  readonly atMs: number;
  /** Listeners, the most urgent first. */
  readonly members: readonly number[];
  readonly window: number;
  /** The size of the batch that was run. */
  readonly size: number;
}

interface Step extends BatchStep {
  readonly listener: number;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** @param admission of listeners, by what the others ask for and what steps cost */
export const simulate = async (
  listeners: readonly SimulatedListener[],
  { launchMs, audioSecondMs, batchMax }: GpuTimes,
  admission?: (options: Pick<CapacityOptions, 'demands' | 'costs'>) => Capacity,
): Promise<{ readonly heard: readonly Heard[]; readonly runs: readonly SimulatedRun[] }> => {
  let nowMs = 0;
  const queue = new StepQueue<Step>(() => nowMs);
  const engine = { batchMax };
  const shares = new Map<number, PlaybackClock>();
  const states = listeners.map(({ arrivesMs, group }) => {
    if (group !== undefined && !shares.has(group)) shares.set(group, new PlaybackClock());
    const share = group === undefined ? undefined : { group, clock: shares.get(group)! };
    const clock = new PlaybackClock();
    clock.start(arrivesMs);
    const times = { firstAudioMs: -1, dryMs: 0, endedMs: -1 };
    return { ...times, clock, share, madeMs: 0, chunk: 0, isRefused: false, group: {} };
  });
  const demandOf = (listener: number): Demand => {
    const { group, madeMs, clock, chunk } = states[listener]!;
    return {
      ...{
        account: 'default',
        group,
        voiceId,
        encoding: 'pcm',
        remainingMs: listeners[listener]!.audioMs - madeMs,
      },
      slackMs: Math.max(0, clock.at(madeMs) - nowMs),
      isAwaiting: chunk === 0,
    };
  };
  const speaking = new Set<number>();
  const costs = new Costs();
  const capacity = admission?.({ demands: () => [...speaking].map(demandOf), costs });
  let effort = { cpuMs: 0, speechMs: 0, begun: 0, beginMs: 0 };
  const none: Effort = effort;
  let measuredMs = 0;
  const measure = (): void => {
    if (nowMs - measuredMs < measureMs) return;
    costs.voices.add(voiceId, effort);
    measuredMs = nowMs;
    effort = { ...none };
  };
  const runs: SimulatedRun[] = [];
  /** When listeners ask for their next step: when they arrive, and when the gate opens. */
  const asks = listeners.map(({ arrivesMs }, listener) => ({ atMs: arrivesMs, listener }));
  let granted: Step[] | undefined;
  let inQueue = 0;

  const enter = (listener: number): void => {
    const state = states[listener]!;
    if (state.chunk === 0) {
      state.isRefused = (capacity?.refusal(demandOf(listener), nowMs) ?? null) !== null;
      if (state.isRefused) return;
      speaking.add(listener);
    }
    const step = { engine, window: Math.min(state.chunk, chunksMs.length - 1), listener };
    inQueue++;
    void queue
      .enter(
        {
          dueMs: () => state.clock.at(state.madeMs),
          share: state.share,
          urgency: state.chunk === 0 ? 'first' : 'playing',
        },
        0,
        step,
      )
      .then((others) => (granted = [step, ...others]));
  };

  const finish = ({ listener }: Step, chunkMs: number, costMs: number): void => {
    const state = states[listener]!;
    const { audioMs, arrivesMs } = listeners[listener]!;
    const left = audioMs - state.madeMs;
    effort.cpuMs += costMs;
    effort.speechMs += Math.min(left, chunkMs);
    if (state.chunk === 0) {
      effort.begun++;
      effort.beginMs += costMs;
      state.firstAudioMs = nowMs - arrivesMs;
    }
    if (state.share !== undefined) countShare(state.share.clock, Math.min(left, chunkMs), nowMs);
    const lateMs = state.clock.reach(state.madeMs, nowMs);
    if (state.chunk > 0) state.dryMs = Math.max(state.dryMs, lateMs);
    state.madeMs += Math.min(left, chunkMs);
    state.chunk++;
    if (state.madeMs >= audioMs) {
      state.endedMs = nowMs;
      speaking.delete(listener);
      capacity?.freed();
    } else asks.push({ atMs: Math.max(nowMs, state.clock.at(state.madeMs) - aheadMsMax), listener });
  };

  for (;;) {
    asks.sort((a, b) => a.atMs - b.atMs);
    while (asks[0] !== undefined && asks[0].atMs <= nowMs) enter(asks.shift()!.listener);
    await settle();
    if (granted === undefined) {
      if (inQueue > 0) throw new Error('steps wait, and none runs');
      if (asks[0] === undefined) break;
      nowMs = asks[0].atMs;
      continue;
    }
    const steps: Step[] = granted;
    granted = undefined;
    inQueue -= steps.length;
    const { window } = steps[0]!;
    const size = sizesTo(batchMax).find((known) => known >= steps.length)!;
    runs.push({ atMs: nowMs, members: steps.map(({ listener }) => listener), window, size });
    const runMs = launchMs + (size * audioSecondMs * chunksMs[window]!) / 1_000;
    nowMs += runMs;
    const costMs = runMs / steps.length;
    for (const step of steps) finish(step, chunksMs[window]!, costMs);
    measure();
    queue.leave();
    // The next choice comes after a turn of the event loop, and after those who ask again at once.
    asks.sort((a, b) => a.atMs - b.atMs);
    while (asks[0] !== undefined && asks[0].atMs <= nowMs) enter(asks.shift()!.listener);
    await settle();
  }
  return { heard: states, runs };
};
