/** Announces the Wyoming port to its network by mDNS and DNS-SD: Home Assistant finds it by itself. */
import type { Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import { advertise } from 'dnssd-advertise';
import { Buckets } from '../../buckets.js';
import type { Bounds } from '../../limits.js';
import { monotonicMs, type Clock } from '../../monotonic.js';

/** Node publishes each new socket there. The library opens more when the machine gets an address. */
const channel = 'udp.socket';

type DiscoveryBounds = Pick<Bounds, 'discoveryBytesMax' | 'discoveryMsAtOnceMax' | 'discoveryMsPerSecond'>;

/**
 * Bounds the time in which questions are read. Anybody in the network can send them, also under the address of another. The
 * library reads a name again for each question that points to it: a datagram of 64 KB took 23 s.
 */
export const guard = (
  socket: Socket,
  times: Buckets,
  bounds: DiscoveryBounds,
  clock: Clock = monotonicMs,
): void => {
  const emit = socket.emit.bind(socket) as (name: string, ...values: readonly unknown[]) => boolean;
  const guarded: typeof emit = (name, ...values) => {
    if (name !== 'message') return emit(name, ...values);
    const [message] = values as [Buffer];
    if (message.length > bounds.discoveryBytesMax || times.waitMs('', 1) > 0) return false;
    const startMs = clock();
    const isRead = emit(name, ...values);
    times.take('', clock() - startMs);
    return isRead;
  };
  socket.emit = guarded as Socket['emit'];
};

/** @param host that of the listener @param onError it cannot be announced in a network, or in none @returns ends it */
export const announce = (
  host: string,
  port: number,
  bounds: DiscoveryBounds,
  onError: (error: unknown) => void,
): (() => Promise<void>) => {
  const times = new Buckets({
    ...{ atOnceMax: bounds.discoveryMsAtOnceMax, everyMs: 1_000 / bounds.discoveryMsPerSecond },
    ...{ countedMax: 1, clock: monotonicMs },
  });
  const onSocket = (created: unknown): void => guard((created as { socket: Socket }).socket, times, bounds);
  const [machine = ''] = hostname().split('.');
  subscribe(channel, onSocket);
  let end = (): Promise<void> => Promise.resolve();
  try {
    end = advertise({
      // A label has 63 bytes at most.
      ...{ name: `Syrinx on ${machine.slice(0, 40)}`, type: 'wyoming', protocol: 'tcp', port, onError },
      // Who listens on IPv4 alone must not be asked on IPv6.
      stack: isIPv4(host) ? 'IPv4' : null,
    });
  } catch (error) {
    onError(error);
  }
  return () => end().finally(() => unsubscribe(channel, onSocket));
};
