/** Which addresses a webhook may be sent to. A member chooses it, so it must not lead into the network of this machine. */
import { isIP, type BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import { networkList } from '../src/network.js';

/** Not of the public internet. Of IPv6, `2000::/3` is public, without what carries or documents other addresses. */
const internal = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
];
const publicIpv6 = networkList(['2000::/3']);

/** Those of this machine, which may be public ones. */
const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address.split('%')[0]!));

const has = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Without the brackets of IPv6. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

export interface Reach {
  /** An operator allows it, although it may be internal. */
  readonly isAllowed: (address: string) => boolean;
  /** It is public, or allowed. */
  readonly mayCall: (address: string) => boolean;
}

/** @param allow addresses and networks: `WEBHOOK_ALLOW` @param own addresses of this machine */
export const reachOf = (allow: readonly string[], own = ownAddresses()): Reach => {
  const [allowed, refused] = [networkList(allow), networkList([...internal, ...own])];
  const isAllowed = (address: string): boolean => has(allowed, address);
  return {
    isAllowed,
    mayCall: (address) =>
      isAllowed(address) || (!has(refused, address) && (isIP(address) === 4 || has(publicIpv6, address))),
  };
};
