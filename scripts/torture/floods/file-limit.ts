/**
 * More connections than the process may have files: what it keeps for itself must not be taken, who listens is not
 * disturbed, and it serves again as soon as they leave.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { readFrontCpuMs } from '../../rig-old/process-facts.js';
import { leftoversOf } from '../leftovers.js';
import { notRun, type Scenario } from '../scenario.js';
import { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import { ByteClient, CountingSocket, handshakeRequest } from './clients.js';

const fault = 'file limit';
const filesMax = 400;
const injected = `connections to a process that may open ${String(filesMax)} files`;
const watchedMs = 5_000;
/** Of a core, while connections stand in the queue: one that is asked for all the time takes all of it. */
const cpuShareMax = 0.25;
const settleMs = 500;

export const fileLimit: Scenario = {
  name: 'file-limit',
  about: 'more connections than the process may have files open (prlimit)',
  defaultCount: 1_000,
  async run({ count, progress }) {
    const { error } = spawnSync('prlimit', ['--version']);
    if (error !== undefined) return [notRun(fault, injected, `prlimit (util-linux): ${error.message}`)];
    const service = await TortureService.start({ launcher: ['prlimit', `--nofile=${String(filesMax)}`] });
    try {
      const voice = (await speakersOf(service))[0]!;
      const [key = '', other = ''] = await service.makeKeys(2);
      const listener = new CountingSocket(service.port, key);
      await listener.opened();
      listener.start(voice, 'a');
      await sleep(settleMs);
      const filesBefore = service.openFiles;
      const clients: ByteClient[] = [];
      for (let i = 0; i < count; i++) {
        const client = new ByteClient(service.port);
        clients.push(client);
        // WebSockets stay; plain connections would be gone by themselves.
        client.socket.write(handshakeRequest(other));
        if (i % 50 === 0) await sleep(1);
      }
      await sleep(settleMs);
      const cpuBeforeMs = readFrontCpuMs(service.pid) ?? 0;
      const startedMs = performance.now();
      let turns = 0;
      let files = 0;
      for (; performance.now() - startedMs < watchedMs; turns++) {
        files = Math.max(files, service.openFiles);
        progress(`${String(files)} files open, ${String(turns)} utterances`);
        listener.send({ send_text: 'Still here.', context_id: 'a' });
        listener.send({ flush: true, context_id: 'a' });
        if (!(await listener.until('flush_completed', turns + 1, 5_000))) break;
        await sleep(200);
      }
      const cpuMs = (readFrontCpuMs(service.pid) ?? 0) - cpuBeforeMs;
      const cpuShare = cpuMs / (performance.now() - startedMs);
      const accepted = clients.filter(({ statuses }) => statuses[0] === '101').length;
      const closed = clients.filter(({ isClosed }) => isClosed).length;
      for (const client of clients) client.reset();
      const left = await leftoversOf(service, filesBefore, [other], voice, { sockets: 1, contexts: 1 });
      listener.close();
      const exit = await service.stop();
      const outcome = [
        `${String(accepted)} WebSockets taken, ${String(closed)} connections closed at once, ${String(files)} files open at most`,
        `front thread at ${String(Math.round(cpuShare * 100))} % of a core`,
        `${String(turns)} utterances of one who was there before, ${String(service.faultCount)} errors logged`,
        left.length === 0 ? 'nothing left over' : `LEFT: ${left.join('; ')}`,
      ];
      const held =
        files < filesMax &&
        cpuShare < cpuShareMax &&
        turns > 3 &&
        listener.of('flush_completed') === turns &&
        service.faultCount === 0 &&
        left.length === 0 &&
        exit.code === 0;
      return [{ fault, injected, count, outcome: outcome.join('; '), held }];
    } finally {
      await service.kill();
    }
  },
};
