/** How long a client of the Wyoming port may keep the service waiting: each test shortens one bound, and the others are a minute at least. */
import t, { type Test } from 'tap';
import type { Bounds } from '../../src/limits.js';
import { encodeWyoming } from '../../scripts/rig/wyoming.js';
import { eventually, requestLines } from '../support/front-server.js';
import { pause } from '../support/service.js';
import { SteppedTime } from '../support/stepped-time.js';
import type { WyomingClient } from '../support/wyoming-client.js';
import { payer, startWyomingFront, type WyomingFront } from '../support/wyoming-front.js';

const idle = { wyomingIdleMsMax: 900 };
const silence = { socketSilenceMsMax: 300 };
const stall = { readerStallMsMax: 300 };
/** For a busy machine. */
const lateMsMax = 30_000;
/** @param bounds the service looks at each connection four times in the shortest of them */
const start = (t: Test, bounds: Partial<Bounds>, clock?: () => number): Promise<WyomingFront> =>
  startWyomingFront(t, { ...bounds, stallRearmMs: 100 }, clock);
/** A step is a look of the service at each connection. */
const newTime = (): SteppedTime => new SteppedTime(25);

/** @param sinceMs before the time of the service began @returns milliseconds from then until it closes the connection */
const closedAfterMs = async (client: WyomingClient, sinceMs: number): Promise<number> => {
  await client.untilClosed();
  return performance.now() - sinceMs;
};

const isAbout = (t: Test, ms: number, expectedMs: number, what: string): void => {
  t.ok(ms > expectedMs - 20 && ms < expectedMs + lateMsMax, `${what}: ${Math.round(ms)} ms`);
};

t.test('an idle client is closed after its time, and each event begins that time again', async (t) => {
  const time = newTime();
  const { open } = await start(t, idle, time.clock);
  const [silent, busy] = [await open(), await open()];
  await time.pass(idle.wyomingIdleMsMax - 1);
  t.notOk(silent.isClosed);
  busy.send('ping');
  await busy.until('pong');
  const pongMs = time.clock();
  await time.passUntil(() => silent.isClosed);
  await time.pass(pongMs + idle.wyomingIdleMsMax - 1 - time.clock());
  t.notOk(busy.isClosed);
  await time.passUntil(() => busy.isClosed);
});

t.test('half an event and half a text have less time', async (t) => {
  const { admission, front, open, speech } = await start(t, silence);
  for (const bytes of [
    '{"type": "synthes',
    '{"type": "synthesize", "data_length": 20}\n',
    '{"type": "synthesize", "data_length": 20}\n{"text": ',
    '{"type": "audio-chunk", "payload_length": 20}\n1234',
  ]) {
    const client = await open();
    const sentMs = performance.now();
    client.socket.write(bytes);
    isAbout(t, await closedAfterMs(client, sentMs), silence.socketSilenceMsMax, bytes);
  }
  const client = await open();
  const sentMs = performance.now();
  client.send('synthesize-start', {});
  client.send('synthesize-chunk', { text: 'And then' });
  await eventually(() => speech.contexts.length === 1);
  isAbout(t, await closedAfterMs(client, sentMs), silence.socketSilenceMsMax, 'half a text');
  t.ok(speech.last.released);
  t.equal(admission.slotsTaken, 0);
  t.match(requestLines(front), [{ fields: { outcome: 'silent', status: null } }]);
});

t.test('the time for an event begins with its first byte', async (t) => {
  const time = newTime();
  const { open } = await start(t, silence, time.clock);
  const client = await open();
  await time.pass(2 * silence.socketSilenceMsMax);
  client.socket.write('{"type": ');
  await time.pass(silence.socketSilenceMsMax / 2);
  client.socket.write('"ping"}\n');
  await client.until('pong');
});

t.test('a client that waits for speech is not idle', async (t) => {
  const time = newTime();
  const { front, open, speech } = await start(t, idle, time.clock);
  speech.script = () => undefined;
  const client = await open();
  client.send('synthesize', { text: 'Hello.' });
  await eventually(() => speech.contexts.length === 1);
  await time.pass(2 * idle.wyomingIdleMsMax);
  t.notOk(client.isClosed);
  speech.last.audio(3_000);
  speech.last.close();
  await client.until('audio-stop');
  await eventually(() => requestLines(front).length > 0);
  t.match(requestLines(front), [{ fields: { outcome: 'complete', status: 200 } }]);
  await time.passUntil(() => client.isClosed);
});

t.test('a client that asks and reads no answer gets no further one, and is closed', async (t) => {
  const { open, speech } = await start(t, stall);
  let asked = 0;
  const speakerIds = Array.from({ length: 2_000 }, (_, index) => `voice ${index}`);
  speech.voices = {
    ...speech.voices,
    get speakerIds() {
      asked++;
      return speakerIds;
    },
  };
  const client = await open();
  client.socket.pause();
  client.socket.write(Buffer.concat(Array.from({ length: 1_000 }, () => encodeWyoming('describe'))));
  await eventually(() => asked > 0);
  await pause(stall.readerStallMsMax * 2);
  t.ok(asked < 300, `${asked} lists of 400 KB are made, as many as the system takes`);
  client.socket.resume();
  await client.untilClosed();
});

t.test('a client that stops reading is closed, and its slot is free', async (t) => {
  const { admission, front, open, speech } = await start(t, stall);
  speech.script = (context) => context.stream(10_000, 96_000);
  const client = await open();
  client.socket.pause();
  client.send('synthesize', { text: 'Hello.' });
  await eventually(() => requestLines(front).length > 0);
  t.match(requestLines(front), [{ fields: { outcome: 'reader-stalled', status: null } }]);
  t.ok(speech.last.released);
  t.equal(admission.slotsTaken, 0);
  t.ok(speech.last.handedFrames.length < 10_000, 'most of it was never sent');
  client.socket.resume();
  await client.untilClosed();
  speech.script = (context) => context.stream(3, 3_000);
  const next = await open();
  next.send('synthesize', { text: 'Hello.' });
  await next.until('audio-stop');
});

t.test('a text ends when the account that pays may not speak any more', async (t) => {
  const { admission, open, speech } = await start(t, {});
  speech.script = () => undefined;
  const client = await open();
  client.send('synthesize', { text: 'Hello.' });
  await eventually(() => speech.contexts.length === 1);
  admission.revoked.add(payer.keyId);
  t.match((await client.until('error')).at(-1)?.data, { code: 'keyUnknown' });
  t.ok(speech.last.released);
  t.equal(admission.slotsTaken, 0);
});
