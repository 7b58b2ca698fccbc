/** Contexts and their scheduler over one schedule of steps, which also plays the threads. */
import fc from 'fast-check';
import type { ActorThreads } from '../../src/threads/actor-threads.js';
import { Context } from '../../src/speech/context.js';
import type { ActorCommand, Frame } from '../../src/threads/messages.js';
import { Scheduler } from '../../src/speech/scheduler.js';
import type { ContextOptions } from '../../src/speech/speech.js';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { OneByOne } from '../../src/slices.js';
import { ClockTable } from '../../src/threads/playback-clock.js';
import type { Generations } from '../../src/threads/generations.js';
import type { JobOutcome } from '../../src/threads/synthesis-thread.js';

/** The test does not read them. */
const metrics = new Metrics();
const ACTS = ['append', 'append', 'append', 'flush', 'flush', 'end', 'drop', 'release', 'fail'] as const;
const WORK = [
  'done',
  'done',
  'done',
  'interrupted',
  'failed',
  'frame',
  'frame',
  'frame',
  'handed',
  'handed',
] as const;
const TEXTS = [
  'Hello',
  ' there. ',
  'One. Two! ',
  ' ',
  '\n\n',
  'and a clause, then more',
  ' x'.repeat(70),
  'Wait... ',
  ' and on'.repeat(150),
];
const GROUPS = 2;
const CONTEXTS = 4;
const THREADS = 2;
const JOBS_MAX = 3;
const MS_A_CHARACTER = 50;
const UNSENT_MS_MAX = 2_000;
/** Too small for the unsent audio of all contexts. */
const UNSENT_BYTES_MAX = 48 * 20_000;

export interface Act {
  readonly act: (typeof ACTS)[number] | (typeof WORK)[number];
  readonly context: number;
  readonly text: string;
}
export const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.nat(2 ** 24).map((number) => {
    const all = [...ACTS, ...WORK, ...WORK];
    return {
      act: all[number % all.length] ?? 'done',
      context: Math.floor(number / 64) % CONTEXTS,
      text: TEXTS[Math.floor(number / 512) % TEXTS.length] ?? '',
    };
  }),
  { maxLength: 60, size: 'max' },
);

interface Request {
  readonly contextId: number;
  readonly segment: number;
  readonly text: string;
}
interface Running extends Request {
  isCancelled: boolean;
  settle: (outcome: JobOutcome) => void;
}
type Audio = Extract<Frame, { type: 'audio' }>;

/** What one context was asked for, and what it reported. */
class Line {
  accepted = '';
  spoken = '';
  settled = 0;
  closes = 0;
  dropped = 0;
  readonly asked: string[] = [];
  /** What was accepted before each flush. */
  readonly before: string[] = [];
  readonly flushed: string[] = [];
  readonly announced: ActorCommand[] = [];
  readonly made = new Map<number, string>();
  readonly unhanded: Audio[] = [];
  terminal: 'closed' | 'failed' | null = null;
  isEnded = false;
  isReleased = false;
  isCancelled = false;
}

const squeezed = (text: string): string => text.replaceAll(/\s/g, '');

export class Stage {
  readonly #contexts: Context[] = [];
  readonly #lines: Line[] = [];
  readonly #running: Running[] = [];
  readonly #scheduler: Scheduler;
  readonly #clocks = new ClockTable(CONTEXTS + GROUPS);
  /** Contexts that use a generation of voices. */
  #entered = 0;
  #nowMs = 0;

  constructor() {
    this.#scheduler = new Scheduler({
      clock: () => this.#nowMs,
      clocks: this.#clocks,
      threads: THREADS,
      jobsMax: JOBS_MAX,
      bounds: {
        unsentAudioMsMax: UNSENT_MS_MAX,
        unsentAudioMsPerLeaseMax: 2 * UNSENT_MS_MAX,
        expectedAudioMsPerLeaseMax: 3 * UNSENT_MS_MAX,
        unsentAudioBytesMax: UNSENT_BYTES_MAX,
      },
    });
    for (let id = 0; id < CONTEXTS; id++) this.#open(id);
  }

  take({ act, context: id, text }: Act): void {
    const context = this.#contexts[id];
    const line = this.#lines[id];
    if (!context || !line) throw new Error('no such context');
    this.#nowMs += 10;
    const isTaking = !line.isEnded && line.terminal === null && !line.isReleased;
    switch (act) {
      case 'append':
        if (isTaking) line.accepted += text;
        context.append(text);
        break;
      case 'flush':
        if (isTaking) {
          line.asked.push(`${line.asked.length}`);
          line.before.push(squeezed(line.accepted));
        }
        context.flush(`${line.asked.length - 1}`);
        break;
      case 'end':
        line.isEnded = true;
        context.end();
        break;
      case 'drop': {
        const characters = context.dropUtterance();
        if (!isTaking && characters > 0) throw new Error('dropped text of a complete utterance');
        line.dropped += characters;
        line.accepted = line.accepted.slice(0, line.accepted.length - characters);
        break;
      }
      case 'release':
        line.isReleased = true;
        context.release();
        break;
      case 'fail':
        if (text === ' ') context.fail('scheduled');
        break;
      case 'done':
      case 'interrupted':
      case 'failed':
        this.#finishJob(this.#running[id % Math.max(1, this.#running.length)], act);
        break;
      case 'frame':
        this.#frame(context, line);
        break;
      case 'handed':
        this.#handed(context, line);
    }
    this.#check();
  }

  /** Does all work and hands over all audio: all accepted text must be spoken, reported and charged. */
  finish(): void {
    for (const context of this.#contexts) context.end();
    for (let moved = true; moved;) {
      moved = this.#running.length > 0;
      this.#finishJob(this.#running[0], 'done');
      this.#contexts.forEach((context, id) => {
        const line = this.#lines[id];
        if (line) moved = [this.#frame(context, line), this.#handed(context, line)].includes(true) || moved;
      });
      this.#check();
    }
    this.#contexts.forEach((context, id) => {
      const line = this.#lines[id];
      if (!line) return;
      if (!line.isReleased) {
        if (line.terminal === null) throw new Error(`context ${id} does not end`);
        if (line.terminal === 'closed') this.#checkSpoken(line);
        if (context.activity !== 'idle') throw new Error(`context ${id} is over, and ${context.activity}`);
        context.release();
      }
      context.release();
      if (line.closes !== 1) throw new Error(`a lease was closed ${line.closes} times`);
    });
    if (this.#scheduler.audio.bytes !== 0) throw new Error('audio is still counted');
    if (this.#scheduler.groups > 0 || this.#scheduler.runningSegments > 0)
      throw new Error('the scheduler keeps groups or segments');
    if (this.#clocks.free !== CONTEXTS + GROUPS) throw new Error('a playback clock was not given back');
    if (this.#entered !== 0) throw new Error(`${this.#entered} contexts have not left their voices`);
  }

  #checkSpoken(line: Line): void {
    if (squeezed(line.spoken) !== squeezed(line.accepted))
      throw new Error(`spoke ${JSON.stringify(line.spoken)} of ${JSON.stringify(line.accepted)}`);
    // Blanks at the end belong to no segment.
    const rest = line.accepted.length - line.settled;
    if (rest < 0 || rest > line.accepted.length - line.accepted.trimEnd().length)
      throw new Error(`charged ${line.settled} of ${line.accepted.length}`);
    if (line.flushed.join() !== line.asked.join()) throw new Error('a flush was not answered');
  }

  #open(id: number): void {
    const line = new Line();
    this.#lines.push(line);
    const pool = {
      run: (request: Request) => {
        const running: Running = { ...request, isCancelled: false, settle: () => undefined };
        this.#running.push(running);
        return {
          // Settles when the schedule says so, and then synchronously.
          outcome: {
            then: (settle: (outcome: JobOutcome) => void) => {
              running.settle = settle;
            },
          },
          cancel: () => {
            running.isCancelled = true;
          },
          setStart: () => undefined,
        };
      },
    };
    const voices = { speakerIds: ['scripted'], sampleRateHz: () => 1_000, language: () => 'en-US' };
    const current = { number: 1, voices, pool };
    const generations = {
      current,
      enter: () => {
        this.#entered++;
        return current;
      },
      leave: () => {
        this.#entered--;
      },
    };
    const actors = { send: (command: ActorCommand) => this.#command(line, command) };
    const options: ContextOptions = {
      lease: {
        account: 'default',
        settle: (characters) => (line.settled += characters),
        delivered: () => undefined,
        close: () => (line.closes += 1),
        void: () => (line.closes += 1),
      },
      group: this.#groups[id % GROUPS] ?? {},
      settings: { voiceId: 'scripted', temperature: 1, normalizeText: false },
      format: { encoding: 'pcm', sampleRateHz: 24_000 },
      framing: 'socket',
      timestamps: false,
    };
    const context = new Context({
      id,
      options,
      sink: (frame) => this.#onFrame(line, frame),
      scheduler: this.#scheduler,
      generations: generations as unknown as Generations,
      actors: actors as unknown as ActorThreads,
      bounds: limits,
      clocks: this.#clocks,
      metrics,
      log: {
        error: () => {
          throw new Error('a fault of the scheduling');
        },
      },
      later: new OneByOne(),
      admits: () => true,
      returns: () => true,
      lexicons: () => [],
      onOver: () => undefined,
      onReleased: () => undefined,
    });
    this.#contexts.push(context);
  }

  readonly #groups = Array.from({ length: GROUPS }, () => ({}));

  #command(line: Line, command: ActorCommand): void {
    if (line.isCancelled) throw new Error(`${command.type} after a cancel`);
    if (command.type === 'cancel') line.isCancelled = true;
    else if (command.type !== 'open') line.announced.push(command);
  }

  #onFrame(line: Line, frame: Frame): void {
    if (line.isReleased) throw new Error(`${frame.type} after the release`);
    if (line.terminal !== null) throw new Error(`${frame.type} after ${line.terminal}`);
    if (frame.type === 'closed' || frame.type === 'failed') line.terminal = frame.type;
    if (frame.type === 'flushed') {
      line.flushed.push(frame.flushId);
      if (line.before[line.flushed.length - 1] !== squeezed(line.spoken))
        throw new Error('flushed out of place');
    }
    if (frame.type === 'audio') line.unhanded.push(frame);
  }

  #finishJob(job: Running | undefined, how: 'done' | 'interrupted' | 'failed'): void {
    if (job === undefined) return;
    this.#running.splice(this.#running.indexOf(job), 1);
    const samples = job.text.length * MS_A_CHARACTER;
    if (job.isCancelled) job.settle({ type: 'cancelled', effort: null });
    else if (how === 'failed') job.settle({ type: 'failed', reason: 'scheduled' });
    else if (how === 'interrupted') job.settle({ type: 'interrupted', inStep: false });
    else {
      this.#lines[job.contextId]?.made.set(job.segment, job.text);
      job.settle({ type: 'done', samples, effort: { startedMs: this.#nowMs, computeMs: 1 } });
    }
  }

  /** Emits the actor's next frames, if their audio was made. @returns false if there are none */
  #frame(context: Context, line: Line): boolean {
    const [next] = line.announced;
    if (line.isCancelled || next === undefined) return false;
    const contextId = context.id;
    if (next.type === 'segment') {
      const text = line.made.get(next.segment);
      if (text === undefined) return false;
      line.spoken += text;
      line.announced.shift();
      const { segment } = next;
      const durationMs = text.length * MS_A_CHARACTER;
      context.deliver({ type: 'audio', contextId, segment, durationMs, bytes: Buffer.from(text) });
      context.deliver({ type: 'spoken', contextId, segment });
      return true;
    }
    line.announced.shift();
    if (next.type === 'flush') context.deliver({ type: 'flushed', contextId, flushId: next.flushId });
    if (next.type === 'close') context.deliver({ type: 'closed', contextId });
    return true;
  }

  #handed(context: Context, line: Line): boolean {
    const frame = line.unhanded.shift();
    if (frame !== undefined) context.handed(frame);
    return frame !== undefined;
  }

  #check(): void {
    if (this.#running.length > JOBS_MAX) throw new Error(`${this.#running.length} jobs at once`);
    if (this.#scheduler.runningSegments !== this.#running.length)
      throw new Error(`${this.#scheduler.runningSegments} running, ${this.#running.length} with the pool`);
    for (const { schedule } of this.#contexts)
      if (this.#running.length === 0 && schedule.queued.length > 0 && !this.#scheduler.isGateShut(schedule))
        throw new Error('segments wait while nothing runs');
    for (const line of this.#lines) {
      if (line.settled > line.accepted.length) throw new Error('charged for more than was accepted');
      if (line.flushed.join() !== line.asked.slice(0, line.flushed.length).join())
        throw new Error('flushes out of order');
      if (line.isReleased && line.closes !== 1) throw new Error('released, and its lease is open');
    }
  }
}
