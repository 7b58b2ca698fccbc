/** The baseline server's process, seen from the benchmark. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { BaselineOrder } from './baseline-server.js';

const serverPath = fileURLToPath(new URL('./baseline-server.js', import.meta.url));

export class Baseline {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** Listens when it resolves; sends when all the sockets are there. */
  static async start(order: BaselineOrder): Promise<Baseline> {
    const child = fork(serverPath);
    child.send(order);
    const [port] = (await once(child, 'message')) as [number];
    return new Baseline(child, port);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
