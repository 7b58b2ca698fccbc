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
import { HttpStream, keyOf, SocketStream, wholeAudioMs, type SpeechStream, type Target } from '../streams.js';
import { figuresOf, wholeFiguresOf, type Visit, type WholeVisit } from './figures.js';
import type { Arrival } from './schedule.js';

export interface CrowdOrder {
  readonly target: Target;
  readonly texts: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** Visits that are due in this time do not count. */
  readonly warmUpMs: number;
  /** After the warm-up. */
  readonly durationMs: number;
  /** For what is still spoken when the load has ended. */
  readonly drainMsMax: number;
  /** Requests for whole files meanwhile. */
  readonly wholesPerSecond?: number;
  /** Single requests after the end of the load; `afterMs` to the first. */
  readonly probes?: { readonly afterMs: number; readonly everyMs: number; readonly count: number };
  /** Counts a 503 at the handshake of a WebSocket as a refusal; by default the visit has failed. */
  readonly mayRefuseHandshakes?: boolean;
}

type Transport = Arrival['transport'];

/** Something that the client does at its time. */
interface Act {
  readonly atMs: number;
  readonly run: (dueMs: number) => void;
}

const clockMs = 10;
const noProbes = { afterMs: 0, everyMs: 0, count: 0 };
/** The answer to a handshake that the service refuses. */
const handshakeRefusal = 'HTTP/1.1 503 ';

const evenly = (count: number, fromMs: number, everyMs: number, run: Act['run']): Act[] =>
  Array.from({ length: count }, (_, i) => ({ atMs: fromMs + i * everyMs, run }));

/** Connections that listeners use one after the other. */
class Connections {
  readonly #target: Target;
  readonly #all = new Set<SpeechStream>();
  /** Free when their listener has heard everything. */
  readonly #resting: Record<Transport, { readonly stream: SpeechStream; readonly freeAtMs: number }[]> = {
    http: [],
    ws: [],
  };
  #made = 0;

  constructor(target: Target) {
    this.#target = target;
  }

  /** One that no listener uses; a new one has the next key. */
  take(transport: Transport, nowMs: number): SpeechStream {
    const resting = this.#resting[transport];
    const free = resting.findLastIndex(({ freeAtMs }) => freeAtMs <= nowMs);
    if (free >= 0) return resting.splice(free, 1)[0]!.stream;
    const key = keyOf(this.#target, this.#made++);
    const stream = new (transport === 'http' ? HttpStream : SocketStream)(this.#target, key);
    this.#all.add(stream);
    return stream;
  }

  rest(transport: Transport, stream: SpeechStream, freeAtMs: number): void {
    this.#resting[transport].push({ stream, freeAtMs });
  }

  lost(stream: SpeechStream): void {
    this.#all.delete(stream);
  }

  close(): void {
    for (const stream of this.#all) stream.close();
  }
}

export type CrowdFigures = Awaited<ReturnType<typeof crowd>>;

export const crowd = async (order: CrowdOrder) => {
  const { arrivals, drainMsMax, durationMs, target, texts, warmUpMs } = order;
  const { probes = noProbes, wholesPerSecond = 0 } = order;
  const loadMs = warmUpMs + durationMs;
  const connections = new Connections(target);
  const faults = new Tally();
  const clock = new LoopClock(clockMs, performance.now());
  const visits: Record<Transport, Visit[]> = { http: [], ws: [] };
  const probed: Visit[] = [];
  const wholes: WholeVisit[] = [];
  const aborts = new AbortController();
  let [visitsLeft, wholesLeft] = [0, 0];
  let audioMs = 0;

  const visit = (transport: Transport, text: string, dueMs: number): Visit => {
    const askedMs = performance.now();
    const stream = connections.take(transport, askedMs);
    const playback = new Playback();
    playback.begin(dueMs);
    const met: Visit = {
      ...{ dueMs, outcome: 'failed', firstAudioMs: null, dryMs: 0, refusalMs: null },
      clientLateMs: askedMs - dueMs,
    };
    let [writtenMs, heardMs] = [askedMs, 0];
    visitsLeft++;
    const refuse = (): void => {
      met.outcome = 'refused';
      // A WebSocket has an error for the text and one for the flush.
      met.refusalMs ??= performance.now() - writtenMs;
    };
    stream.request(text, {
      onWritten: () => (writtenMs = performance.now()),
      onAudio: (receivedMs) => {
        audioMs += receivedMs - heardMs;
        heardMs = receivedMs;
        const nowMs = performance.now();
        const arrival = playback.audio(receivedMs, nowMs);
        if (arrival?.kind === 'first') met.firstAudioMs = arrival.waitedMs;
        if (arrival?.kind !== 'dry') return;
        // What this process itself was late by is no gap.
        met.dryMs = Math.max(met.dryMs, arrival.waitedMs - clock.latenessMs(arrival.sinceMs, nowMs));
      },
      onRefused: refuse,
      onEnd: () => {
        visitsLeft--;
        if (met.refusalMs === null && met.firstAudioMs === null) faults.add('a visit without audio');
        else if (met.refusalMs === null) met.outcome = 'admitted';
        const nowMs = performance.now();
        connections.rest(transport, stream, nowMs + playback.aheadMs(nowMs));
      },
      onError: ({ message }) => {
        visitsLeft--;
        connections.lost(stream);
        if (order.mayRefuseHandshakes === true && message.includes(handshakeRefusal)) {
          refuse();
          return;
        }
        met.outcome = 'failed';
        faults.add(`${transport}: ${message}`);
      },
    });
    return met;
  };

  const askWhole = async (dueMs: number): Promise<void> => {
    const { format, keys, port, voice } = target;
    const index = wholes.length + wholesLeft++;
    const key = keyOf(target, keys.length - 1 - (index % keys.length));
    const request = speechRequest({
      key,
      text: texts[index % texts.length]!,
      voice,
      format,
      path: '/v1/tts',
    });
    const { body, error, headers, status } = await exchange(port, request, { signal: aborts.signal });
    wholesLeft--;
    const isRefused = status === 503 && headers.has('retry-after');
    const isServed = error === null && status === 200;
    if (!isRefused && !isServed)
      faults.add(`whole file: ${error?.message ?? `the service answered ${status}`}`);
    wholes.push({
      outcome: isServed ? 'admitted' : isRefused ? 'refused' : 'failed',
      waitedMs: performance.now() - dueMs,
      audioMs: wholeAudioMs(target.format, body.length),
    });
  };

  let [audioAtStartMs, audioAtEndMs, clientMs] = [0, 0, 0];
  let cpu = process.cpuUsage();
  const acts: Act[] = [
    ...arrivals.map(({ atMs, text, transport }) => ({
      atMs,
      run: (dueMs: number) => void visits[transport].push(visit(transport, texts[text]!, dueMs)),
    })),
    ...evenly(
      Math.floor((wholesPerSecond * loadMs) / 1000),
      0,
      1000 / wholesPerSecond,
      (dueMs) => void askWhole(dueMs),
    ),
    ...evenly(
      probes.count,
      loadMs + probes.afterMs,
      probes.everyMs,
      (dueMs) => void probed.push(visit('http', texts[0]!, dueMs)),
    ),
    {
      atMs: warmUpMs,
      run: () => {
        audioAtStartMs = audioMs;
        cpu = process.cpuUsage();
      },
    },
    {
      atMs: loadMs,
      run: () => {
        audioAtEndMs = audioMs;
        const { system, user } = process.cpuUsage(cpu);
        clientMs = (system + user) / 1000;
      },
    },
  ].toSorted((a, b) => a.atMs - b.atMs);

  const clockTimer = setInterval(() => clock.tick(performance.now()), clockMs);
  const startedMs = performance.now();
  for (const { atMs, run } of acts) {
    const dueMs = startedMs + atMs;
    // A timer counts whole milliseconds, and must not come early.
    for (let leftMs = dueMs - performance.now(); leftMs > 0; leftMs = dueMs - performance.now())
      await sleep(Math.ceil(leftMs));
    run(dueMs);
  }
  const drainEndMs = startedMs + loadMs + drainMsMax;
  while (performance.now() < drainEndMs && visitsLeft + wholesLeft > 0) await sleep(10);
  const drainMs = Math.max(0, performance.now() - startedMs - loadMs);
  if (visitsLeft > 0) faults.add('a visit that did not end in time', visitsLeft);
  connections.close();
  aborts.abort();
  while (wholesLeft > 0) await sleep(1);
  clearInterval(clockTimer);

  const isCounted = ({ dueMs }: Visit) => dueMs >= startedMs + warmUpMs && dueMs < startedMs + loadMs;
  const [http, ws] = [visits.http.filter(isCounted), visits.ws.filter(isCounted)];
  return {
    visits: figuresOf([...http, ...ws]),
    http: figuresOf(http),
    ws: figuresOf(ws),
    wholes: wholeFiguresOf(wholes),
    /** Seconds of speech delivered each second, without whole files. */
    servedPerSecond: (audioAtEndMs - audioAtStartMs) / durationMs,
    /** Speech that was delivered, or still missing, after the end of the load. */
    owedMs: audioMs - audioAtEndMs,
    /** Until the last visit was over. */
    drainMs,
    /** Milliseconds to first audio of each probe; `null`: refused, or no audio. */
    probes: probed.map(({ firstAudioMs, outcome }) => (outcome === 'admitted' ? firstAudioMs : null)),
    /** What failed, most frequent first. */
    faults: faults.toString(),
    /** Cores that this client used. */
    clientCores: clientMs / durationMs,
  };
};
