/**
 * Soaks the service: many clients of all kinds for a long time, every frame checked, and a report.
 *
 *   npm run soak -- [--minutes N] [--sockets N] [--contexts N] [--streams N]
 *                  [--load F] [--warm-up N] [--rests N] [--hosts 3] [--seed S] [--out FOLDER]
 *
 * Exit codes: 0 no invariant was broken, 1 an invariant was broken, 2 wrong usage, or the machine does not allow it.
 */
import { ConfigError } from '../../src/config.js';
import { endWithReader, readArguments } from '../../src/command-line.js';
import { report } from './report.js';
import { SoakError } from './service-access.js';
import { Soak } from './soak.js';
import { readOptions, usage } from './options.js';

/** Under npm, Ctrl-C comes twice: npm forwards what the whole process group receives. */
const signalEchoMs = 500;

const run = async (): Promise<number> => {
  endWithReader();
  const options = await readArguments('soak', usage, readOptions);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  let soak: Soak | null = null;
  let interruptedAtMs = -Infinity;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      const sinceMs = performance.now() - interruptedAtMs;
      if (sinceMs < signalEchoMs) return;
      interruptedAtMs = performance.now();
      const endsAtOnce = sinceMs !== Infinity || soak === null;
      say(endsAtOnce ? 'ended' : 'ending early; press again to end at once');
      if (endsAtOnce) process.exit(1);
      soak?.interrupt();
    });
  const startedAt = new Date();
  soak = new Soak(options, say);
  return report(options, startedAt, await soak.run()) ? 0 : 1;
};

try {
  process.exitCode = await run();
} catch (error) {
  if (error instanceof SoakError || error instanceof ConfigError) {
    process.stderr.write(`soak: ${error.message}\n`);
    process.exitCode = 2;
  } else throw error;
}
