/** The neighbours' process: they listen from the first command to the second, and then it reports. */
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../../rig-old/random.js';
import { sentences } from '../../rig-old/texts.js';
import type { NeighboursCommand, NeighboursPlan, NeighboursReport } from './report.js';
import { SocketNeighbour } from './socket-neighbour.js';
import { StreamNeighbour } from './stream-neighbour.js';

const tickMs = 20;
const probeEveryMs = 200;
/** For what is still spoken at the end. */
const endMsMax = 20_000;
const faultsToldMax = 10;

let utterances = 0;
let failures = 0;
let faultCount = 0;
const faults: string[] = [];
const onFault = (what: string): void => {
  faultCount++;
  if (faults.length < faultsToldMax) faults.push(what);
};

/** Asks a new connection each time: that connections are still taken is half of what is asked. */
class Probe {
  count = 0;
  msMax = 0;
  #askedMs: number | null = null;
  #nextMs = 0;
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  tick(nowMs: number): void {
    if (this.#askedMs !== null) this.msMax = Math.max(this.msMax, nowMs - this.#askedMs);
    else if (nowMs >= this.#nextMs) this.#ask(nowMs);
  }

  #ask(nowMs: number): void {
    this.#askedMs = nowMs;
    this.#nextMs = nowMs + probeEveryMs;
    const asked = request({ host: '127.0.0.1', port: this.#port, path: '/healthz', agent: false });
    asked.on('error', (error) => {
      onFault(`health probe: ${error.message}`);
      this.#askedMs = null;
    });
    asked.on('response', (response) => {
      if (response.statusCode !== 200) onFault(`health probe: ${String(response.statusCode)}`);
      response.resume();
      response.on('close', () => {
        if (this.#askedMs !== null) this.msMax = Math.max(this.msMax, performance.now() - this.#askedMs);
        this.count++;
        this.#askedMs = null;
      });
    });
    asked.end();
  }
}

const start = async (plan: NeighboursPlan): Promise<() => Promise<NeighboursReport>> => {
  let sentence = plan.seed;
  const random = seededRandom(plan.seed);
  const parts = (name: string) => ({
    plan,
    name,
    nextText: () => sentences[sentence++ % sentences.length]!,
    random,
    onUtterance: () => utterances++,
    onFault,
    onFailure: (what: string) => {
      if (plan.toleratesFailures) failures++;
      else onFault(what);
    },
  });
  const sockets = Array.from(
    { length: plan.sockets },
    (_, i) => new SocketNeighbour(parts(`socket ${String(i)}`)),
  );
  const streams = Array.from(
    { length: plan.streams },
    (_, i) => new StreamNeighbour(parts(`stream ${String(i)}`)),
  );
  await Promise.all(sockets.map((socket) => socket.opened()));
  const probe = new Probe(plan.port);
  const all = [...sockets, ...streams];
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const neighbour of all) neighbour.tick(nowMs);
    probe.tick(nowMs);
  }, tickMs);
  return async () => {
    for (const neighbour of all) neighbour.end();
    const endMs = performance.now() + endMsMax;
    while (performance.now() < endMs && !all.every(({ isOver }) => isOver)) await sleep(tickMs);
    clearInterval(timer);
    for (const neighbour of all) neighbour.close();
    const maxOf = (name: 'firstAudioMsMax' | 'dryMsMax'): number =>
      Math.max(0, ...all.map(({ playback }) => playback[name]));
    return {
      utterances,
      failures,
      audioMs: all.reduce((sum, { playback }) => sum + playback.audioMs, 0),
      firstAudioMsMax: maxOf('firstAudioMsMax'),
      dryMsMax: maxOf('dryMsMax'),
      probes: probe.count,
      probeMsMax: probe.msMax,
      faultCount,
      faults,
    };
  };
};

let end: (() => Promise<NeighboursReport>) | null = null;

process.once('disconnect', () => process.exit());

process.on('message', (command: NeighboursCommand) => {
  const answer = async (): Promise<void> => {
    if (command.type === 'start') {
      end = await start(command.plan);
      process.send?.({ type: 'started' });
      return;
    }
    const report = await end?.();
    process.send?.({ type: 'report', report });
  };
  answer().catch((error: unknown) => {
    process.send?.({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  });
});
