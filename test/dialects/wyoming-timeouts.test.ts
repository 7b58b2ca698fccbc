/** How long a client of the Wyoming port may keep the service waiting, with bounds of a fraction of a second. */
import t, { type Test } from 'tap';
import { WyomingListener } from '../../src/dialects/wyoming/wyoming.js';
import { limits } from '../../src/limits.js';
import { FakeSpeech } from '../support/fake-speech.js';
import { eventually, FakeAdmission, requestLines, startFront, type Front } from '../support/front-server.js';
import { pause } from '../support/service.js';
import { WyomingClient } from '../support/wyoming-client.js';

const bounds = {
  ...limits,
  wyomingIdleMsMax: 900,
  socketSilenceMsMax: 300,
  readerStallMsMax: 300,
  /** The service looks at each connection four times in it. */
  stallRearmMs: 100,
};
/** For a busy machine. A bound and this are less than the next longer bound. */
const lateMsMax = 550;

interface Rig {
  readonly front: Front;
  readonly speech: FakeSpeech;
  readonly admission: FakeAdmission;
  readonly open: () => Promise<WyomingClient>;
}

const start = async (t: Test): Promise<Rig> => {
  const [speech, admission] = [new FakeSpeech(), new FakeAdmission()];
  const config = { host: '127.0.0.1', port: 0, allow: [], account: 'default' };
  const front = await startFront(t, {
    bounds,
    parts: {
      ...{ speech, admission },
      further: (shared) => {
        const parts = { shared, speech, admission, bounds, certificate: null };
        return [
          new WyomingListener({ ...parts, config: { host: '', dataDir: '', corsOrigins: [] } }, config, 7),
        ];
      },
    },
  });
  return {
    ...{ front, speech, admission },
    open: async () => {
      const client = await WyomingClient.open(front.dialectPorts['wyoming'] ?? 0);
      t.teardown(() => client.close());
      return client;
    },
  };
};

/** @returns milliseconds until the service closes the connection */
const closedAfterMs = async (client: WyomingClient): Promise<number> => {
  const sinceMs = performance.now();
  await client.untilClosed();
  return performance.now() - sinceMs;
};

const isAbout = (t: Test, ms: number, expectedMs: number, what: string): void => {
  t.ok(ms > expectedMs - 20 && ms < expectedMs + lateMsMax, `${what}: ${Math.round(ms)} ms`);
};

t.test('an idle client is closed after its time, and each event begins that time again', async (t) => {
  const { open } = await start(t);
  const [silent, busy] = [await open(), await open()];
  const silentMs = closedAfterMs(silent);
  await pause(bounds.wyomingIdleMsMax / 2);
  busy.send('ping');
  await busy.until('pong');
  const busyMs = closedAfterMs(busy);
  isAbout(t, await silentMs, bounds.wyomingIdleMsMax, 'silent');
  isAbout(t, await busyMs, bounds.wyomingIdleMsMax, 'after its event');
});

t.test('half an event and half a text have less time', async (t) => {
  const { admission, front, open, speech } = await start(t);
  for (const bytes of ['{"type": "synthes', '{"type": "synthesize", "data_length": 20}\n{"text": ']) {
    const client = await open();
    client.socket.write(bytes);
    isAbout(t, await closedAfterMs(client), bounds.socketSilenceMsMax, bytes);
  }
  const client = await open();
  client.send('synthesize-start', {});
  client.send('synthesize-chunk', { text: 'And then' });
  await eventually(() => speech.contexts.length === 1);
  isAbout(t, await closedAfterMs(client), bounds.socketSilenceMsMax, 'half a text');
  t.ok(speech.last.released);
  t.equal(admission.slotsTaken, 0);
  t.match(requestLines(front), [{ fields: { outcome: 'silent', status: null } }]);
});

t.test('a client that waits for speech is not idle', async (t) => {
  const { front, open, speech } = await start(t);
  speech.script = () => undefined;
  const client = await open();
  client.send('synthesize', { text: 'Hello.' });
  await pause(bounds.wyomingIdleMsMax * 1.5);
  t.notOk(client.isClosed);
  speech.last.audio(3_000);
  speech.last.close();
  await client.until('audio-stop');
  await eventually(() => requestLines(front).length > 0);
  t.match(requestLines(front), [{ fields: { outcome: 'complete', status: 200 } }]);
  isAbout(t, await closedAfterMs(client), bounds.wyomingIdleMsMax, 'idle again');
});

t.test('a client that stops reading is closed, and its slot is free', async (t) => {
  const { admission, front, open, speech } = await start(t);
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
