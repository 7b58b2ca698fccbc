/** Names of threads, as `top -H` and `ps -L` show them. */
import { writeFileSync } from 'node:fs';

/** The threads that have a name of ours, and that name: 15 bytes at most. */
export const threadNames = {
  synthesis: 'syrinx-synth',
  actor: 'syrinx-actor',
  ledger: 'syrinx-ledger',
} as const;

/** Names the calling thread. */
export const nameThread = (role: keyof typeof threadNames): void => {
  try {
    writeFileSync('/proc/thread-self/comm', threadNames[role]);
  } catch {
    // Only Linux has such a file.
  }
};
