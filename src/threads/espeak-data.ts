/** The data of espeak-ng (24 MB): read once, and shared by all threads that speak. */
import { open } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

const key = 'espeak-ng.data';

/** Reads the data for all threads that start later. @throws if the file is missing or incomplete */
export const shareEspeakData = async (): Promise<void> => {
  const entry = createRequire(import.meta.url).resolve('@echogarden/espeak-ng-emscripten');
  await using file = await open(join(dirname(entry), key), 'r');
  const { size } = await file.stat();
  const bytes = new Uint8Array(new SharedArrayBuffer(size));
  for (let at = 0; at < size;) {
    const { bytesRead } = await file.read(bytes, at, size - at, at);
    if (bytesRead === 0) throw new Error(`${key} is not complete: install the packages again`);
    at += bytesRead;
  }
  setEnvironmentData(key, bytes.buffer);
};

/** The shared data; `undefined` in a program that has not called `shareEspeakData`. */
export const sharedEspeakData = (): SharedArrayBuffer | undefined =>
  getEnvironmentData(key) as unknown as SharedArrayBuffer | undefined;
