/** Floods before any request is whole: connections left open, heads and bodies that trickle, heads that are too long. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ByteClient } from './clients.js';
import { countOne, formatCounts, type Flood, type FloodParts } from './flood.js';

/** The library gives a connection without a request ten seconds, in steps of four. */
const closedMsMax = 30_000;

export const leftOpen: Flood = {
  fault: 'connections opened and left',
  injected: 'TCP connect, nothing sent',
  async run({ service, count, progress }) {
    const clients = Array.from({ length: count }, () => new ByteClient(service.port));
    const startedMs = performance.now();
    const elapsedMs = (): number => performance.now() - startedMs;
    const left = (): number => clients.filter(({ isClosed }) => !isClosed).length;
    while (left() > 0 && elapsedMs() < closedMsMax) {
      progress(`${String(left())} connections are still open`);
      await sleep(100);
    }
    const seconds = (elapsedMs() / 1000).toFixed(1);
    const held = left() === 0;
    for (const client of clients) client.reset();
    const outcome = held ? `all closed by the service within ${seconds} s` : `${String(left())} still open`;
    return { count, outcome, held };
  },
};

const tricklePauseMs = 1_000;
/** Longer than any bound on a head or a body. */
const trickleMsMax = 75_000;

/** Writes a byte a second each until the service has had enough. @returns how long they were kept, and the answers */
const trickle = async (
  { service, count, progress }: FloodParts,
  requestOf: (index: number) => string,
  /** Sent at once. */
  headBytes: number,
): Promise<{ openAtEnd: number; lastClosedMs: number; answers: Map<string, number> }> => {
  const clients = Array.from({ length: count }, () => new ByteClient(service.port));
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  let lastClosedMs = 0;
  for (const client of clients) void client.closed.then(() => (lastClosedMs = elapsedMs()));
  for (const [i, client] of clients.entries()) client.socket.write(requestOf(i).slice(0, headBytes));
  let at = headBytes;
  let open = clients;
  while (open.length > 0 && elapsedMs() < trickleMsMax) {
    await sleep(tricklePauseMs);
    open = clients.filter(({ isClosed }) => !isClosed);
    progress(`${String(open.length)} of ${String(count)} slow clients are still there`);
    for (const client of open) client.socket.write(requestOf(0).slice(at, at + 1) || 'x');
    at++;
  }
  const openAtEnd = open.length;
  const answers = new Map<string, number>();
  for (const client of clients) countOne(answers, client.statuses[0] ?? 'no answer');
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
      ? `all closed by the service, the last after ${(lastClosedMs / 1000).toFixed(0)} s (${formatCounts(answers)})`
      : `${String(openAtEnd)} still there after ${String(trickleMsMax / 1000)} s`,
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
  injected: 'heads of 5 to 200 kB, or of 300 lines',
  async run({ service, count, progress }) {
    const padding = (index: number): string => {
      if (index % 2 === 0)
        return `X-Long: ${'x'.repeat([5_000, 20_000, 70_000, 200_000][(index / 2) % 4]!)}\r\n`;
      return Array.from({ length: 300 }, (_, i) => `X-${String(i)}: y\r\n`).join('');
    };
    const answers = new Map<string, number>();
    for (let from = 0; from < count; from += atATime) {
      progress(`${String(from)} of ${String(count)} heads: ${formatCounts(answers)}`);
      const clients = Array.from({ length: Math.min(atATime, count - from) }, (_, i) => {
        const client = new ByteClient(service.port);
        client.socket.write(`GET /healthz HTTP/1.1\r\nHost: flood\r\n${padding(from + i)}\r\n`);
        return client;
      });
      for (const client of clients) countOne(answers, await client.status());
      for (const client of clients) client.reset();
    }
    // A client that still writes when the service closes may see the connection reset before it sees the answer.
    const held = [...answers.keys()].every((answer) => answer === '431' || answer === 'closed');
    return { count, outcome: formatCounts(answers), held: held && (answers.get('431') ?? 0) > count / 2 };
  },
};
