/** A greedy key does its worst, as in `npm run torture -- greedy-...`, while another key asks for whole files. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadProcess } from '../../rig/load-process.js';
import { minuteText } from '../../rig/texts.js';
import type { AttackKind } from '../../torture/greedy/attack.js';
import type { GreedyLoad } from '../../torture/greedy/load.js';
import type { Row } from '../report.js';
import type { OverloadLoad } from './load.js';
import type { Timing } from './phases.js';
import { type FileLength, type GreedyOutcome, greedyRow } from './rows.js';
import { awaitIdle, describeLooks, watched, type Subject } from './watch.js';
import type { WholesFigures } from './wholes.js';

const attackEntry = new URL('../../torture/greedy/load.js', import.meta.url);
/** The attack shares the cores with the service, whose fairness is measured: it gets what the others leave. */
const launcher = ['nice', '-n', '19'];
const settleMs = 1_000;
const warmUps = 5;

const files: Readonly<Record<FileLength, string>> = {
  short: 'Hello there, how are you today?',
  long: minuteText,
};

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

export class GreedyRun {
  readonly figures: GreedyOutcome[] = [];
  readonly #load: OverloadLoad;
  readonly #subject: Subject;
  readonly #counts: Timing['wholes'];
  readonly #say: (text: string) => void;

  constructor(load: OverloadLoad, subject: Subject, counts: Timing['wholes'], say: (text: string) => void) {
    this.#load = load;
    this.#subject = subject;
    this.#counts = counts;
    this.#say = say;
  }

  async rows(part: 'flood' | 'greedy'): Promise<Row[]> {
    const rows: Row[] = [];
    await this.#ask('short', warmUps);
    for (const [kind, lengths] of attacks[part]) rows.push(...(await this.#attack(kind, lengths)));
    return rows;
  }

  async #attack(kind: AttackKind, lengths: readonly FileLength[]): Promise<Row[]> {
    const { service, target } = this.#subject;
    const attack: GreedyLoad = new LoadProcess(attackEntry, undefined, launcher);
    const figures: GreedyOutcome[] = [];
    try {
      const calms: WholesFigures[] = [];
      for (const file of lengths) calms.push(await this.#ask(file));
      await attack.call('begin', { port: target.port, key: target.keys[0]!, voice: target.voice, kind });
      await sleep(settleMs);
      const { looks } = await watched(service, async () => {
        for (const [i, file] of lengths.entries())
          figures.push({ kind, file, calm: calms[i]!, attacked: await this.#ask(file) });
      });
      const { outcome, faults } = await attack.call('end');
      const fault = faults.length === 0 ? '' : `; FAULTS: ${faults.slice(0, 3).join('; ')}`;
      this.#say(`greedy, ${kind}: ${outcome}${fault}${describeLooks(looks)}`);
      await awaitIdle(service);
      await sleep(settleMs);
    } finally {
      attack.close();
    }
    this.figures.push(...figures);
    return figures.map(greedyRow);
  }

  /** Asks with a key of another account than the greedy one. */
  #ask(file: FileLength, count = this.#counts[file]): Promise<WholesFigures> {
    const { keys, port, voice } = this.#subject.target;
    const { askMsMax } = this.#counts;
    return this.#load.call('wholes', { port, key: keys[1]!, voice, text: files[file], count, askMsMax });
  }
}
