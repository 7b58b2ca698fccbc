/**
 * The scenarios of a greedy key: it does its worst in one way, and the sentences of another key may be late by no more than
 * twice their calm time, or 50 ms. What the greedy key was granted must still be whole.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { endpointsOf, firstAudioMs, type Endpoint } from '../../rig/endpoints.js';
import { LoadProcess } from '../../rig/load-process.js';
import { withService, type Service } from '../../rig/service.js';
import { median, percentile } from '../../rig/statistics.js';
import { leftoversOf, ms } from '../checks.js';
import {
  rowOf,
  unmet,
  type Named,
  type Scenario,
  type TortureOptions,
  type TortureRow,
} from '../scenario.js';
import type { AttackKind } from './attack.js';
import type { GreedyLoad } from './load.js';

const loadEntry = new URL('./load.js', import.meta.url);
const lateMsMin = 50;
const settleMs = 1_000;
/** The attack shares the cores with the service, whose fairness is measured: it gets what the others leave. */
const launcher = ['nice', '-n', '19'];

const text = 'The kettle is on.';
const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
const waitMsMax = 30_000;
/** For what is left of a sentence that is not heard to its end. */
const restMs = 30;

/** Another key asks for one sentence after the other, over HTTP and over a WebSocket in turn, each on a new connection. */
class OtherKey {
  readonly #endpoints: readonly Endpoint[];
  /** What went wrong. */
  readonly faults: string[] = [];

  constructor(port: number, key: string, voice: string) {
    const { requests, sockets } = endpointsOf({ port, dialectPorts: {}, key, voice, text, format });
    this.#endpoints = [requests[0], sockets[0]];
  }

  /** @returns milliseconds to first audio of each */
  async sentences(count: number): Promise<number[]> {
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      try {
        times.push(await firstAudioMs(this.#endpoints[i % 2]!, waitMsMax));
      } catch (error) {
        times.push(waitMsMax);
        this.faults.push(`the other key: ${(error as Error).message}`);
      }
      await sleep(restMs);
    }
    return times;
  }
}

const describe = (times: readonly number[]): string =>
  `median ${median(times).toFixed(0)}, p95 ${percentile(times, 0.95).toFixed(0)}, most ${ms(Math.max(...times))}`;

const attackOnce = async (
  service: Service,
  kind: AttackKind,
  named: Named,
  { count, progress }: TortureOptions,
): Promise<TortureRow> => {
  const [greedyKey = '', otherKey = ''] = await service.makeKeys(2);
  const [voice = ''] = await service.voices();
  const filesBefore = service.openFiles;
  const other = new OtherKey(service.port, otherKey, voice);
  const load: GreedyLoad = new LoadProcess(loadEntry, undefined, launcher);
  try {
    await other.sentences(10);
    progress('calm before');
    const calm = await other.sentences(Math.ceil(count / 2));
    progress('attacked');
    await load.call('begin', { port: service.port, key: greedyKey, voice, kind });
    await sleep(settleMs);
    const attacked = await other.sentences(count);
    progress('at its end');
    const report = await load.call('end');
    await sleep(settleMs);
    progress('calm after');
    calm.push(...(await other.sentences(Math.ceil(count / 2))));
    load.close();
    const left = await leftoversOf(service, filesBefore, [greedyKey, otherKey]);
    const lateMsMax = Math.max(2 * percentile(calm, 0.95), lateMsMin);
    const conditions = {
      [`its p95 is within ${ms(lateMsMax)}`]: percentile(attacked, 0.95) <= lateMsMax,
      'no errors logged': service.log.errors === 0,
    };
    return rowOf(named, {
      count: report.count,
      saw: `${report.outcome}; first audio of another key: calm ${describe(calm)}; attacked ${describe(attacked)}`,
      wrong: [...other.faults, ...report.faults, ...unmet(conditions), ...left],
    });
  } finally {
    load.close();
  }
};

const scenarioOf = (kind: AttackKind, about: string): Scenario => ({
  name: `greedy-${kind}`,
  about,
  defaultCount: 100,
  run: (options) =>
    withService({}, async (service) => {
      await sleep(settleMs);
      const named = { fault: `a greedy key: ${kind}`, injected: about };
      return [await attackOnce(service, kind, named, options)];
    }),
});

/** Each counts the sentences of the other key. */
export const greedy: readonly Scenario[] = [
  scenarioOf('sockets', 'one key opens WebSockets without end'),
  scenarioOf('bodies', 'one key sends 200 bodies of a MiB at once, slowly'),
  scenarioOf('text', 'one key opens nine WebSockets with 540 contexts and 50,000 characters each'),
  scenarioOf('frames', 'one key sends small frames of all kinds over nine WebSockets as fast as it can'),
  scenarioOf('parsing', 'one key sends bodies and messages that are expensive to parse'),
];
