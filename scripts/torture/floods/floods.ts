/** The scenarios of floods: one flood after the other to one service, while neighbours listen. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Service } from '../../rig/service.js';
import { describeLeftovers, leftoversOf } from '../checks.js';
import { describeNeighbours, isUndisturbed, Neighbours } from '../neighbours.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { leftOpen, longHeads, slowBodies, slowHeads } from './connection-floods.js';
import type { Flood } from './flood.js';
import { aborted, manyKeys, oneKey } from './request-floods.js';
import { slowReaders } from './slow-readers.js';
import {
  contextsOfAll,
  contextsOfOne,
  flushes,
  oversizedMessages,
  pings,
  startedAndClosed,
  tinyFrames,
} from './socket-floods.js';

const settleMs = 500;

export const runFlood = async (
  service: Service,
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
  const faultsBefore = service.log.errors;
  const neighbours = await Neighbours.start(service, seed);
  try {
    const { fault, injected } = flood;
    const show = (text: string): void => progress(`${fault}: ${text}`);
    const result = await flood.run({ service, voice, count, seed, keys, progress: show });
    const report = await neighbours.end();
    show('at its end');
    const left = await leftoversOf(service, filesBefore, made.slice(0, 2));
    const errors = service.log.errors - faultsBefore;
    for (const line of service.log.errorLines.slice(faultsBefore, faultsBefore + 3))
      process.stderr.write(`\n${line}\n`);
    const after = [
      result.outcome,
      errors === 0 ? '' : `${errors} ERRORS logged`,
      describeLeftovers(left),
      describeNeighbours(report),
    ];
    return {
      fault,
      injected,
      count: result.count,
      outcome: after.filter((part) => part !== '').join('; '),
      held: result.held && errors === 0 && left.length === 0 && isUndisturbed(report),
    };
  } finally {
    neighbours.close();
  }
};

const scenarioOf = (
  name: string,
  about: string,
  defaultCount: number,
  floods: readonly Flood[],
): Scenario => ({
  name,
  about,
  defaultCount,
  async run(options) {
    const service = await Service.start();
    try {
      const voices = await service.voices();
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
  'many requests: of one key, of many keys, and aborted',
  1_000,
  [oneKey, manyKeys, aborted],
);

export const sockets = scenarioOf(
  'sockets',
  'WebSockets: pings, tiny frames, contexts, flushes, messages too large',
  1_000,
  [pings, tinyFrames, startedAndClosed, flushes, contextsOfOne, contextsOfAll, oversizedMessages],
);

export const slow = scenarioOf(
  'slow-readers',
  'clients that ask for much speech and read little of it',
  1_000,
  [slowReaders],
);
