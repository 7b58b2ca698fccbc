/** The scenarios of floods: one flood after the other to one service, while neighbours listen. */
import { scenarioOf } from '../beside.js';
import { leftOpen, slowBodies, slowHeads } from './connection-floods.js';
import { aborted, manyKeys, oneKey } from './request-floods.js';
import { slowReaders } from './slow-readers.js';
import { contextsOfAll, contextsOfOne } from './socket-floods.js';

const defaultCount = 1_000;

export const floods = [
  scenarioOf(
    {
      name: 'connections',
      about: 'connections left open, heads and bodies that trickle',
      defaultCount,
    },
    [leftOpen, slowHeads, slowBodies],
  ),
  scenarioOf(
    { name: 'requests', about: 'many requests: of one key, of many keys, and aborted', defaultCount },
    [oneKey, manyKeys, aborted],
  ),
  scenarioOf(
    {
      name: 'sockets',
      about: 'WebSockets: contexts without end, of one account and of six',
      defaultCount,
    },
    [contextsOfOne, contextsOfAll],
  ),
  scenarioOf(
    {
      name: 'slow-readers',
      about: 'clients that ask for much speech and read little of it',
      defaultCount,
    },
    [slowReaders],
  ),
];
