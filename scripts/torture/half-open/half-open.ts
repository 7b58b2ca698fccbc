/** Clients that vanish: the cable is cut, so neither FIN nor RST arrives. */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadProcess } from '../../rig/load-process.js';
import { freeDialectPorts, Service } from '../../rig/service.js';
import { describeLeftovers, leftoversOf } from '../checks.js';
import { describeNeighbours, isUndisturbed, Neighbours } from '../neighbours.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import type { HalfOpenLoad } from './load.js';

const namespace = `syrinx-torture-${String(process.pid)}`;
const [ours, theirs] = [`sxa${String(process.pid)}`, `sxb${String(process.pid)}`];

/** Of the range reserved for network tests. */
const oursAddress = '198.18.77.1';
const theirsAddress = '198.18.77.2';

const ip = (...parameters: string[]): void => {
  const { error, status, stderr } = spawnSync('ip', parameters, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`ip ${parameters.join(' ')}: ${stderr.trim()}`);
};

/** A network namespace at the other end of a virtual cable, which can be cut. Needs Linux, root and iproute2. */
class Cable {
  /** Of the service's end. */
  readonly address = oursAddress;
  /** Runs a command at the other end. */
  readonly launcher = ['ip', 'netns', 'exec', namespace] as const;

  /** @throws where the system does not allow it */
  static lay(): Cable {
    ip('netns', 'add', namespace);
    const cable = new Cable();
    try {
      ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs, 'netns', namespace);
      ip('address', 'add', `${oursAddress}/30`, 'dev', ours);
      ip('link', 'set', ours, 'up');
      ip('-n', namespace, 'address', 'add', `${theirsAddress}/30`, 'dev', theirs);
      ip('-n', namespace, 'link', 'set', theirs, 'up');
    } catch (error) {
      cable.remove();
      throw error;
    }
    return cable;
  }

  /** Nothing gets through any more; neither end learns about it. */
  cut(): void {
    ip('-n', namespace, 'link', 'set', theirs, 'down');
  }

  /** Idempotent. */
  remove(): void {
    spawnSync('ip', ['netns', 'delete', namespace]);
    spawnSync('ip', ['link', 'delete', ours]);
  }
}

const loadEntry = new URL('./load.js', import.meta.url);
/** More than the longest bound on silence, a minute. */
const droppedMsMax = 90_000;
const settleMs = 500;
const keyCount = 20;
const fault = 'half-open TCP';
const injected = 'the cable of a network namespace cut, then the clients killed: neither FIN nor RST arrives';

const torture = async (cable: Cable, { count, seed, progress }: TortureOptions): Promise<TortureRow> => {
  const service = await Service.start({
    env: {
      ...{ HOST: '0.0.0.0', ...freeDialectPorts },
      ...{ WYOMING_HOST: '0.0.0.0', WYOMING_ALLOW: '0.0.0.0/0', WYOMING_ACCOUNT: 'default' },
    },
  });
  let neighbours: Neighbours | null = null;
  try {
    const voice = (await service.voices())[0]!;
    const keys = await service.makeKeys(keyCount);
    await sleep(settleMs);
    const filesBefore = service.openFiles;
    const load: HalfOpenLoad = new LoadProcess(loadEntry, undefined, cable.launcher);
    await load.call('connect', {
      ...{ host: cable.address, port: service.port, dialectPorts: service.dialectPorts },
      ...{ voice, keys, count },
    });
    const before = await service.status();
    const filesConnected = service.openFiles;
    cable.cut();
    await load.kill();
    const cutMs = performance.now();
    neighbours = await Neighbours.start(service, seed);
    const neighbourCount = 4;
    const elapsedMs = (): number => performance.now() - cutMs;
    let status = await service.status();
    while (elapsedMs() < droppedMsMax) {
      status = await service.status();
      const files = service.openFiles - filesBefore;
      if (status.requestsInFlight <= neighbourCount && files <= 2 * neighbourCount) break;
      progress(
        `${status.requestsInFlight} in flight, ${files} files, ${Math.round(elapsedMs() / 1000)} s after the cut`,
      );
      await sleep(500);
    }
    const seconds = Math.round(elapsedMs() / 1000);
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, keys.slice(0, 3));
    const outcome = [
      `${before.requestsInFlight} requests and sockets, ${filesConnected - filesBefore} connections; all dropped within ${seconds} s`,
      describeLeftovers(left),
      describeNeighbours(report),
    ].join('; ');
    const held =
      left.length === 0 &&
      elapsedMs() < droppedMsMax * 2 &&
      service.log.errors === 0 &&
      isUndisturbed(report);
    return { fault, injected, count, outcome, held: held && seconds * 1000 < droppedMsMax };
  } finally {
    neighbours?.close();
    await service.stop();
  }
};

export const halfOpen: Scenario = {
  name: 'half-open',
  about: 'clients that vanish without FIN or RST (Linux, root, iproute2)',
  defaultCount: 300,
  async run(options) {
    let cable: Cable;
    try {
      cable = Cable.lay();
    } catch (error) {
      return [notRun(fault, injected, error instanceof Error ? error.message : String(error))];
    }
    try {
      return [await torture(cable, options)];
    } finally {
      cable.remove();
    }
  },
};
