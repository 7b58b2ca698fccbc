/** The load of a soak, as a process of its own: all its clients, driven by one timer, and a report a second. */
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpClient } from './http-client.js';
import { IdleSockets } from './idle-sockets.js';
import { keyOfClient, keyOfHttpClient } from './keys.js';
import { LoopClock } from './loop-clock.js';
import type { LoadCommand, LoadReport } from './protocol.js';
import { SocketClient } from './socket-client.js';
import { Durations, Tally } from './tally.js';

/** How exactly words are sent and players are read for. */
const tickMs = 20;
const reportMs = 1_000;
const reportsAStep = 5;
/** Clients that come together begin one after the other. */
const spreadMsEach = 50;
const spreadMsMax = 3_000;
/** The same after a rest: it is no part of the soak how many can begin at once. */
const resumeMsEach = 200;
const resumeMsMax = 10_000;
/** For what is still spoken when all clients are stopped. */
const stopMsMax = 90_000;

type Command<T extends LoadCommand['type']> = Extract<LoadCommand, { type: T }>;

const report = (message: LoadReport): void => void process.send?.(message);

class Load {
  readonly #begin: Command<'begin'>;
  readonly #tally: Tally;
  readonly #clock: LoopClock;
  readonly #loopLate = new Durations();
  readonly #idle = new IdleSockets();
  readonly #http: HttpClient[] = [];
  #clients: SocketClient[] = [];
  #leaving: SocketClient[] = [];
  #made = 0;
  #lastTickMs: number;
  #nextReportMs: number;
  #reports = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(begin: Command<'begin'>) {
    this.#begin = begin;
    const nowMs = performance.now();
    this.#tally = new Tally(nowMs, (fault) => report({ type: 'fault', ...fault }));
    this.#clock = new LoopClock(tickMs, nowMs);
    this.#lastTickMs = nowMs;
    this.#nextReportMs = nowMs + reportMs;
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  async populate({ contexts, keys }: Command<'population'>): Promise<void> {
    const { target, settings } = this.#begin;
    const { seed, idleSockets, httpClients } = settings;
    const shared = { seed, target, clock: this.#clock, tally: this.#tally };
    if (this.#made === 0 && this.#http.length === 0) {
      await this.#idle.open({ ...shared, key: keys.idle }, idleSockets);
      for (let client = 0; client < httpClients; client++)
        this.#http.push(
          new HttpClient({ ...shared, client, key: keyOfHttpClient(keys, client) }, performance.now()),
        );
    }
    for (const client of this.#clients.splice(contexts)) {
      client.stop();
      this.#leaving.push(client);
    }
    const nowMs = performance.now();
    const more = contexts - this.#clients.length;
    const spreadMs = Math.min(spreadMsMax, more * spreadMsEach);
    // A number is not given twice: who left may still be speaking with its key.
    for (let i = 0; i < more; i++) {
      const client = this.#made++;
      const key = keyOfClient(keys, client);
      const beginMs = nowMs + (i / more) * spreadMs;
      this.#clients.push(new SocketClient({ ...shared, client, key, beginMs }));
    }
  }

  reset(): void {
    this.#tally.reset();
  }

  async rest(): Promise<void> {
    const all = [...this.#clients, ...this.#leaving, ...this.#http];
    for (const client of all) client.stop();
    const endMs = performance.now() + stopMsMax;
    const isOver = () => all.every(({ isGone }) => isGone);
    while (performance.now() < endMs && !isOver()) await sleep(tickMs);
    if (!isOver()) this.#tally.fault('answers', 'load', 'some clients could not end what they began');
  }

  /** Resolves when the last has begun. */
  async resume(): Promise<void> {
    const nowMs = performance.now();
    const all = [...this.#clients, ...this.#http];
    const spreadMs = Math.min(resumeMsMax, all.length * resumeMsEach);
    for (const [i, client] of all.entries()) client.resume(nowMs + (i / all.length) * spreadMs);
    await sleep(spreadMs);
  }

  async stop(): Promise<void> {
    await this.rest();
    this.#idle.close();
    clearInterval(this.#timer);
    this.#report();
    report({
      type: 'done',
      firstAudioMs: this.#tally.firstAudio.quantiles(),
      charges: this.#tally.charges,
    });
  }

  #tick(): void {
    const nowMs = performance.now();
    this.#loopLate.record(Math.max(0, nowMs - this.#lastTickMs - tickMs));
    this.#lastTickMs = nowMs;
    this.#clock.tick(nowMs);
    for (const client of this.#clients) client.tick(nowMs);
    for (const client of this.#leaving) client.tick(nowMs);
    if (this.#leaving.some(({ isGone }) => isGone))
      this.#leaving = this.#leaving.filter(({ isGone }) => !isGone);
    for (const client of this.#http) client.tick(nowMs);
    this.#idle.tick(nowMs);
    if (nowMs < this.#nextReportMs) return;
    this.#nextReportMs = nowMs + reportMs;
    this.#report();
  }

  #report(): void {
    const tally = this.#tally;
    const endsStep = ++this.#reports % reportsAStep === 0;
    const { user, system } = process.cpuUsage();
    report({
      type: 'tick',
      sockets: tally.sockets,
      streams: tally.streams,
      turns: tally.turns,
      contexts: tally.contexts,
      lives: tally.lives,
      requests: tally.requests,
      frames: tally.frames,
      audioMs: tally.audioMs,
      underruns: tally.underruns,
      unjudged: tally.unjudged,
      faults: tally.faults,
      firstAudioMs: tally.stepFirstAudio.quantiles(),
      loopLateMs: this.#loopLate.quantiles(),
      endsStep,
      cpuMs: (user + system) / 1000,
      rssBytes: process.memoryUsage.rss(),
    });
    if (!endsStep) return;
    tally.stepFirstAudio.reset();
    this.#loopLate.reset();
  }
}

let load: Load | null = null;

const run = async (command: LoadCommand): Promise<void> => {
  if (command.type === 'begin') {
    load = new Load(command);
    report({ type: 'ready' });
    return;
  }
  if (load === null) throw new Error('the load has not begun');
  switch (command.type) {
    case 'population':
      await load.populate(command);
      report({ type: 'ready' });
      return;
    case 'rest':
      await load.rest();
      report({ type: 'ready' });
      return;
    case 'resume':
      await load.resume();
      report({ type: 'ready' });
      return;
    case 'reset':
      load.reset();
      return;
    case 'stop':
      await load.stop();
  }
};

process.on('message', (command: LoadCommand) => {
  run(command).catch((error: unknown) =>
    report({
      type: 'failed',
      message: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }),
  );
});
// A terminal's Ctrl-C comes to all processes; the soak says when the load ends, and its end is the load's.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
