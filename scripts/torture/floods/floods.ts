/** Floods of all kinds, one after the other, to one service; neighbours listen through each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { leftoversOf } from '../leftovers.js';
import { Neighbours } from '../neighbours/neighbours.js';
import { describeNeighbours, isUndisturbed } from '../neighbours/report.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import { leftOpen, longHeads, slowBodies, slowHeads } from './connection-floods.js';
import type { Flood } from './flood.js';
import { aborted, manyKeys, oneKey } from './request-floods.js';
import { slowReaders } from './slow-readers.js';
import {
  contextsOfAll,
  contextsOfKeys,
  flushes,
  oversizedMessages,
  pings,
  startedAndClosed,
  tinyFrames,
} from './socket-floods.js';

const settleMs = 500;

const runFlood = async (
  service: TortureService,
  flood: Flood,
  voice: string,
  { count, seed, progress }: TortureOptions,
): Promise<TortureRow> => {
  const made: string[] = [];
  const keys = async (wanted: number): Promise<string[]> => {
    const keysMade = await service.makeKeys(wanted);
    made.push(...keysMade);
    return keysMade;
  };
  const filesBefore = service.openFiles;
  const faultsBefore = service.faultCount;
  const neighbours = flood.hasNeighbours === false ? null : await Neighbours.start(service, seed);
  try {
    const { fault, injected } = flood;
    const said = (text: string): void => progress(`${fault}: ${text}`);
    const result = await flood.run({ service, voice, count, seed, keys, progress: said });
    const report = (await neighbours?.end()) ?? null;
    said('at its end');
    const left = await leftoversOf(service, filesBefore, made.slice(0, 2), voice);
    const errors = service.faultCount - faultsBefore;
    for (const line of service.faults.slice(faultsBefore, faultsBefore + 3))
      process.stderr.write(`\n${line}\n`);
    const after = [
      result.outcome,
      errors === 0 ? '' : `${String(errors)} ERRORS logged`,
      left.length === 0 ? 'nothing left over' : `LEFT: ${left.join('; ')}`,
      report === null ? 'no neighbours' : describeNeighbours(report),
    ];
    return {
      fault,
      injected,
      count: result.count,
      outcome: after.filter((part) => part !== '').join('; '),
      held: result.held && errors === 0 && left.length === 0 && (report === null || isUndisturbed(report)),
    };
  } finally {
    neighbours?.close();
  }
};

/** @param floods in their order */
export const scenarioOf = (
  name: string,
  about: string,
  defaultCount: number,
  floods: readonly Flood[],
): Scenario => ({
  name,
  about,
  defaultCount,
  async run(options) {
    const service = await TortureService.start();
    try {
      const voices = await speakersOf(service);
      await sleep(settleMs);
      const rows: TortureRow[] = [];
      for (const flood of floods) {
        rows.push(await runFlood(service, flood, voices[0]!, options));
        if (service.exit !== null) throw new Error(`the service ended at ${flood.fault}: ${service.stderr}`);
      }
      return rows;
    } finally {
      await service.stop();
    }
  },
});

export const connections = scenarioOf(
  'connections',
  'heads too long, connections left open, heads and bodies that trickle',
  1_000,
  [longHeads, leftOpen, slowHeads, slowBodies],
);

export const requests = scenarioOf(
  'requests',
  'requests in masses: of one key, of many, and aborted',
  1_000,
  [oneKey, manyKeys, aborted],
);

export const sockets = scenarioOf(
  'sockets',
  'WebSockets: pings, tiny frames, contexts, flushes, messages too large',
  1_000,
  [pings, tinyFrames, startedAndClosed, flushes, contextsOfKeys, contextsOfAll, oversizedMessages],
);

export const slow = scenarioOf('slow-readers', 'clients who have much spoken and read little of it', 1_000, [
  slowReaders,
]);
