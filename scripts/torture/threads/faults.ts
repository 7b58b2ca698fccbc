/** A text makes a thread break by a sentence such as `Break by exit.` */

export const synthesisFaults = ['throw', 'exit', 'heap', 'spin'] as const;
export const actorFaults = ['actor-throw', 'actor-exit', 'actor-heap', 'actor-spin'] as const;

export type SynthesisFault = (typeof synthesisFaults)[number];
export type ActorFault = (typeof actorFaults)[number];
export type ThreadFault = SynthesisFault | ActorFault;

/** The thread speaks the first sentence before it breaks. */
export const breaking = (fault: ThreadFault): string => `Now it happens. Break by ${fault}. And it goes on.`;

export const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(new Array(2 ** 20).fill(hoard));
};

export const spin = (): never => {
  for (;;);
};
