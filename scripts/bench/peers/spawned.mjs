/** A program that speaks to its standard output, started for each request. Arguments: its name and its own arguments. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { serve } from './server.mjs';

const [program, ...args] = process.argv.slice(2);
const waveHeadBytes = 44;

serve(async (text, send) => {
  const child = spawn(program, [...args, text], { stdio: ['ignore', 'pipe', 'ignore'] });
  let skipped = 0;
  child.stdout.on('data', (/** @type {Buffer} */ bytes) => {
    const rest = bytes.subarray(Math.min(bytes.length, waveHeadBytes - skipped));
    skipped += bytes.length - rest.length;
    if (rest.length > 0) send(rest);
  });
  await once(child, 'close');
});
