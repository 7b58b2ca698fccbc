/** Floods of unfinished requests: connections left open, heads and bodies that trickle, heads that are too long. */
import { setTimeout as sleep } from 'node:timers/promises';
import { RawConnection } from '../../rig/raw-connection.js';
import { Tally } from '../../rig/tally.js';
import type { Flood, FloodParts } from './flood.js';

/** A connection without a request has ten seconds, in steps of four. */
const closedMsMax = 30_000;

export const leftOpen: Flood = {
  fault: 'connections opened and left',
  injected: 'TCP connect, nothing sent',
  async run({ service, count, progress }) {
    const clients = Array.from({ length: count }, () => new RawConnection(service));
    const startedMs = performance.now();
    const elapsedMs = (): number => performance.now() - startedMs;
    const left = (): number => clients.filter(({ isClosed }) => !isClosed).length;
    while (left() > 0 && elapsedMs() < closedMsMax) {
      progress(`${left()} connections are still open`);
      await sleep(100);
    }
    const seconds = (elapsedMs() / 1000).toFixed(1);
    const held = left() === 0;
    for (const client of clients) client.reset();
    const outcome = held ? `all closed by the service within ${seconds} s` : `${left()} still open`;
    return { count, outcome, held };
  },
};

const tricklePauseMs = 1_000;
/** More than any bound on a head or a body. */
const trickleMsMax = 75_000;

/** Every client writes a byte a second until the service closes its connection. */
const trickle = async (
  { service, count, progress }: FloodParts,
  requestOf: (index: number) => string,
  /** Written at once. */
  headBytes: number,
): Promise<{ openAtEnd: number; lastClosedMs: number; answers: Tally }> => {
  const clients = Array.from({ length: count }, () => new RawConnection(service));
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  let lastClosedMs = 0;
  for (const client of clients) void client.closed.then(() => (lastClosedMs = elapsedMs()));
  for (const [i, client] of clients.entries()) client.write(requestOf(i).slice(0, headBytes));
  let at = headBytes;
  let open = clients;
  while (open.length > 0 && elapsedMs() < trickleMsMax) {
    await sleep(tricklePauseMs);
    open = clients.filter(({ isClosed }) => !isClosed);
    progress(`${open.length} of ${count} slow clients are still connected`);
    for (const client of open) client.write(requestOf(0).slice(at, at + 1) || 'x');
    at++;
  }
  const openAtEnd = open.length;
  const answers = new Tally();
  for (const client of clients) answers.add(client.status ?? 'no answer');
  for (const client of clients) client.reset();
  return { openAtEnd, lastClosedMs, answers };
};

const describeTrickle = (
  count: number,
  { openAtEnd, lastClosedMs, answers }: Awaited<ReturnType<typeof trickle>>,
) => ({
  count,
  outcome:
    openAtEnd === 0
      ? `all closed by the service, the last after ${(lastClosedMs / 1000).toFixed(0)} s (${answers.toString()})`
      : `${openAtEnd} still connected after ${trickleMsMax / 1000} s`,
  held: openAtEnd === 0,
});

export const slowHeads: Flood = {
  fault: 'slowloris: heads',
  injected: 'the first lines of a head, then a byte a second',
  async run(parts) {
    const begin = 'GET /healthz HTTP/1.1\r\nHost: flood\r\n';
    const request = `${begin}X-Pad: ${'x'.repeat(3_000)}`;
    return describeTrickle(parts.count, await trickle(parts, () => request, begin.length));
  },
};

export const slowBodies: Flood = {
  fault: 'slowloris: bodies',
  injected: 'a whole head, then a byte of the body a second, over eight keys',
  async run(parts) {
    const keys = await parts.keys(8);
    const head = (i: number): string =>
      'POST /v1/tts/stream HTTP/1.1\r\nHost: flood\r\nContent-Type: application/json\r\nContent-Length: 3000\r\n' +
      `X-Api-Key: ${keys[i % keys.length] ?? ''}\r\n\r\n`;
    const requestOf = (i: number): string => `${head(i)}{"text":"${'x'.repeat(2_800)}`;
    return describeTrickle(parts.count, await trickle(parts, requestOf, head(0).length));
  },
};

const atATime = 100;

export const longHeads: Flood = {
  fault: 'headers too long or too many',
  injected: 'heads of 10 to 200 kB, or of 300 lines',
  async run({ service, count, progress }) {
    const padding = (index: number): string => {
      if (index % 2 === 0)
        return `X-Long: ${'x'.repeat([10_000, 20_000, 70_000, 200_000][(index / 2) % 4]!)}\r\n`;
      return Array.from({ length: 300 }, (_, i) => `X-${i}: y\r\n`).join('');
    };
    const answers = new Tally();
    for (let from = 0; from < count; from += atATime) {
      progress(`${from} of ${count} heads: ${answers.toString()}`);
      const clients = Array.from({ length: Math.min(atATime, count - from) }, (_, i) => {
        const client = new RawConnection(service);
        client.write(`GET /healthz HTTP/1.1\r\nHost: flood\r\n${padding(from + i)}\r\n`);
        return client;
      });
      for (const client of clients) answers.add(await client.answered());
      for (const client of clients) client.reset();
    }
    // A client that still writes when the service closes may see a reset before the answer.
    const held = answers.names.every((answer) => answer === '431' || answer === 'closed');
    return { count, outcome: answers.toString(), held: held && answers.of('431') > count / 2 };
  },
};
