/** Which client has which key: none has more clients than slots, and the use of tidy ones is known to the character. */
import type { KeyRing } from './protocol.js';

/** Of the nine slots of a key: who vanished holds its slot until the service has noticed. */
export const clientsPerKey = 6;
const httpClientsPerKey = 5;

/** Tidy clients and others by turns have the keys of even and of odd numbers. */
const slotOf = (client: number, perKey: number): number =>
  2 * Math.floor((client >> 1) / perKey) + (client & 1);

export const keysNeeded = (clients: number): number =>
  clients === 0 ? 0 : slotOf((clients - 1) | 1, clientsPerKey) + 1;
export const httpKeysNeeded = (clients: number): number =>
  clients === 0 ? 0 : slotOf((clients - 1) | 1, httpClientsPerKey) + 1;

/** Keys that all clients share are filled evenly, from either end: none has more than one client above `clientsPerKey`. */
export const keyOfClient = ({ sockets, isShared }: KeyRing, client: number): string =>
  sockets[(isShared ? client : slotOf(client, clientsPerKey)) % sockets.length]!;
export const keyOfHttpClient = ({ http, isShared }: KeyRing, client: number): string =>
  isShared
    ? http[http.length - 1 - (client % http.length)]!
    : http[slotOf(client, httpClientsPerKey) % http.length]!;
