/** The process of a greedy key. */
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import { Tally } from '../../rig/tally.js';
import type { Attack, AttackKind, Target } from './attack.js';
import { bodiesAttack, parsingAttack } from './body-attacks.js';
import { framesAttack, socketsAttack, textAttack, unreadTextAttack } from './socket-attacks.js';

const attacks: Readonly<Record<AttackKind, Attack>> = {
  sockets: socketsAttack,
  bodies: bodiesAttack,
  text: textAttack,
  unread: unreadTextAttack,
  frames: framesAttack,
  parsing: parsingAttack,
};

const answers = new Tally();
const faults: string[] = [];
const loops: Promise<void>[] = [];
let isStopped = false;
let finish: Awaited<ReturnType<Attack>> = () => undefined;

const loop = (count: number, once: (loop: number) => Promise<void>): void => {
  for (let i = 0; i < count; i++)
    loops.push(
      (async () => {
        while (!isStopped) await once(i);
      })(),
    );
};

const calls = {
  begin: async ({ kind, ...target }: Target & { readonly kind: AttackKind }): Promise<void> => {
    finish = await attacks[kind]({ ...target, answers, faults, loop });
  },
  end: async (): Promise<{ count: number; outcome: string; faults: readonly string[] }> => {
    isStopped = true;
    await Promise.all(loops);
    await finish();
    return { count: answers.sum, outcome: `answers ${answers.toString()}`, faults };
  },
};
export type GreedyLoad = LoadProcess<typeof calls>;

serveLoad(calls);
