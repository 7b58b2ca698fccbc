/** A TCP proxy whose line can be cut, slowed and reset: the network between a host and its database. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class Cutter {
  readonly #server: Server;
  /** The two ends of each. */
  readonly #lines = new Set<readonly [Socket, Socket]>();
  /** What happens when the line is whole again: the ends of connections. */
  #deferred: (() => void)[] = [];
  #isCut = false;
  #refuses = false;
  /** The path of the socket that the line leads to. */
  target: string;
  /** Milliseconds that bytes take, in each direction. */
  delayMs = 0;

  private constructor(target: string) {
    this.target = target;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  }

  static async start(target: string): Promise<Cutter> {
    const cutter = new Cutter(target);
    cutter.#server.listen(0, '127.0.0.1');
    await once(cutter.#server, 'listening');
    return cutter;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on nothing arrives, not even the end of a connection. */
  cut(): void {
    this.#isCut = true;
    for (const line of this.#lines) for (const end of line) end.pause();
  }

  /** What was sent meanwhile arrives, as with TCP. */
  heal(): void {
    this.#isCut = false;
    this.#refuses = false;
    for (const line of this.#lines) for (const end of line) end.resume();
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const act of deferred) act();
  }

  /** Resets all connections, and each new one until `heal`. */
  reset(): void {
    this.#refuses = true;
    for (const [client] of this.#lines) client.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #whenWhole(act: () => void): void {
    if (this.#isCut) this.#deferred.push(act);
    else act();
  }

  #accept(client: Socket): void {
    if (this.#refuses) {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const database = connect({ path: this.target, allowHalfOpen: true });
    const line = [client, database] as const;
    this.#lines.add(line);
    for (const [from, to] of [line, [database, client]] as const) {
      from.on('data', (bytes) => {
        if (this.delayMs === 0) to.write(bytes);
        else setTimeout(() => to.write(bytes), this.delayMs);
      });
      from.on('end', () => this.#whenWhole(() => setTimeout(() => to.end(), this.delayMs)));
      from.on('error', () => undefined);
      from.on('close', () =>
        this.#whenWhole(() => {
          this.#lines.delete(line);
          setTimeout(() => to.destroy(), this.delayMs);
        }),
      );
      if (this.#isCut) from.pause();
    }
  }
}
