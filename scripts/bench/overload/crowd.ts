/**
 * Listeners of an open loop: each arrives when the schedule says so, asks for one utterance, hears it at the speed of
 * playback and leaves. Reading is not held back, as players do that buffer some seconds; so what the service still owes at
 * the end of the load is seen at once.
 *
 * Every time counts from the moment a visit was due, so a late client or a slow connection cannot hide a wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange, speechRequest } from '../../rig/http.js';
import { LoopClock } from '../../rig/loop-clock.js';
import { Playback } from '../../rig/playback.js';
import { Tally } from '../../rig/tally.js';
import {
  HttpStream,
  keyOf,
  msPerBase64Byte,
  SocketStream,
  type SpeechStream,
  type Target,
} from '../streams.js';
import {
  figuresOf,
  visitBars,
  wholeFiguresOf,
  type Outcome,
  type Visit,
  type VisitFigures,
  type WholeFigures,
  type WholeVisit,
} from './figures.js';
import type { Arrival } from './schedule.js';

export interface CrowdOrder {
  readonly target: Target;
  readonly texts: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** Visits that are due in this time do not count. */
  readonly warmUpMs: number;
  /** After the warm-up. */
  readonly durationMs: number;
  /** Requests for whole files meanwhile. */
  readonly wholesPerSecond: number;
  /** Single requests after the end of the load; `afterMs` to the first. */
  readonly probes: { readonly afterMs: number; readonly everyMs: number; readonly count: number };
  /** For what is still spoken when the load has ended. */
  readonly drainMsMax: number;
  /** Ends at once when more than a part of the visits have waited longer than this for first audio; `null`: goes on. */
  readonly hopeless: { readonly firstAudioMs: number; readonly share: number } | null;
}

export interface CrowdFigures {
  readonly visits: VisitFigures;
  readonly http: VisitFigures;
  readonly ws: VisitFigures;
  readonly wholes: WholeFigures;
  /** Seconds of speech delivered each second, without whole files. */
  readonly servedPerSecond: number;
  /** Speech that was delivered, or still missing, after the end of the load. */
  readonly owedMs: number;
  /** Until the last visit was over. */
  readonly drainMs: number;
  /** Milliseconds to first audio of each probe; `null`: refused, or no audio. */
  readonly probes: readonly (number | null)[];
  readonly isHopeless: boolean;
  /** What failed, most frequent first. */
  readonly faults: string;
  /** Cores that this client used. */
  readonly clientCores: number;
  readonly channels: { readonly http: number; readonly ws: number };
}

/** A listener in the middle of its visit. */
class Listener {
  readonly dueMs: number;
  readonly askedMs: number;
  readonly playback = new Playback();
  outcome: Outcome = 'failed';
  writtenMs: number;
  firstAudioMs: number | null = null;
  refusalMs: number | null = null;
  dryMs = 0;
  receivedMs = 0;

  constructor(dueMs: number, nowMs: number) {
    this.dueMs = dueMs;
    this.askedMs = this.writtenMs = nowMs;
    this.playback.begin(dueMs);
  }

  audio(audioMs: number, nowMs: number, clock: LoopClock): void {
    const arrival = this.playback.audio(audioMs, nowMs);
    if (arrival?.kind === 'first') this.firstAudioMs = arrival.waitedMs;
    else if (arrival?.kind === 'dry') {
      // What this process itself was late by is no gap.
      const gapMs = arrival.waitedMs - clock.latenessMs(arrival.sinceMs, nowMs);
      this.dryMs = Math.max(this.dryMs, gapMs);
    }
    this.receivedMs = audioMs;
  }

  /** The load is over and the visit is not: a gap that goes on counts. */
  abandon(nowMs: number): void {
    this.playback.tick(nowMs);
    this.dryMs = Math.max(this.dryMs, this.playback.dryMsMax);
  }

  /** @param startedMs when the load began */
  visit(startedMs: number): Visit {
    const { askedMs, dryMs, dueMs, firstAudioMs, outcome, refusalMs } = this;
    const clientLateMs = askedMs - dueMs;
    return { dueMs: dueMs - startedMs, outcome, firstAudioMs, dryMs, refusalMs, clientLateMs };
  }
}

interface Resting {
  readonly stream: SpeechStream;
  /** When its listener has heard everything. */
  readonly freeAtMs: number;
}

interface Timed {
  readonly atMs: number;
  readonly run: (dueMs: number) => void;
}

type Transport = Arrival['transport'];

const clockMs = 10;
const checkEveryMs = 500;
/** Fewer visits than this say nothing about a share. */
const hopelessVisitsMin = 20;
const wholeOverheadBytes = '{"audio":""}'.length;

const evenly = (count: number, fromMs: number, everyMs: number, run: Timed['run']): Timed[] =>
  Array.from({ length: count }, (_, i) => ({ atMs: fromMs + i * everyMs, run }));

export class Crowd {
  readonly #order: CrowdOrder;
  readonly #resting: Record<Transport, Resting[]> = { http: [], ws: [] };
  readonly #streams = new Set<SpeechStream>();
  readonly #made: Record<Transport, number> = { http: 0, ws: 0 };
  readonly #heard: Record<Transport, Listener[]> = { http: [], ws: [] };
  readonly #waiting = new Set<Listener>();
  readonly #probed: Listener[] = [];
  readonly #wholes: WholeVisit[] = [];
  #wholesWaiting = 0;
  readonly #aborts = new AbortController();
  readonly #faults = new Tally();
  readonly #clock = new LoopClock(clockMs, performance.now());
  #audioMs = 0;
  #isHopeless = false;

  constructor(order: CrowdOrder) {
    this.#order = order;
  }

  async run(): Promise<CrowdFigures> {
    const { drainMsMax, durationMs, warmUpMs } = this.#order;
    const loadMs = warmUpMs + durationMs;
    let [audioAtStartMs, audioAtEndMs] = [0, 0];
    let cpu = process.cpuUsage();
    let clientMs = 0;
    const clockTimer = setInterval(() => this.#clock.tick(performance.now()), clockMs);
    const startedMs = performance.now();
    const timeline = this.#timeline();
    timeline.push({
      atMs: warmUpMs,
      run: () => {
        audioAtStartMs = this.#audioMs;
        cpu = process.cpuUsage();
      },
    });
    timeline.push({
      atMs: loadMs,
      run: () => {
        audioAtEndMs = this.#audioMs;
        const { system, user } = process.cpuUsage(cpu);
        clientMs = (system + user) / 1000;
      },
    });
    timeline.sort((a, b) => a.atMs - b.atMs);
    await this.#play(timeline, startedMs);
    const drainEndMs = startedMs + loadMs + (this.#isHopeless ? 0 : drainMsMax);
    while (performance.now() < drainEndMs && this.#waiting.size + this.#wholesWaiting > 0) await sleep(10);
    const drainMs = Math.max(0, performance.now() - startedMs - loadMs);
    await this.#end();
    clearInterval(clockTimer);
    return {
      ...this.#figures(startedMs),
      servedPerSecond: (audioAtEndMs - audioAtStartMs) / durationMs,
      owedMs: this.#audioMs - audioAtEndMs,
      drainMs,
      clientCores: clientMs / durationMs,
    };
  }

  #timeline(): Timed[] {
    const { arrivals, durationMs, probes, texts, warmUpMs, wholesPerSecond } = this.#order;
    const loadMs = warmUpMs + durationMs;
    const wholes = Math.floor((wholesPerSecond * loadMs) / 1000);
    return [
      ...arrivals.map(({ atMs, text, transport }) => ({
        atMs,
        run: (dueMs: number) => this.#heard[transport].push(this.#ask(transport, texts[text]!, dueMs)),
      })),
      ...evenly(wholes, 0, 1000 / wholesPerSecond, (dueMs) => void this.#askWhole(dueMs)),
      ...evenly(probes.count, loadMs + probes.afterMs, probes.everyMs, (dueMs) =>
        this.#probed.push(this.#ask('http', texts[0]!, dueMs)),
      ),
      ...evenly(Math.floor(loadMs / checkEveryMs), checkEveryMs, checkEveryMs, () => this.#checkHope()),
    ];
  }

  async #play(timeline: readonly Timed[], startedMs: number): Promise<void> {
    for (const { atMs, run } of timeline) {
      const dueMs = startedMs + atMs;
      // A timer counts whole milliseconds, and must not come early.
      for (let leftMs = dueMs - performance.now(); leftMs > 0; leftMs = dueMs - performance.now())
        await sleep(Math.ceil(leftMs));
      if (this.#isHopeless) return;
      run(dueMs);
    }
  }

  #ask(transport: Transport, text: string, dueMs: number): Listener {
    const nowMs = performance.now();
    const stream = this.#take(transport, nowMs);
    const listener = new Listener(dueMs, nowMs);
    this.#waiting.add(listener);
    stream.request(text, {
      onWritten: () => (listener.writtenMs = performance.now()),
      onAudio: (audioMs) => {
        this.#audioMs += audioMs - listener.receivedMs;
        listener.audio(audioMs, performance.now(), this.#clock);
      },
      onRefused: () => {
        // A WebSocket has an error for the text and one for the flush.
        if (listener.refusalMs !== null) return;
        listener.outcome = 'refused';
        listener.refusalMs = performance.now() - listener.writtenMs;
      },
      onEnd: () => {
        const endMs = performance.now();
        this.#waiting.delete(listener);
        const isRefused = listener.outcome === 'refused';
        if (!isRefused && listener.firstAudioMs === null) this.#faults.add('a visit without audio');
        else if (!isRefused) listener.outcome = 'admitted';
        const freeAtMs = endMs + listener.playback.aheadMs(endMs);
        this.#resting[transport].push({ stream, freeAtMs });
      },
      onError: ({ message }) => {
        this.#waiting.delete(listener);
        this.#streams.delete(stream);
        listener.outcome = 'failed';
        this.#faults.add(`${transport}: ${message}`);
      },
    });
    return listener;
  }

  /** A connection that no listener uses; a new one has the next key. */
  #take(transport: Transport, nowMs: number): SpeechStream {
    const resting = this.#resting[transport];
    const free = resting.findLastIndex(({ freeAtMs }) => freeAtMs <= nowMs);
    if (free >= 0) return resting.splice(free, 1)[0]!.stream;
    const { target } = this.#order;
    const key = keyOf(target, this.#made.http + this.#made.ws);
    this.#made[transport]++;
    const stream = transport === 'http' ? new HttpStream(target, key) : new SocketStream(target, key);
    this.#streams.add(stream);
    return stream;
  }

  async #askWhole(dueMs: number): Promise<void> {
    const { target, texts } = this.#order;
    const index = this.#wholes.length + this.#wholesWaiting++;
    const key = keyOf(target, target.keys.length - 1 - (index % target.keys.length));
    const text = texts[index % texts.length]!;
    const request = speechRequest({ key, text, voice: target.voice, format: target.format, path: '/v1/tts' });
    const { body, error, headers, status } = await exchange(target.port, request, {
      signal: this.#aborts.signal,
    });
    this.#wholesWaiting--;
    const isRefused = status === 503 && headers.has('retry-after');
    const isServed = error === null && status === 200;
    if (!isRefused && !isServed)
      this.#faults.add(`whole file: ${error?.message ?? `the service answered ${status}`}`);
    this.#wholes.push({
      outcome: isServed ? 'admitted' : isRefused ? 'refused' : 'failed',
      waitedMs: performance.now() - dueMs,
      audioMs: (body.length - wholeOverheadBytes) * (msPerBase64Byte(target.format) ?? 0),
    });
  }

  #checkHope(): void {
    const { hopeless } = this.#order;
    if (hopeless === null) return;
    const nowMs = performance.now();
    const all = [...this.#heard.http, ...this.#heard.ws];
    const lost = all.filter(({ dryMs, dueMs, firstAudioMs, outcome, refusalMs }) => {
      if (refusalMs !== null) return false;
      const isOver = outcome === 'admitted' || firstAudioMs !== null;
      const waitedMs = firstAudioMs ?? (isOver ? 0 : nowMs - dueMs);
      return waitedMs > hopeless.firstAudioMs || dryMs > visitBars.dryMsMax;
    });
    this.#isHopeless = lost.length > Math.max(hopelessVisitsMin, hopeless.share * all.length);
  }

  /** Gives up what is not over. */
  async #end(): Promise<void> {
    const nowMs = performance.now();
    for (const listener of this.#waiting) listener.abandon(nowMs);
    if (this.#waiting.size > 0) this.#faults.add('a visit that did not end in time', this.#waiting.size);
    for (const stream of this.#streams) stream.close();
    this.#aborts.abort();
    while (this.#wholesWaiting > 0) await sleep(1);
  }

  #figures(startedMs: number): Omit<CrowdFigures, 'servedPerSecond' | 'owedMs' | 'drainMs' | 'clientCores'> {
    const { durationMs, warmUpMs } = this.#order;
    const fromMs = startedMs + warmUpMs;
    const isCounted = ({ dueMs }: Listener) => dueMs >= fromMs && dueMs < fromMs + durationMs;
    const of = (listeners: readonly Listener[]) =>
      listeners.filter(isCounted).map((listener) => listener.visit(startedMs));
    const [http, ws] = [of(this.#heard.http), of(this.#heard.ws)];
    return {
      visits: figuresOf([...http, ...ws]),
      http: figuresOf(http),
      ws: figuresOf(ws),
      wholes: wholeFiguresOf(this.#wholes),
      probes: this.#probed.map(({ firstAudioMs, outcome }) => (outcome === 'admitted' ? firstAudioMs : null)),
      isHopeless: this.#isHopeless,
      faults: this.#faults.toString(),
      channels: { ...this.#made },
    };
  }
}
