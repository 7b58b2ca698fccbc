/** A client and the server's end of its connection, with a clock and a chance that the test holds. */
import type { Test } from 'tap';
import {
  type ConnectOptions,
  type ConnectionEvent,
  type SyrinxClient,
  SyrinxError,
  connect,
} from '../../src/client/index.js';
import { Arrivals } from './arrivals.js';
import { FakeClock } from './fake-clock.js';
import { type Peer, ScriptedSocket } from './scripted-socket.js';

export const key = 'svc_sk_test';

export interface Pair {
  readonly server: ScriptedSocket;
  readonly client: SyrinxClient;
  readonly peer: Peer;
  readonly clock: FakeClock;
  /** What the client told of its connection, after its first `open`. */
  readonly events: Arrivals<ConnectionEvent>;
}

export const connected = async (
  t: Test,
  options: Partial<ConnectOptions> = {},
  serverOptions: Parameters<typeof ScriptedSocket.listen>[1] = {},
): Promise<Pair> => {
  const server = await ScriptedSocket.listen(t, serverOptions);
  const clock = new FakeClock();
  const events = new Arrivals<ConnectionEvent>();
  const onEvent = (event: ConnectionEvent) => {
    events.push(event);
  };
  const client = await connect({ url: server.url, apiKey: key, clock, random: () => 0, onEvent, ...options });
  t.teardown(() => client.close());
  await events.next();
  return { server, client, peer: await server.peer(), clock, events };
};

/** The error of something that must fail with one. */
export const errorOf = async (action: Promise<unknown> | (() => unknown)): Promise<SyrinxError> => {
  try {
    await (typeof action === 'function' ? action() : action);
  } catch (error) {
    if (error instanceof SyrinxError) return error;
    throw error;
  }
  throw new Error('it did not fail');
};

export const codeOf = async (action: Promise<unknown> | (() => unknown)): Promise<string> =>
  (await errorOf(action)).code;

export const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};
