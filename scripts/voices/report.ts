/** What a pack is and how it speaks here, on one screen. */
import type { VoicePack } from '../../src/threads/voices.js';
import { formatTable } from '../table.js';
import type { Examined } from './packs.js';

/** A pack may have hundreds of voices. */
const VOICES_SHOWN_MAX = 12;

/** Each value once, in words. */
export const unique = (values: readonly (string | number)[]): string => [...new Set(values)].join(', ');

export const formatBytes = (bytes: number): string =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

export const namesOf = ({ voices }: VoicePack, shownMax: number): string => {
  const shown = voices.slice(0, shownMax).map(({ id }) => id);
  const more = voices.length - shown.length;
  return shown.join(', ') + (more > 0 ? `, and ${more} more` : '');
};

const speedRows = (outcome: Examined['outcome']): readonly (readonly [string, string])[] => {
  if ('fault' in outcome) return [['refused', outcome.fault]];
  const { realTimeFactor, firstChunkMs, stepMsMax, loadMs, peakMiB } = outcome.result;
  const times = realTimeFactor > 0 ? (1 / realTimeFactor).toPrecision(2) : 'many';
  return [
    [
      'speed here',
      `real-time factor ${realTimeFactor}: ${Number(times)} times as fast as speech, on one core`,
    ],
    ['first chunk', `after ${firstChunkMs} ms; the longest step takes ${stepMsMax} ms`],
    ['loading', `${loadMs} ms; the process that tried it had ${peakMiB} MiB`],
  ];
};

/** One row for each graph, or for the GPU as a whole. */
const gpuRows = (onGpu: Examined['onGpu']): readonly (readonly [string, string])[] => {
  if (onGpu === null) return [];
  const { device, outcome } = onGpu;
  const named = ['GPU', `${device.name ?? 'not named'}, by ${device.provider}`] as const;
  if ('fault' in outcome) return [['GPU', `cannot be used: ${outcome.fault}`]];
  const { graphs = {}, result } = outcome;
  const rows = Object.entries(graphs).map(
    ([graph, place]) => ['graph', `${graph} runs on the ${place}`] as const,
  );
  return [named, ...rows, ['with it', `real-time factor ${result.realTimeFactor}`]];
};

/** What its models take in memory, on one thread. */
export const bytesOf = ({ modelBytes, sharedBytes = 0 }: VoicePack): number => modelBytes + sharedBytes;

export const describePack = ({ pack, outcome, onGpu }: Examined): string => {
  const { engine, voices, licence, notes = [] } = pack;
  const rows: (readonly [string, string])[] = [
    ['format', engine],
    ['voices', `${voices.length}: ${namesOf(pack, VOICES_SHOWN_MAX)}`],
    ['language', unique(voices.map(({ language }) => language))],
    ['sample rate', `${unique(voices.map(({ sampleRateHz }) => sampleRateHz))} Hz`],
    ['licence', licence ?? 'not stated in the files: see the page that you have them from'],
    ['models', formatBytes(bytesOf(pack))],
    ...notes.map((note) => ['note', note] as const),
    ...speedRows(outcome),
    ...gpuRows(onGpu),
  ];
  return formatTable(rows.map(([what, value]) => [`  ${what}`, value]));
};
