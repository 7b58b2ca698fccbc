/** Floods of unfinished requests: connections left open, heads and bodies that trickle. */
import { setTimeout as sleep } from 'node:timers/promises';
import { RawConnection } from '../../rig/raw-connection.js';
import { Tally } from '../../rig/tally.js';
import { scenarioOf, type Fault } from '../beside.js';
import { unmet, type Named } from '../scenario.js';

interface Unfinished extends Named {
  readonly msMax: number;
  readonly keyCount: number;
  /** Written at once. */
  readonly beginning: (key: string) => string;
  /** Then a byte of it a second, and x after its end; empty: nothing. */
  readonly rest: string;
}

const trickleEveryMs = 1_000;

/** Clients that never finish a request: the service must close their connections. */
const unfinished = ({ beginning, fault, injected, keyCount, msMax, rest }: Unfinished): Fault => ({
  ...{ fault, injected },
  async inject({ service, count, keys, progress }) {
    const all = await keys(keyCount);
    const clients = Array.from({ length: count }, () => new RawConnection(service));
    const startedMs = performance.now();
    let lastClosedMs = 0;
    for (const client of clients) void client.closed.then(() => (lastClosedMs = performance.now()));
    for (const [i, client] of clients.entries()) client.write(beginning(all[i % all.length] ?? ''));
    let open = clients;
    for (let at = 0; open.length > 0 && performance.now() < startedMs + msMax; at++) {
      await sleep(trickleEveryMs);
      open = clients.filter(({ isClosed }) => !isClosed);
      progress(`${open.length} of ${count} clients are still connected`);
      if (rest !== '') for (const client of open) client.write(rest[at] ?? 'x');
    }
    const answers = new Tally();
    for (const client of clients) answers.add(client.status ?? 'no answer');
    for (const client of clients) client.reset();
    const seconds = Math.max(0, lastClosedMs - startedMs) / 1000;
    const saw = `closed by the service, the last after ${seconds.toFixed(1)} s (${answers.toString()})`;
    return { count, saw, wrong: unmet({ [`all are closed within ${msMax} ms`]: open.length === 0 }) };
  },
});

const leftOpen = unfinished({
  fault: 'connections opened and left',
  injected: 'TCP connect, nothing sent',
  // A connection without a request has ten seconds, in steps of four.
  msMax: 30_000,
  keyCount: 0,
  beginning: () => '',
  rest: '',
});

/** More than any bound on a head or a body. */
const trickleMsMax = 75_000;

const slowHeads = unfinished({
  fault: 'slowloris: heads',
  injected: 'the first lines of a head, then a byte a second',
  msMax: trickleMsMax,
  keyCount: 0,
  beginning: () => 'GET /healthz HTTP/1.1\r\nHost: flood\r\n',
  rest: 'X-Pad: ',
});

const slowBodies = unfinished({
  fault: 'slowloris: bodies',
  injected: 'a whole head, then a byte of the body a second, over eight keys',
  msMax: trickleMsMax,
  keyCount: 8,
  beginning: (key) =>
    'POST /v1/tts/stream HTTP/1.1\r\nHost: flood\r\nContent-Type: application/json\r\nContent-Length: 3000\r\n' +
    `X-Api-Key: ${key}\r\n\r\n`,
  rest: '{"text":"',
});

export const connections = scenarioOf(
  {
    name: 'connections',
    about: 'connections left open, heads and bodies that trickle',
    defaultCount: 1_000,
  },
  [leftOpen, slowHeads, slowBodies],
);
