/**
 * Listeners who have nothing to do with what is injected, in a process of their own: every page and word that they
 * get is looked at, and so is the time that they wait.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import type { NeighboursCommand, NeighboursReport } from './report.js';

const processPath = fileURLToPath(new URL('./process.js', import.meta.url));

type Answer =
  | { readonly type: 'started' }
  | { readonly type: 'report'; readonly report: NeighboursReport }
  | { readonly type: 'failed'; readonly message: string };

export class Neighbours {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /**
   * They listen when it resolves, with a key of their own: two over HTTP, two over WebSockets.
   *
   * @param toleratesFailures an utterance may fail, as long as it is seen to
   */
  static async start(service: TortureService, seed: number, toleratesFailures = false): Promise<Neighbours> {
    const [voice = ''] = await speakersOf(service);
    const [key = ''] = await service.makeKeys(1);
    const neighbours = new Neighbours(fork(processPath, { serialization: 'advanced' }));
    const plan = { port: service.port, key, voice, streams: 2, sockets: 2, seed, toleratesFailures };
    await neighbours.#ask({ type: 'start', plan });
    return neighbours;
  }

  /** What they speak is heard to its end. */
  async end(): Promise<NeighboursReport> {
    const answer = await this.#ask({ type: 'end' });
    if (answer.type !== 'report') throw new Error('the neighbours did not report');
    return answer.report;
  }

  /** Idempotent. */
  close(): void {
    this.#child.kill('SIGKILL');
  }

  async #ask(command: NeighboursCommand): Promise<Answer> {
    const gone = once(this.#child, 'exit').then((): never => {
      throw new Error('the neighbours’ process ended');
    });
    gone.catch(() => undefined);
    this.#child.send(command);
    const [answer] = (await Promise.race([once(this.#child, 'message'), gone])) as [Answer];
    if (answer.type === 'failed') throw new Error(`the neighbours failed: ${answer.message}`);
    return answer;
  }
}
