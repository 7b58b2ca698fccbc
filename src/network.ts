/** Addresses of clients, as the unit that bounds count. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** As the server library writes an IPv4 address within IPv6. */
const MAPPED = '0000:0000:0000:0000:0000:ffff:';

/** For IPv6 the network, because a client can choose addresses within it. An IPv4 address within IPv6 stays an address. */
export const networkOf = (address: string): string => {
  // For each request, so it is fast.
  if (address.startsWith(MAPPED)) {
    const value = Number.parseInt(address.slice(MAPPED.length).replace(':', ''), 16);
    return `${value >>> 24}.${(value >> 16) & 255}.${(value >> 8) & 255}.${value & 255}`;
  }
  const last = address.slice(address.lastIndexOf(':') + 1);
  if (isIPv4(last)) return last;
  const [start = '', end] = address.toLowerCase().split('::');
  const groups = start === '' ? [] : start.split(':');
  if (end !== undefined) {
    const after = end === '' ? [] : end.split(':');
    while (groups.length + after.length < 8) groups.push('0');
    groups.push(...after);
  }
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
};

/** @param networks addresses and networks, such as `192.168.1.7` and `10.0.0.0/8`, checked */
export const networkList = (networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
};
