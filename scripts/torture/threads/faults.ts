/** A text makes a thread break by a sentence such as `Break by exit.` */

/** How each is caused. */
export const threadFaults = {
  throw: 'an exception in a step of the engine',
  exit: 'process.exit in a step of the engine',
  heap: 'a synthesis thread’s heap filled in a step of the engine',
  spin: 'a step of the engine that loops in JavaScript for ever',
  'actor-throw': 'an exception that nothing catches in an actor thread',
  'actor-exit': 'process.exit in an actor thread',
  'actor-heap': 'an actor thread’s heap filled',
  'actor-spin': 'an actor thread that loops for ever',
} as const;

export type ThreadFault = keyof typeof threadFaults;

/** The thread speaks the first sentence before it breaks. */
export const breaking = (fault: ThreadFault): string => `Now it happens. Break by ${fault}. And it goes on.`;

const breaks: Readonly<Record<string, () => void>> = {
  throw: () => {
    throw new Error('injected');
  },
  exit: () => process.exit(3),
  heap: () => {
    const hoard: unknown[] = [];
    for (;;) hoard.push(new Array(2 ** 20).fill(hoard));
  },
  spin: () => {
    for (;;);
  },
};

/** @param before the name of a fault of this kind of thread @returns breaks the thread; `undefined`: the text names no such fault */
export const faultIn = (text: string, before: 'Break by ' | 'actor-'): (() => void) | undefined =>
  breaks[text.split(before)[1]?.split('.')[0] ?? ''];
