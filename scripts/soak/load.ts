/** The load's process, seen from the soak. */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Fault, LoadCommand, LoadReport, LoadTick } from './protocol.js';

const clientPath = fileURLToPath(new URL('./load-client.js', import.meta.url));

type Report<T extends LoadReport['type']> = Extract<LoadReport, { type: T }>;

export interface LoadHandlers {
  readonly onTick: (tick: LoadTick) => void;
  readonly onFault: (fault: Fault) => void;
}

export class Load {
  readonly #child: ChildProcess = fork(clientPath, { serialization: 'advanced' });
  readonly #handlers: LoadHandlers;
  readonly #waiting: {
    readonly type: LoadReport['type'];
    readonly resolve: (report: LoadReport) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  #isClosed = false;

  constructor(handlers: LoadHandlers) {
    this.#handlers = handlers;
    this.#child.on('message', (report: LoadReport) => this.#onReport(report));
    this.#child.on('exit', (code, signal) => {
      if (!this.#isClosed) this.#fail(new Error(`the load ended with ${String(code ?? signal)}`));
    });
  }

  /** @throws what the load met with */
  begin(command: Extract<LoadCommand, { type: 'begin' }>): Promise<Report<'ready'>> {
    return this.#ask(command, 'ready');
  }

  /** Resolves when its sockets are open, and the clients begin. @throws what the load met with */
  populate(command: Extract<LoadCommand, { type: 'population' }>): Promise<Report<'ready'>> {
    return this.#ask(command, 'ready');
  }

  /** Resolves when nobody speaks. @throws what the load met with */
  rest(): Promise<Report<'ready'>> {
    return this.#ask({ type: 'rest' }, 'ready');
  }

  /** Resolves when all have begun again, one after the other. @throws what the load met with */
  resume(): Promise<Report<'ready'>> {
    return this.#ask({ type: 'resume' }, 'ready');
  }

  reset(): void {
    this.#child.send({ type: 'reset' } satisfies LoadCommand);
  }

  /** Resolves when all clients have left. @throws what the load met with */
  stop(): Promise<Report<'done'>> {
    return this.#ask({ type: 'stop' }, 'done');
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    if (this.#child.connected) this.#child.disconnect();
  }

  #ask<T extends LoadReport['type']>(command: LoadCommand, type: T): Promise<Report<T>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ type, resolve: (report) => resolve(report as Report<T>), reject });
      this.#child.send(command);
    });
  }

  #onReport(report: LoadReport): void {
    switch (report.type) {
      case 'tick':
        this.#handlers.onTick(report);
        return;
      case 'fault':
        this.#handlers.onFault(report);
        return;
      case 'failed':
        this.#fail(new Error(`the load failed: ${report.message}`));
        return;
      case 'ready':
      case 'done':
        this.#waiting
          .splice(
            this.#waiting.findIndex(({ type }) => type === report.type),
            1,
          )[0]
          ?.resolve(report);
    }
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
