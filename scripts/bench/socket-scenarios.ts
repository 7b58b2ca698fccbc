/** Measurements over WebSockets. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Baseline } from './baseline-server.js';
import type { Heard, Load } from './load.js';
import { count, ms, row, type Row } from './report.js';
import type { FrameCost } from './sockets.js';
import type { Target } from './streams.js';
import { searchCapacity, type SearchSettings } from '../rig/capacity-search.js';
import { LoadProcess } from '../rig/load-process.js';
import { readMemory, readOpenFilesMax } from '../rig/process-facts.js';
import type { Service } from '../rig/service.js';
import { mean, median, percentile } from '../rig/statistics.js';
import * as texts from '../rig/texts.js';

const baselineEntry = new URL('./baseline-server.js', import.meta.url);

const idleSockets = 10_000;
/** Files that a process has open besides sockets: models, the store, its threads' own. */
const filesBesides = 200;
/** After opening and closing: the process collects garbage and releases buffers. */
const settleMs = 3_000;

/** @returns why so many sockets cannot be opened; `null` if they can */
const filesFault = (pids: Readonly<Record<string, number>>): string | null => {
  const needed = idleSockets + filesBesides;
  for (const [name, pid] of Object.entries(pids)) {
    const most = readOpenFilesMax(pid);
    if (most !== null && most < needed)
      return `not measured: ${name} may open ${count(most)} files and needs ${count(needed)} (raise \`ulimit -n\`)`;
  }
  return null;
};

/** @param service freshly started: memory freed earlier would hide what sockets take */
export const measureIdleSockets = async (load: Load, target: Target, service: Service): Promise<Row[]> => {
  const what = `Memory of each of ${count(idleSockets)} idle WebSockets`;
  const fault = filesFault({ 'the service': service.pid, 'the load': load.pid });
  if (fault !== null) {
    process.stderr.write(`${fault}\n`);
    return [row(what, fault)];
  }
  // The first sockets make the service load and compile code.
  await load.call('openIdle', { target, sockets: 200 });
  await load.call('closeIdle');
  await sleep(settleMs);
  const before = readMemory(service.pid);
  await load.call('openIdle', { target, sockets: idleSockets });
  await sleep(settleMs);
  const after = readMemory(service.pid);
  await load.call('closeIdle');
  if (before === null || after === null) return [row(what, 'not known on this system')];
  const each = (name: keyof typeof before) => count(Math.round((after[name] - before[name]) / idleSockets));
  const total = `${(before.pssBytes / 2 ** 20).toFixed(0)} to ${(after.pssBytes / 2 ** 20).toFixed(0)} MiB`;
  return [
    row(what, `${each('pssBytes')} bytes (PSS, ${total}), ${each('anonymousBytes')} of them anonymous`),
  ];
};

/** A number of sockets holds when p99 of first audio is at most this. */
const firstAudioP99MsMax = 200;
/** A reply plays for about nine seconds; p99 needs more than a hundred of them. */
const stepMs = 20_000;
const streamSearch: SearchSettings = {
  ...{ first: 50, growth: 1.5, max: 570, trials: 1 },
  ...{ refinements: 2, secondThoughts: 0 },
};
/** A key has nine slots. */
const socketsPerKey = 8;
export const streamKeysNeeded = Math.ceil(streamSearch.max / socketsPerKey);

const listen = (
  load: Load,
  target: Target,
  listeners: number,
  durationMs: number,
  watchedPid?: number,
): Promise<Heard> =>
  load.call('listen', {
    ...{ target, text: texts.replyText, transport: 'ws', listeners, spreadMs: 5_000, durationMs, watchedPid },
  });

export const measureSocketStreams = async (load: Load, target: Target): Promise<Row[]> => {
  const what = `WebSockets streaming at real time with p99 first audio within ${firstAudioP99MsMax} ms`;
  let best: Heard | null = null;
  const { held, failed } = await searchCapacity(streamSearch, async (sockets) => {
    const heard = await listen(load, target, sockets, stepMs);
    const p99Ms = percentile(heard.firstAudioMs, 0.99);
    process.stderr.write(`  ${sockets} sockets: p99 ${ms(p99Ms)}\n`);
    if (p99Ms <= firstAudioP99MsMax) best = heard;
    return p99Ms <= firstAudioP99MsMax;
  });
  return [heldRow(what, held, best, failed)];
};

const heldRow = (what: string, sockets: number, heard: Heard | null, failed: number | null): Row => {
  if (heard === null) return row(what, `not even ${failed}`);
  const { firstAudioMs, dry } = heard;
  const spread = [0.5, 0.95, 0.99].map((share) => `p${share * 100} ${ms(percentile(firstAudioMs, share))}`);
  const replies = `${firstAudioMs.length} replies, ${dry === 0 ? 'none' : dry} ever ran dry`;
  const limit = failed === null ? 'the most that was tried' : `${failed} did not hold`;
  return row(what, `${sockets} (${limit}): ${spread.join(', ')} (${replies})`);
};

const costSockets = 100;
const costMs = 10_000;

const perFrame = ({ frames, frontCpuMs }: FrameCost): number => (frontCpuMs * 1000) / frames;

/** The same frames at the same rate from the service and from the baseline, one after the other, twice. */
export const measureFrameCost = async (load: Load, target: Target, service: Service): Promise<Row[]> => {
  const frames = await load.call('record', { target, text: texts.replyText });
  const costs: { service: number[]; baseline: number[] } = { service: [], baseline: [] };
  let framesPerSecond = 0;
  for (let run = 0; run < 2; run++) {
    const heard = await listen(load, target, costSockets, costMs, service.pid);
    framesPerSecond = (heard.frames / heard.gaugedMs) * 1000;
    const baseline: Baseline = new LoadProcess(baselineEntry);
    const received = await baseline
      .call('listen', { frames, framesPerSecond, sockets: costSockets })
      .then((port) =>
        load.call('receive', {
          port,
          sockets: costSockets,
          warmUpMs: 2_000,
          durationMs: costMs,
          watchedPid: baseline.pid,
        }),
      )
      .finally(() => baseline.close());
    costs.service.push(perFrame(heard));
    costs.baseline.push(perFrame(received));
  }
  const [ours, theirs] = [mean(costs.service), mean(costs.baseline)];
  const rate = `${framesPerSecond.toFixed(0)} frames a second to ${costSockets} sockets`;
  return [
    row(
      'Front thread, time of a WebSocket frame',
      `${ours.toFixed(0)} µs (${(ours / theirs).toFixed(2)} x; ${rate})`,
    ),
    row('`ws` and node:http sending the same, time of a frame', `${theirs.toFixed(0)} µs`),
  ];
};

const contextsTogether = 5;
const roundsTogether = 80;
/** First audio of the last of them, as a multiple of what one has alone. */
const togetherMax = 3;

/** Contexts of one socket that begin to speak at once, against one that speaks alone. */
export const measureTogether = async (load: Load, target: Target): Promise<Row[]> => {
  const { aloneMs, togetherMs } = await load.call('speakTogether', {
    target,
    text: texts.replyText,
    contexts: contextsTogether,
    rounds: roundsTogether,
  });
  const last = togetherMs.map((round) => round.at(-1) ?? Number.POSITIVE_INFINITY);
  const ratio = median(last) / median(aloneMs);
  return [
    row(
      `First audio of ${contextsTogether} contexts of one WebSocket that begin at once`,
      `median ${ms(median(togetherMs.flat()))}, of the last ${ms(median(last))} (${ratio.toFixed(1)} x), ` +
        `worst ${ms(Math.max(...last))}; one alone ${ms(median(aloneMs))}`,
      `the last within ${togetherMax} x`,
      ratio <= togetherMax,
    ),
  ];
};
