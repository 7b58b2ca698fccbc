/** Clients that are gone with no word: neither FIN nor RST comes through the cable that was cut. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { leftoversOf } from '../leftovers.js';
import { Neighbours } from '../neighbours/neighbours.js';
import { describeNeighbours, isUndisturbed } from '../neighbours/report.js';
import { notRun, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import { Cable } from './network.js';

const clientPath = fileURLToPath(new URL('./client-process.js', import.meta.url));
/** Above the longest bound on silence, a minute. */
const droppedMsMax = 90_000;
const settleMs = 500;
const keyCount = 20;
const fault = 'half-open TCP';
const injected = 'the cable of a network namespace cut, then the clients killed: neither FIN nor RST arrives';

const torture = async (cable: Cable, { count, seed, progress }: TortureOptions): Promise<TortureRow> => {
  const service = await TortureService.start({ env: { HOST: '0.0.0.0' } });
  let neighbours: Neighbours | null = null;
  try {
    const voice = (await speakersOf(service))[0]!;
    const keys = await service.makeKeys(keyCount);
    await sleep(settleMs);
    const filesBefore = service.openFiles;
    const [program, ...parameters] = [...cable.launcher, process.execPath, clientPath] as const;
    const target = [cable.address, String(service.port), voice, String(count)];
    const client = spawn(program, [...parameters, ...target, ...keys], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const gone = once(client, 'exit').then(() => 'gone' as const);
    if ((await Promise.race([once(client.stdout, 'data'), gone])) === 'gone')
      throw new Error('the clients did not get through');
    const there = await service.status();
    const filesThere = service.openFiles;
    cable.cut();
    client.kill('SIGKILL');
    await gone;
    const cutMs = performance.now();
    neighbours = await Neighbours.start(service, seed);
    const listeners = 4;
    const elapsedMs = (): number => performance.now() - cutMs;
    let status = await service.status();
    while (elapsedMs() < droppedMsMax) {
      status = await service.status();
      const files = service.openFiles - filesBefore;
      if (status.requestsInFlight <= listeners && files <= 2 * listeners) break;
      progress(
        `${String(status.requestsInFlight)} in flight, ${String(files)} files, ${String(Math.round(elapsedMs() / 1000))} s after the cut`,
      );
      await sleep(500);
    }
    const seconds = Math.round(elapsedMs() / 1000);
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, keys.slice(0, 3), voice);
    const outcome = [
      `${String(there.requestsInFlight)} requests and sockets, ${String(filesThere - filesBefore)} connections before; all dropped within ${String(seconds)} s`,
      left.length === 0 ? 'nothing left over' : `LEFT: ${left.join('; ')}`,
      describeNeighbours(report),
    ].join('; ');
    const held =
      left.length === 0 &&
      elapsedMs() < droppedMsMax * 2 &&
      service.faultCount === 0 &&
      isUndisturbed(report);
    return { fault, injected, count, outcome, held: held && seconds * 1000 < droppedMsMax };
  } finally {
    neighbours?.close();
    await service.stop();
  }
};

export const halfOpen: Scenario = {
  name: 'half-open',
  about: 'clients gone with no FIN nor RST (Linux, root, iproute2)',
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
