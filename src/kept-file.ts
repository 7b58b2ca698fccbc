/** A small file of DATA_DIR, which one run leaves to the next. A service without it only knows less. */
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvariantError } from './fault.js';

const BYTES_MAX = 2 ** 22;
/** A disk that hangs must not hold up the end of the service. */
const WRITE_MS_MAX = 1_000;

const tooSlow = async (): Promise<never> => {
  await sleep(WRITE_MS_MAX, undefined, { ref: false });
  throw new InvariantError('the disk took no small file within a second');
};

export class KeptFile {
  readonly #path: string;
  #writing: Promise<void> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** @returns `null` if there is none @throws if it is damaged, or cannot be read */
  async read(): Promise<unknown> {
    try {
      const stats = await stat(this.#path);
      if (!stats.isFile()) throw new InvariantError('it is not a regular file');
      const { size } = stats;
      if (size > BYTES_MAX) throw new InvariantError(`the file has ${size} bytes`);
      return JSON.parse(await readFile(this.#path, 'utf8')) as unknown;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Replaces it as a whole, once at a time. @throws if the disk refuses, or hangs */
  write(value: object): Promise<void> {
    this.#writing ??= this.#replace(`${JSON.stringify(value)}\n`).finally(() => (this.#writing = undefined));
    return Promise.race([this.#writing, tooSlow()]);
  }

  async #replace(text: string): Promise<void> {
    const next = `${this.#path}.next`;
    await writeFile(next, text);
    await rename(next, this.#path);
  }
}
