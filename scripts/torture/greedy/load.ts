/** The process of a greedy key. */
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import type { Attack, AttackKind, AttackPlan, AttackReport, Target } from './attack.js';
import { BodiesAttack, ParsingAttack } from './body-attacks.js';
import { FramesAttack, SocketsAttack, TextAttack, UnreadTextAttack } from './socket-attacks.js';

const attacks: Readonly<Record<AttackKind, new (target: Target) => Attack>> = {
  sockets: SocketsAttack,
  bodies: BodiesAttack,
  text: TextAttack,
  unread: UnreadTextAttack,
  frames: FramesAttack,
  parsing: ParsingAttack,
};

let attack: Attack | null = null;

const calls = {
  begin: (plan: AttackPlan): Promise<void> => {
    attack = new attacks[plan.kind](plan);
    return attack.begin();
  },
  end: (): Promise<AttackReport> => {
    if (attack === null) throw new Error('the attack has not begun');
    return attack.end();
  },
};
export type GreedyLoad = LoadProcess<typeof calls>;

serveLoad(calls);
