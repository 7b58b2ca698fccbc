/** What a soak asks of the machine and the service before it begins. */
import { readOpenFilesMax } from '../rig-old/process-facts.js';
import type { SoakOptions } from './options.js';

/** What is in the way of a soak on this machine, and what to do about it. */
export class SoakError extends Error {}

export const fetchVoices = async (baseUrl: string, key: string): Promise<readonly string[]> => {
  const response = await fetch(`${baseUrl}/v1/tts/speakers`, { headers: { 'x-api-key': key } }).catch(() => {
    throw new SoakError(`nobody answers at ${baseUrl}`);
  });
  if (!response.ok) throw new SoakError(`${baseUrl} answers ${String(response.status)} to the key`);
  return ((await response.json()) as { speaker_ids: string[] }).speaker_ids;
};

/** Speaks once, so that what is loaded with the first use is there before figures are taken. */
export const warm = async (baseUrl: string, key: string, voice: string): Promise<void> => {
  for (const encoding of ['mp3', 'opus', 'pcm']) {
    const response = await fetch(`${baseUrl}/v1/tts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Good morning.', voice, response_format: encoding }),
    });
    await response.arrayBuffer();
  }
};

/** Besides sockets: files of a process, its threads', connections that are being closed. */
const filesBesides = 200;

/** @throws {SoakError} when so many sockets are more than a process here may have open */
export const checkFiles = ({ sockets, contexts, streams, remote }: SoakOptions): void => {
  const max = readOpenFilesMax(process.pid);
  const needed = sockets + (contexts ?? 500) + 2 * streams + filesBesides;
  if (max === null || max >= needed) return;
  const side = remote === null ? 'the service and the load' : 'the load';
  throw new SoakError(
    `${side} need ${String(needed)} open files, and may have ${String(max)}: raise the limit (ulimit -n ${String(needed)}) or take fewer --sockets`,
  );
};
