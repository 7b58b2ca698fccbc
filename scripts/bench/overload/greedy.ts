/** A greedy key does its worst, as in `npm run torture -- greedy-...`, while another key asks for whole files. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadProcess } from '../../rig/load-process.js';
import { minuteText } from '../../rig/texts.js';
import type { AttackKind } from '../../torture/greedy/attack.js';
import type { GreedyLoad } from '../../torture/greedy/load.js';
import type { Load } from '../load.js';
import type { WholesFigures } from '../throughput.js';
import type { Timing } from './phases.js';
import { awaitIdle, describeLooks, watched, type Subject } from './watch.js';

const attackEntry = new URL('../../torture/greedy/load.js', import.meta.url);
/** The attack shares the cores with the service, whose fairness is measured: it gets what the others leave. */
const launcher = ['nice', '-n', '19'];
const settleMs = 1_000;
const warmUps = 5;

/** Of about 2 s of speech, and of about a minute. */
const files = { short: 'Hello there, how are you today?', long: minuteText } as const;
export type FileLength = keyof typeof files;

/** `text` is the flood, and so the fifth of the greedy scenarios. */
const attacks: Readonly<
  Record<'flood' | 'greedy', readonly (readonly [AttackKind, readonly FileLength[]])[]>
> = {
  flood: [
    ['text', ['short', 'long']],
    ['unread', ['short', 'long']],
  ],
  greedy: [
    ['sockets', ['short']],
    ['bodies', ['short']],
    ['frames', ['short']],
    ['parsing', ['short']],
  ],
};

/** What another key met, in calm and beside a greedy one. */
export interface GreedyOutcome {
  readonly kind: AttackKind;
  readonly file: FileLength;
  readonly calm: WholesFigures;
  readonly attacked: WholesFigures;
}

export const greedyFiles = async (
  part: keyof typeof attacks,
  load: Load,
  { service, target }: Subject,
  counts: Timing['wholes'],
  say: (text: string) => void,
): Promise<GreedyOutcome[]> => {
  const { keys, port, voice } = target;
  /** With a key of another account than the greedy one. */
  const ask = (file: FileLength, count: number = counts[file]): Promise<WholesFigures> =>
    load.call('wholes', { port, key: keys[1]!, voice, text: files[file], count, askMsMax: counts.askMsMax });
  const outcomes: GreedyOutcome[] = [];
  await ask('short', warmUps);
  for (const [kind, lengths] of attacks[part]) {
    const attack: GreedyLoad = new LoadProcess(attackEntry, undefined, launcher);
    try {
      const calms: WholesFigures[] = [];
      for (const file of lengths) calms.push(await ask(file));
      await attack.call('begin', { port, key: keys[0]!, voice, kind });
      await sleep(settleMs);
      const { looks } = await watched(service, async () => {
        for (const [i, file] of lengths.entries())
          outcomes.push({ kind, file, calm: calms[i]!, attacked: await ask(file) });
      });
      const { outcome, faults } = await attack.call('end');
      const fault = faults.length === 0 ? '' : `; FAULTS: ${faults.slice(0, 3).join('; ')}`;
      say(`greedy, ${kind}: ${outcome}${fault}${describeLooks(looks)}`);
      await awaitIdle(service);
      await sleep(settleMs);
    } finally {
      attack.close();
    }
  }
  return outcomes;
};
