/**
 * Readers slower than the speech, for longer than the library waits: it drops a response about 11 s after a failed write, so without
 * re-arms each of these would be lost, and by night twice. They run side by side, and the test compares every byte.
 */
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { isNight } from '../fuzz/check.js';
import { makeCertificate, type TestCertificate } from '../support/certificates.js';
import { FakeLease, type FakeContext, type Script } from '../support/fake-speech.js';
import { startFront } from '../support/front-server.js';
import { missingTool } from '../support/tools.js';
import { pause } from '../support/waiting.js';

const SLOW_MS = isNight ? 26_000 : 14_000;
const FRAME_BYTES = 21_000;
/** More than the kernel's buffers hold, on the wire. */
const KERNEL_BYTES = 10_000_000;

/** More than the reader takes in that time. */
const plenty =
  (bytesASecond: number): Script =>
  (context) =>
    context.stream(
      Math.ceil(((KERNEL_BYTES + (bytesASecond * SLOW_MS) / 1000) * 3) / 4 / FRAME_BYTES),
      FRAME_BYTES,
    );

/**
 * Fills the socket, then sends nothing for longer than that. What is held back soon fits, but the kernel does not report the
 * socket writable before a third of its buffer is free, and until then the library's timer runs.
 */
const fillThenPause = async (context: FakeContext): Promise<void> => {
  let emitted = 0;
  while (context.handedFrames.length === emitted && emitted * FRAME_BYTES < KERNEL_BYTES) {
    context.audio(FRAME_BYTES);
    emitted += 1;
    for (let turn = 0; turn < 20 && context.handedFrames.length < emitted; turn++) await pause(5);
  }
  await pause(SLOW_MS - 1_000);
  context.audio(FRAME_BYTES);
  await pause(isNight ? 14_000 : 2_000);
  context.close();
};

t.setTimeout(280_000);

// Side by side, because they wait most of the time.
t.jobs = 2;

const slowReaders = async (
  t: Test,
  rates: readonly number[],
  certificate?: TestCertificate,
): Promise<void> => {
  const front = await startFront(t, {
    bounds: { resultMemoryBytesMax: 2_000_000 },
    ...(certificate !== undefined && { certificate }),
  });
  front.admission.admit = () => ({ ok: true, lease: new FakeLease(() => undefined) });

  const read = async (
    name: string,
    path: '/v1/tts' | '/v1/tts/stream',
    bytesASecond: number,
    script: Script,
  ): Promise<() => Promise<void>> => {
    front.speech.script = script;
    const client = await front.client();
    const opened = front.speech.contexts.length;
    const stop = new AbortController();
    if (bytesASecond === 0) client.socket.pause();
    else client.readAt(bytesASecond, stop.signal);
    const body = '{"text":"a","voice":"ada"}';
    client.send(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nx-api-key: svc_sk_good\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    while (front.speech.contexts.length === opened) await new Promise((resolve) => setImmediate(resolve));
    const context = front.speech.last;
    return async () => {
      t.notOk(client.isClosed, `${name}: the connection holds`);
      stop.abort();
      client.socket.resume();
      const response = await client.response();
      t.ok(response.complete, `${name}: complete`);
      const expected = context.expectedBytes();
      const audio = path === '/v1/tts' ? Buffer.from(`{"audio":"${expected.toString('latin1')}"}`) : expected;
      t.ok(response.body.equals(audio), `${name}: every byte`);
      t.equal(context.handedFrames.length, context.expected.length, `${name}: every frame was handed`);
      t.ok(context.released, `${name}: released`);
    };
  };

  const readers = [];
  for (const bytesASecond of rates)
    for (const path of ['/v1/tts/stream', '/v1/tts'] as const)
      readers.push(await read(`${path} at ${bytesASecond} B/s`, path, bytesASecond, plenty(bytesASecond)));
  readers.push(
    await read('a pause of the speech', '/v1/tts/stream', 10_000, (context) => void fillThenPause(context)),
  );
  // Connections that have sent nothing, or half a greeting of TLS.
  const idle = ['', '\x16\x03\x01\x02\x00\x01\x00'].map((greeting) => {
    const socket = connect({ host: '127.0.0.1', port: front.port });
    socket.on('error', () => undefined).resume();
    socket.write(Buffer.from(greeting, 'latin1'));
    return new Promise((resolve) => socket.once('close', resolve));
  });
  await pause(SLOW_MS);
  t.equal(front.server.inFlight, readers.length, 'all readers are still in flight');
  for (const finish of readers) await finish();
  t.equal(front.server.inFlight, 0);
  await Promise.all(idle);
};

const timeout = 280_000;
const folder = t.testdir({});

t.test('slow and stalled readers get every byte', { timeout }, (t) =>
  slowReaders(t, [0, 20_000, 100_000, 400_000]),
);

t.test('slow and stalled readers get every byte over TLS', { timeout, skip: missingTool('openssl') }, (t) =>
  slowReaders(t, [0, 100_000], makeCertificate(folder, 'slow')),
);
