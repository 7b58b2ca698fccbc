/** What clients of the Wyoming port, which have no key, can take from the account that pays, and from each other. */
import t from 'tap';
import { eventually, speak } from '../support/front-server.js';
import type { WyomingClient } from '../support/wyoming-client.js';
import { startWyomingFront } from '../support/wyoming-front.js';

const FLOODER = '127.0.0.9';
/** An event that the service reads, and has no use for. */
const idleEvent = Buffer.from(
  `{"type":"transcribe","data":{${Array.from({ length: 2_600 }, (_, at) => `"k${at}":${at}`).join()}}}\n`,
);
const flood = Buffer.concat(Array<Buffer>(60).fill(idleEvent));
/** At this rate the flood of one connection takes more than ten seconds. */
const slowly = { parseMsPerSecond: 4 };

const isServed = async (client: WyomingClient): Promise<boolean> => {
  client.send('ping');
  return client.until('pong').then(
    () => true,
    () => false,
  );
};

t.test('floods of a stranger take no turns of the account that pays', async (t) => {
  const { front, open } = await startWyomingFront(t, { ...slowly, wyomingHeldMsMax: 600_000 });
  for (let opened = 0; opened < 8; opened++) (await open(FLOODER)).socket.write(flood);
  const other = await open();
  t.ok(await isServed(other), 'nor those of another address');
  const startMs = performance.now();
  const client = await front.sent(speak('/v1/tts'));
  t.equal((await client.response()).status, 200);
  t.ok(performance.now() - startMs < 10_000);
});

t.test(
  'bytes that a stranger keeps waiting take no memory for bodies of the account that pays',
  async (t) => {
    const bodyBytesMax = 64 * 1024;
    const { front, open } = await startWyomingFront(t, {
      ...{ bodyBytesMax, bodyBytesInFlightMax: 2 * bodyBytesMax },
    });
    // The beginning of an event holds 4 KiB.
    for (let opened = 0; opened < 16; opened++) (await open(FLOODER)).socket.write('{"type": ');
    await eventually(async () => !(await isServed(await open(FLOODER))));
    const client = await front.sent(speak('/v1/tts'));
    t.equal((await client.response()).status, 200);
  },
);

t.test('connections that flood end, also when their clients have gone', async (t) => {
  const { open } = await startWyomingFront(t, {
    ...{ ...slowly, stallRearmMs: 200, wyomingHeldMsMax: 1_000, wyomingConnectionsMax: 8 },
  });
  const flooders = await Promise.all(Array.from({ length: 8 }, () => open(FLOODER)));
  for (const { socket } of flooders) socket.write(flood);
  for (const { socket } of flooders.slice(1)) socket.destroySoon();
  const startMs = performance.now();
  await flooders[0]?.untilClosed();
  await eventually(async () => isServed(await open()));
  t.ok(performance.now() - startMs < 10_000, 'before all of it was read');
});

t.test('a crowd of refused connections is one line in the log', async (t) => {
  const { front, open } = await startWyomingFront(t, { wyomingConnectionsMax: 8 });
  for (let opened = 0; opened < 8; opened++) t.ok(await isServed(await open()));
  for (let opened = 0; opened < 50; opened++) await (await open()).untilClosed();
  const warnings = front.lines.filter(({ level }) => level === 'warn');
  t.strictSame(warnings.length, 1);
  t.match(warnings, [
    {
      message: 'a connection to the Wyoming port was refused',
      fields: { address: '127.0.0.1', refusal: 'connectionPoolExhausted', count: 1 },
    },
  ]);
});
