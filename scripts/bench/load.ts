/** The load client's process, seen from the benchmark. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LoadCommand, LoadResult } from './protocol.js';

const clientPath = fileURLToPath(new URL('./load-client.js', import.meta.url));

export class Load {
  readonly #child: ChildProcess = fork(clientPath, { serialization: 'advanced' });

  get pid(): number {
    return this.#child.pid!;
  }

  /** @throws what the client met with */
  async run<T extends LoadCommand['type']>(
    command: Extract<LoadCommand, { type: T }>,
  ): Promise<Extract<LoadResult, { type: T }>> {
    const answered = once(this.#child, 'message') as Promise<[LoadResult]>;
    this.#child.send(command);
    const [result] = await answered;
    if (result.type === 'failed') throw new Error(`the load client failed: ${result.message}`);
    return result as Extract<LoadResult, { type: T }>;
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
