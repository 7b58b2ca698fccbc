/**
 * A load in a process of its own, as real clients are, so that its work does not delay the clocks of the measurement.
 *
 * The load's file calls `serveLoad(calls)`; `typeof calls` is the type parameter of `LoadProcess`, so that calls and
 * results are typed on both sides. The load ends when its parent does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

// Each call has its own type of argument.
type Calls = Readonly<Record<string, (argument: never) => unknown>>;

interface Call {
  readonly id: number;
  readonly name: string;
  readonly argument: unknown;
}

type Message =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly event: unknown };

export class LoadProcess<C extends Calls, Event = never> {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #end: Error | null = null;

  /** @param launcher a command that execs Node, such as `['ip', 'netns', 'exec', NAME]` */
  constructor(
    entry: URL,
    onEvent: (event: Event) => void = () => undefined,
    launcher: readonly string[] = [],
  ) {
    const [program, ...parameters] = [...launcher, process.execPath];
    this.#child = spawn(program, [...parameters, fileURLToPath(entry)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    this.#exited = once(this.#child, 'exit').catch(() => undefined);
    this.#child.on('error', (error) => this.#fail(error));
    this.#child.on('exit', (code, signal) =>
      this.#fail(new Error(`the load process ended with ${String(code ?? signal)}`)),
    );
    this.#child.on('message', (message: Message) => {
      if ('event' in message) {
        onEvent(message.event as Event);
        return;
      }
      const call = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if ('result' in message) call?.resolve(message.result);
      else call?.reject(new Error(`the load process failed: ${message.error}`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** @throws what the load threw, or when its process ends */
  call<Name extends keyof C & string>(
    name: Name,
    ...[argument]: Parameters<C[Name]>
  ): Promise<Awaited<ReturnType<C[Name]>>> {
    const id = ++this.#lastId;
    const call = Promise.withResolvers<unknown>();
    if (this.#end === null) {
      this.#pending.set(id, call);
      this.#child.send({ id, name, argument } satisfies Call);
    } else call.reject(this.#end);
    return call.promise as Promise<Awaited<ReturnType<C[Name]>>>;
  }

  /** Idempotent. */
  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  /** Without a chance to close its connections. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #fail(error: Error): void {
    this.#end ??= error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/** Sends an event to the parent of this load. */
export const sendEvent = (event: unknown): void => {
  if (process.connected) process.send?.({ event } satisfies Message);
};

/** Answers the calls of the parent, each as it comes; returns at once. */
export const serveLoad = (calls: Calls): void => {
  const answer = async ({ argument, id, name }: Call): Promise<void> => {
    let message: Message;
    try {
      message = { id, result: await calls[name]?.(argument as never) };
    } catch (error) {
      message = { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    if (process.connected) process.send?.(message);
  };
  process.on('message', (call: Call) => void answer(call));
  // Ctrl-C in a terminal reaches every process; the parent decides when the load ends.
  process.on('SIGINT', () => undefined);
  process.on('disconnect', () => process.exit(0));
};
