/**
 * The listener for the Wyoming protocol of Home Assistant, over TCP. The protocol has no keys. So the listener serves only
 * allowed addresses, and charges one account. If other machines reach it, it announces itself to them (mDNS, DNS-SD).
 */
import { type BlockList, createServer, isIPv6, type Server, type Socket } from 'node:net';
import { Slots } from '../../accounts/lease.js';
import type { PlaygroundKey } from '../../accounts/administration.js';
import type { WyomingConfig } from '../../config.js';
import type { Connections } from '../../front/connections.js';
import { CountedWarning } from '../../front/counted-warning.js';
import { listenWith } from '../../front/listener.js';
import type { FurtherListener } from '../../front/server.js';
import { networkList, networkOf } from '../../network.js';
import type { DialectParts } from '../http-listener.js';
import { announce } from './announcement.js';
import { WyomingConnection, STREAMED_ROUTE, WHOLE_ROUTE } from './connection.js';

const variables = { host: 'WYOMING_HOST', port: 'WYOMING_PORT' };

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

/** A listener on IPv6 sees IPv4 clients as `::ffff:192.0.2.1`. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

class WyomingListener {
  readonly #parts: DialectParts;
  readonly #config: WyomingConfig;
  readonly #payer: PlaygroundKey;
  readonly #allowed: BlockList | null;
  readonly #counted: Connections;
  readonly #refusals: CountedWarning;
  readonly #texts: Slots;
  readonly #connections = new Map<Socket, WyomingConnection>();
  readonly #server: Server;
  #endAnnouncement: () => Promise<void> = () => Promise.resolve();

  constructor(parts: DialectParts, config: WyomingConfig, payer: PlaygroundKey) {
    this.#parts = parts;
    this.#config = config;
    this.#payer = payer;
    this.#allowed = config.allow.length === 0 ? null : networkList(config.allow);
    this.#counted = parts.shared.connections.listener(parts.bounds.wyomingConnectionsMax);
    this.#refusals = new CountedWarning(parts.shared.services);
    this.#texts = new Slots(parts.bounds.slotsPerKey);
    this.#server = createServer((socket) => this.#accept(socket));
  }

  async listen(): Promise<number> {
    const { host, isReachable, port } = this.#config;
    const failures = new CountedWarning(this.#parts.shared.services);
    const bound = await listenWith(this.#server, { host, port, variables }, ({ code }) =>
      failures.add({ errorCode: code }, 'a connection to the Wyoming port could not be accepted'),
    );
    if (isReachable) this.#announce(bound);
    return bound;
  }

  /** It has no TLS. */
  renew(): boolean {
    return false;
  }

  stopAccepting(): void {
    this.#server.close();
    void this.#endAnnouncement();
  }

  close(): void {
    this.stopAccepting();
    for (const connection of this.#connections.values()) connection.close();
  }

  /** That it cannot be announced is no reason to end the service: its clients can be given its address. */
  #announce(port: number): void {
    const { log } = this.#parts.shared.services;
    const onError = (error: unknown): void =>
      log.warn({ error: String(error) }, 'the Wyoming port could not be announced to Home Assistant');
    this.#endAnnouncement = announce(this.#config.host, port, this.#parts.bounds, onError);
  }

  #accept(socket: Socket): void {
    const { admission, shared, speech } = this.#parts;
    const { metrics } = shared.services;
    const { remoteAddress } = socket;
    // The client has gone already.
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const isAllowed = this.#allowed?.check(remoteAddress, familyOf(remoteAddress)) !== false;
    const network = networkOf(remoteAddress);
    const refusal = isAllowed ? this.#counted.refusalOf(network) : 'addressNotAllowed';
    if (refusal !== null) {
      metrics.refused(refusal);
      this.#refusals.add(
        { address: plainAddress(remoteAddress), refusal },
        'a connection to the Wyoming port was refused',
      );
      socket.destroy();
      return;
    }
    const connection = new WyomingConnection(
      {
        ...{ admission, speech, services: shared.services, isDraining: shared.isDraining },
        payer: this.#payer,
        ...{ network, texts: this.#texts },
      },
      socket,
    );
    this.#counted.watch(socket, network);
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
  }
}

/** @param payer the hidden key of the account that pays */
export const wyoming = (
  parts: DialectParts,
  config: WyomingConfig,
  payer: PlaygroundKey,
): FurtherListener => ({
  name: 'wyoming',
  speechRoutes: [WHOLE_ROUTE, STREAMED_ROUTE],
  socketRoutes: [],
  listener: new WyomingListener(parts, config, payer),
});
