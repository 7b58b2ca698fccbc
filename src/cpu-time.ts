/** CPU time of the whole machine. */
import { readFile } from 'node:fs/promises';

/** The kernel counts in hundredths of a second. */
const TICK_MS = 10;

/**
 * @returns milliseconds, over all cores, that were idle or used at a lower priority than normal (as our synthesis threads
 *   are); `null` where the system does not say
 */
export const spareCpuMs = async (): Promise<number | null> => {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const fields = /^cpu +\d+ (\d+) \d+ (\d+) (\d+)/.exec(stat);
  if (fields === null) return null;
  const [, nice, idle, waiting] = fields;
  return TICK_MS * (Number(nice) + Number(idle) + Number(waiting));
};
