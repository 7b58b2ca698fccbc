/** Faults in a running service while neighbours listen: they hear no difference, and afterwards nothing is left over. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Service, type ServiceOptions, withService } from '../rig/service.js';
import { leftoversOf } from './checks.js';
import { Neighbours, type NeighbourOptions } from './neighbours.js';
import {
  rowOf,
  type Named,
  type Outcome,
  type Scenario,
  type TortureOptions,
  type TortureRow,
} from './scenario.js';

export interface FaultParts extends TortureOptions {
  readonly service: Service;
  readonly voice: string;
  /** Makes new keys. */
  readonly keys: (count: number) => Promise<string[]>;
}

/** Scales `count` for its kind. */
export interface Fault extends Named {
  readonly neighbours?: NeighbourOptions;
  /** It breaks parts of the service, which then logs errors. */
  readonly logsErrors?: boolean;
  readonly inject: (parts: FaultParts) => Promise<Outcome>;
}

/** Until the service is at rest after its start. */
const settleMs = 500;
/** Keys whose slots must be free at the end. */
const keysTriedMax = 3;

export const besideNeighbours = async (
  service: Service,
  fault: Fault,
  options: TortureOptions,
): Promise<TortureRow> => {
  const [voice = ''] = await service.voices();
  const made: string[] = [];
  const keys = async (count: number): Promise<string[]> => {
    const keysMade = await service.makeKeys(count);
    made.push(...keysMade);
    return keysMade;
  };
  await sleep(settleMs);
  const filesBefore = service.openFiles;
  const errorsBefore = service.log.errors;
  const neighbours = await Neighbours.start(service, options.seed, fault.neighbours);
  try {
    const progress = (text: string): void => options.progress(`${fault.fault}: ${text}`);
    const { count, saw, wrong } = await fault.inject({ ...options, progress, service, voice, keys });
    if (service.exit !== null) throw new Error(`the service ended at ${fault.fault}: ${service.stderr}`);
    const heard = await neighbours.end();
    progress('at its end');
    const left = await leftoversOf(service, filesBefore, made.slice(0, keysTriedMax));
    const errors = fault.logsErrors === true ? 0 : service.log.errors - errorsBefore;
    const logged = errors > 0 ? [`${errors} errors logged: ${service.log.errorLines.at(-1) ?? ''}`] : [];
    const all = [...wrong, ...logged, ...left, ...heard.wrong];
    return rowOf(fault, { count, saw: `${saw}; ${heard.saw}`, wrong: all });
  } finally {
    neighbours.close();
  }
};

/** One fault after the other, in one service. */
export const scenarioOf = (
  { name, about, defaultCount }: Omit<Scenario, 'run'>,
  faults: readonly Fault[],
  service: ServiceOptions = {},
): Scenario => ({
  ...{ name, about, defaultCount },
  run: (options) =>
    withService(service, async (running) => {
      const rows: TortureRow[] = [];
      for (const fault of faults) rows.push(await besideNeighbours(running, fault, options));
      return rows;
    }),
});
