/**
 * Readers slower than the speech is made, for 45 seconds: the library drops a response about 11 s after a write that
 * failed, so each of these would be lost several times over. They run side by side, and every byte is compared.
 */
import t from 'tap';
import type { RawClient } from '../support/raw-client.js';
import { startFront } from '../support/front-server.js';

const SLOW_MS = 45_000;
const FRAME_BYTES = 21_000;
/** More than the kernel's buffers hold, in bytes on the wire. */
const KERNEL_BYTES = 10_000_000;
const framesFor = (bytesASecond: number): number =>
  Math.ceil(((KERNEL_BYTES + (bytesASecond * SLOW_MS) / 1000) * 3) / 4 / FRAME_BYTES);

t.setTimeout(SLOW_MS + 60_000);

t.test('slow and stalled readers get every byte', { timeout: SLOW_MS + 60_000 }, async (t) => {
  const front = await startFront(t, { bounds: { resultMemoryBytesMax: 2_000_000 } });
  front.admission.admit = () => ({ ok: true, lease: { keyId: 7, settle() {}, close() {}, void() {} } });
  const slow = async (
    path: '/v1/tts' | '/v1/tts/stream',
    bytesASecond: number,
  ): Promise<() => Promise<void>> => {
    const frames = framesFor(bytesASecond);
    front.speech.script = (context) => context.stream(frames, FRAME_BYTES);
    const client: RawClient = await front.client();
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
      const name = `${path} at ${bytesASecond} B/s`;
      t.notOk(client.isClosed, `${name}: the connection holds`);
      stop.abort();
      client.socket.resume();
      const response = await client.response();
      t.ok(response.complete, `${name}: complete`);
      const expected = context.expectedBytes();
      const audio = path === '/v1/tts' ? Buffer.from(`{"audio":"${expected.toString('latin1')}"}`) : expected;
      t.ok(response.body.equals(audio), `${name}: every byte`);
      t.equal(context.handedFrames.length, frames, `${name}: every frame was handed`);
      t.ok(context.released, `${name}: released`);
    };
  };
  const readers = [];
  for (const bytesASecond of [0, 20_000, 100_000, 400_000])
    for (const path of ['/v1/tts/stream', '/v1/tts'] as const) readers.push(await slow(path, bytesASecond));
  await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
  t.equal(front.server.inFlight, readers.length, 'all of them were slow to the end');
  for (const finish of readers) await finish();
  t.equal(front.server.inFlight, 0);
});
