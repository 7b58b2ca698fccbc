/**
 * More connections than the process may have open files: the service must keep the files that it needs itself, its
 * listeners are not disturbed, and it serves again as soon as the connections close.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { readFrontCpuMs } from '../../rig/process-facts.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { Service } from '../../rig/service.js';
import { encodeHandshake } from '../../rig/socket.js';
import { leftoversOf } from '../checks.js';
import { notRun, rowOf, unmet, type Scenario } from '../scenario.js';
import { CountingSocket } from './counting-socket.js';

const filesMax = 400;
const named = {
  fault: 'file limit',
  injected: `connections to a process that may open ${filesMax} files`,
};
const watchedMs = 5_000;
/** Of a core, while connections wait in the queue: polling them would take a whole core. */
const cpuShareMax = 0.25;
const settleMs = 500;

export const fileLimit: Scenario = {
  name: 'file-limit',
  about: 'more connections than the process may have files open (prlimit)',
  defaultCount: 1_000,
  async run({ count, progress }) {
    const { error } = spawnSync('prlimit', ['--version']);
    if (error !== undefined) return [notRun(named, `prlimit (util-linux): ${error.message}`)];
    const service = await Service.start({ launcher: ['prlimit', `--nofile=${filesMax}`] });
    try {
      const voice = (await service.voices())[0]!;
      const [key = '', other = ''] = await service.makeKeys(2);
      const listener = new CountingSocket(service.port, key);
      await listener.opened();
      listener.start(voice, 'a');
      await sleep(settleMs);
      const filesBefore = service.openFiles;
      const clients: RawConnection[] = [];
      for (let i = 0; i < count; i++) {
        const client = new RawConnection(service);
        clients.push(client);
        // WebSockets stay open; the service would close plain connections.
        client.write(encodeHandshake(other));
        if (i % 50 === 0) await sleep(1);
      }
      await sleep(settleMs);
      const cpuBeforeMs = readFrontCpuMs(service.pid) ?? 0;
      const startedMs = performance.now();
      let utterances = 0;
      let files = 0;
      for (; performance.now() - startedMs < watchedMs; utterances++) {
        files = Math.max(files, service.openFiles);
        progress(`${files} files open, ${utterances} utterances`);
        listener.send({ send_text: 'Still here.', context_id: 'a' });
        listener.send({ flush: true, context_id: 'a' });
        if (!(await listener.until('flush_completed', utterances + 1, 5_000))) break;
        await sleep(200);
      }
      const cpuMs = (readFrontCpuMs(service.pid) ?? 0) - cpuBeforeMs;
      const cpuShare = cpuMs / (performance.now() - startedMs);
      const accepted = clients.filter(({ status }) => status === '101').length;
      const closed = clients.filter(({ isClosed }) => isClosed).length;
      for (const client of clients) client.reset();
      listener.close();
      const left = await leftoversOf(service, filesBefore, [other]);
      const exit = await service.stop();
      const saw = [
        `${accepted} WebSockets accepted, ${closed} connections closed at once, at most ${files} open files`,
        `front thread at ${Math.round(cpuShare * 100)} % of a core`,
        `${utterances} utterances of an earlier listener`,
      ].join('; ');
      const conditions = {
        'the process keeps files for itself': files < filesMax,
        'waiting connections cost no core': cpuShare < cpuShareMax,
        'an earlier listener hears its utterances':
          utterances > 3 && listener.of('flush_completed') === utterances,
        'no errors logged': service.log.errors === 0,
        'exit 0': exit.code === 0,
      };
      return [rowOf(named, { count, saw, wrong: [...left, ...unmet(conditions)] })];
    } finally {
      await service.kill();
    }
  },
};
