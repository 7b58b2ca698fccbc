/** How threads are told to break: by a sentence, `Break by exit.` */

export const synthesisFaults = ['throw', 'exit', 'heap', 'spin'] as const;
export const actorFaults = ['actor-throw', 'actor-exit', 'actor-heap', 'actor-spin'] as const;

export type SynthesisFault = (typeof synthesisFaults)[number];
export type ActorFault = (typeof actorFaults)[number];
export type ThreadFault = SynthesisFault | ActorFault;

/** A text that is spoken for a while before the thread breaks. */
export const breaking = (fault: ThreadFault): string => `Now it happens. Break by ${fault}. And it goes on.`;
