/** Clients that vanish: the cable is cut, so neither FIN nor RST arrives. */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadProcess } from '../../rig/load-process.js';
import { freeDialectPorts, withService } from '../../rig/service.js';
import { besideNeighbours, type Fault } from '../beside.js';
import { notRun, unmet, type Scenario } from '../scenario.js';
import type { HalfOpenLoad } from './load.js';

const namespace = `syrinx-torture-${String(process.pid)}`;
const [ours, theirs] = [`sxa${String(process.pid)}`, `sxb${String(process.pid)}`];

/** Of the range reserved for network tests. */
const oursAddress = '198.18.77.1';
const theirsAddress = '198.18.77.2';
/** Runs a command at the other end of the cable. */
const launcher = ['ip', 'netns', 'exec', namespace];

const ip = (...parameters: string[]): void => {
  const { error, status, stderr } = spawnSync('ip', parameters, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`ip ${parameters.join(' ')}: ${stderr.trim()}`);
};

/** A virtual cable to a network namespace. @throws without Linux, root or iproute2 */
const layCable = (): void => {
  ip('netns', 'add', namespace);
  ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs, 'netns', namespace);
  ip('address', 'add', `${oursAddress}/30`, 'dev', ours);
  ip('link', 'set', ours, 'up');
  ip('-n', namespace, 'address', 'add', `${theirsAddress}/30`, 'dev', theirs);
  ip('-n', namespace, 'link', 'set', theirs, 'up');
};

/** Idempotent. */
const removeCable = (): void => {
  spawnSync('ip', ['netns', 'delete', namespace]);
  spawnSync('ip', ['link', 'delete', ours]);
};

const loadEntry = new URL('./load.js', import.meta.url);
/** More than the longest bound on silence, a minute. */
const droppedMsMax = 90_000;
const keyCount = 20;
/** In flight, and twice as many files. */
const neighbourCount = 4;

const vanished: Fault = {
  fault: 'half-open TCP',
  injected: 'the cable of a network namespace cut, then the clients killed: neither FIN nor RST arrives',
  async inject({ count, keys, progress, service, voice }) {
    const filesBefore = service.openFiles;
    const files = (): number => service.openFiles - filesBefore;
    const { dialectPorts, port } = service;
    const load: HalfOpenLoad = new LoadProcess(loadEntry, undefined, launcher);
    const order = { host: oursAddress, port, dialectPorts, voice, keys: await keys(keyCount), count };
    await load.call('connect', order);
    const { requestsInFlight } = await service.status();
    const connected = files();
    // Nothing gets through any more; neither end learns about it.
    ip('-n', namespace, 'link', 'set', theirs, 'down');
    await load.kill();
    const cutMs = performance.now();
    const elapsedMs = (): number => performance.now() - cutMs;
    let left = requestsInFlight;
    while ((left > neighbourCount || files() > 2 * neighbourCount) && elapsedMs() < droppedMsMax) {
      await sleep(500);
      left = (await service.status()).requestsInFlight;
      progress(`${left} in flight, ${files()} files, ${Math.round(elapsedMs() / 1000)} s after the cut`);
    }
    const seconds = Math.round(elapsedMs() / 1000);
    return {
      count,
      saw: `${requestsInFlight} requests and sockets, ${connected} connections; dropped within ${seconds} s`,
      wrong: unmet({ 'all are dropped in time': elapsedMs() < droppedMsMax }),
    };
  },
};

export const halfOpen: Scenario = {
  name: 'half-open',
  about: 'clients that vanish without FIN or RST (Linux, root, iproute2)',
  defaultCount: 300,
  async run(options) {
    const open = { WYOMING_HOST: '0.0.0.0', WYOMING_ALLOW: '0.0.0.0/0', WYOMING_ACCOUNT: 'default' };
    try {
      try {
        layCable();
      } catch (error) {
        return [notRun(vanished, error instanceof Error ? error.message : String(error))];
      }
      return await withService(
        { env: { HOST: '0.0.0.0', ...freeDialectPorts, ...open } },
        async (service) => [await besideNeighbours(service, vanished, options)],
      );
    } finally {
      removeCable();
    }
  },
};
