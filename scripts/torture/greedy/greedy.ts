/**
 * The scenarios of a greedy key: it does its worst in one way, neighbours are served, and what it was granted must still be whole.
 * How fair the service stays, `npm run bench -- overload` measures with the same attacks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadProcess } from '../../rig/load-process.js';
import { scenarioOf } from '../beside.js';
import type { AttackKind } from './attack.js';
import type { GreedyLoad } from './load.js';

const loadEntry = new URL('./load.js', import.meta.url);
/** The attack shares the cores with the service: it gets what the others leave. */
const launcher = ['nice', '-n', '19'];

const greedyKey = (kind: AttackKind, about: string) =>
  scenarioOf({ name: `greedy-${kind}`, about, defaultCount: 30 }, [
    {
      fault: `a greedy key: ${kind}`,
      injected: about,
      async inject({ count, keys, progress, service, voice }) {
        const [key = ''] = await keys(1);
        const load: GreedyLoad = new LoadProcess(loadEntry, undefined, launcher);
        try {
          await load.call('begin', { port: service.port, key, voice, kind });
          progress(`attacked for ${count} s`);
          await sleep(count * 1_000);
          const report = await load.call('end');
          return { count: report.count, saw: report.outcome, wrong: report.faults };
        } finally {
          load.close();
        }
      },
    },
  ]);

/** Each counts the seconds. */
export const greedy = [
  greedyKey('sockets', 'one key opens WebSockets without end'),
  greedyKey('bodies', 'one key sends 200 bodies of a MiB at once, slowly'),
  greedyKey('text', 'one key opens nine WebSockets with 540 contexts and 50,000 characters each'),
  greedyKey('frames', 'one key sends small frames of all kinds over nine WebSockets as fast as it can'),
  greedyKey('parsing', 'one key sends bodies and messages that are expensive to parse'),
];
