/** Names of threads, shown by `top -H` and `ps -L`. */
import { writeFileSync } from 'node:fs';

/** At most 15 bytes each. */
export const threadNames = {
  synthesis: 'syrinx-synth',
  actor: 'syrinx-actor',
  ledger: 'syrinx-ledger',
  administration: 'syrinx-admin',
} as const;

/** Names the calling thread. */
export const nameThread = (role: keyof typeof threadNames): void => {
  try {
    writeFileSync('/proc/thread-self/comm', threadNames[role]);
  } catch {
    // Only Linux has this file.
  }
};
