/** WebSockets of the ElevenLabs API whose key comes in the first message: what they can take before it has come. */
import { readFileSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { ElevenLabsClient } from '../support/elevenlabs-client.js';
import { pause, SCRIPTED, startService, until } from '../support/service.js';

const service = await startService(t, { SOCKETS_MAX: '4096', ELEVENLABS_PORT: '0' }, SCRIPTED);
const port = service.dialectPorts['elevenlabs'] ?? 0;
const path = '/v1/text-to-speech/wren/stream-input?output_format=pcm_24000';

const handshake = Buffer.from(
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
);

/** A masked frame, whose mask is 0, or its beginning. @param opcode with the bit of the last fragment */
const frame = (opcode: number, announcedBytes: number, sentBytes: number): Buffer => {
  const head = Buffer.alloc(14);
  head[0] = opcode;
  if (announcedBytes < 126) {
    head[1] = 0x80 | announcedBytes;
    return Buffer.concat([head.subarray(0, 6), Buffer.alloc(sentBytes, 0x20)]);
  }
  head[1] = 0xff;
  head.writeBigUInt64BE(BigInt(announcedBytes), 2);
  return Buffer.concat([head, Buffer.alloc(sentBytes, 0x20)]);
};

interface Stranger {
  readonly socket: Socket;
  answer: string;
}

/** Opens connections and asks for WebSockets without a key. */
const strangers = async (
  t: Test,
  count: number,
  localAddress = '127.0.0.1',
  at = port,
): Promise<readonly Stranger[]> => {
  const opened = Array.from({ length: count }, () => {
    const socket = createConnection({ host: '127.0.0.1', port: at, localAddress });
    const stranger: Stranger = { socket, answer: '' };
    socket.on('error', () => undefined);
    socket.on('close', () => (stranger.answer ||= 'closed'));
    socket.on('data', (data) => (stranger.answer ||= data.toString('latin1', 9, 12)));
    socket.write(handshake);
    return stranger;
  });
  t.teardown(() => opened.forEach(({ socket }) => socket.destroy()));
  await until(() => opened.every(({ answer }) => answer !== ''));
  return opened;
};

const residentMiB = (): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1_024;

const speakHere = async (t: Test, opened: Promise<ElevenLabsClient | object>, more: object = {}) => {
  const client = await opened;
  if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
  t.teardown(() => client.close());
  client.send({ text: ' ', ...more }, { text: 'Hello there. ' }, { text: '' });
  await client.until(() => client.isFinal(undefined));
  return client;
};

const openWith = (headers: Record<string, string> = {}) =>
  ElevenLabsClient.open(`ws://127.0.0.1:${port}${path}`, headers);

await speakHere(t, openWith(), { xi_api_key: service.key });

t.test('400 sockets that announce a megabyte and send most of it take no memory', async (t) => {
  const beforeMiB = residentMiB();
  const attack = await strangers(t, 400);
  for (const { socket } of attack) socket.write(frame(0x81, 1_000_000, 950_000));
  let mostMiB = beforeMiB;
  const startedMs = performance.now();
  while (performance.now() - startedMs < 2_000) {
    mostMiB = Math.max(mostMiB, residentMiB());
    await pause(50);
  }
  t.comment(`from ${beforeMiB.toFixed()} to ${mostMiB.toFixed()} MiB`);
  t.ok(mostMiB - beforeMiB < 60, `${beforeMiB.toFixed()} to ${mostMiB.toFixed()} MiB`);
  const areClosed = () => attack.every(({ socket }) => socket.readyState !== 'open');
  t.ok(await until(areClosed), 'each is closed at its first bytes');
  await speakHere(t, openWith(), { xi_api_key: service.key });
});

t.test('few sockets of an address wait for a key, and others are served', async (t) => {
  const refusals = () => service.metric('syrinx_refusals_total', { reason: 'keylessSocketsExhausted' });
  const before = await refusals();
  const waiting = await strangers(t, 300);
  const admitted = waiting.filter(({ answer }) => answer === '101').length;
  t.equal(admitted, limits.keylessSocketsMax / 4);
  t.equal(waiting.filter(({ answer }) => answer === '503').length, 300 - admitted);
  t.equal((await refusals()) - before, 300 - admitted);
  await speakHere(t, openWith({ 'xi-api-key': service.key }));
  const others = await strangers(t, 10, '127.0.0.2');
  t.ok(others.every(({ answer }) => answer === '101'));
  for (const { socket } of [...waiting, ...others]) socket.destroy();
  await speakHere(t, openWith(), { xi_api_key: service.key });
});

t.test('sockets without a key count in SOCKETS_MAX', async (t) => {
  const small = await startService(t, { SOCKETS_MAX: '16', ELEVENLABS_PORT: '0' }, SCRIPTED);
  const answersTo = async (address: string): Promise<readonly string[]> =>
    (await strangers(t, 20, address, small.dialectPorts['elevenlabs'])).map(({ answer }) => answer);
  const answers = [...(await answersTo('127.0.0.1')), ...(await answersTo('127.0.0.2'))];
  const admitted = answers.filter((answer) => answer === '101').length;
  t.ok(admitted > 0 && admitted < 16, `${admitted} of 40`);
});

t.test('a socket that shows no key is refused after ten seconds', async (t) => {
  const client = await openWith();
  if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
  t.teardown(() => client.close());
  t.equal((await client.untilClosed()).code, 1008);
  t.match(JSON.stringify(client.messages), /API key/);
});

t.test('the messages of a socket are longer if its handshake has the key', async (t) => {
  const text = 'word '.repeat(1_000);
  for (const headers of [{}, { 'xi-api-key': service.key }]) {
    const client = await openWith(headers);
    if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
    t.teardown(() => client.close());
    client.send({ text: ' ', xi_api_key: service.key }, { text: ' '.repeat(3_000) }, { text });
    if ('xi-api-key' in headers) await client.until(() => client.audio(undefined).length > 0);
    else t.equal((await client.untilClosed()).code, 1006);
  }
});

t.test('a refused socket is closed after a while, and dropped before if it goes on to send', async (t) => {
  const refused = (await strangers(t, 2)).map(({ socket }) => {
    const received: Buffer[] = [];
    socket.on('data', (data) => received.push(data));
    const text = '{"text":" ","xi_api_key":"none"}';
    const first = frame(0x81, text.length, text.length);
    first.write(text, first.length - text.length);
    socket.write(first);
    return { socket, hasCloseFrame: () => received.at(-1)?.at(0) === 0x88 };
  });
  const sends = async (index: number, count: number): Promise<boolean> => {
    const { socket, hasCloseFrame } = refused[index]!;
    for (let sent = 0; sent < count; sent++) socket.write(frame(0x81, 1, 1));
    await until(() => socket.readyState !== 'open' || hasCloseFrame());
    return hasCloseFrame();
  };
  t.strictSame(await Promise.all([sends(0, 30), sends(1, 1_000)]), [true, false]);
});

t.test('a socket that sends control frames in place of a key is dropped', async (t) => {
  const pings = Buffer.concat(Array.from({ length: 80 }, () => frame(0x89, 100, 100)));
  const [few, many] = await strangers(t, 2);
  few?.socket.write(frame(0x89, 4, 4));
  many?.socket.write(pings);
  await until(() => many?.socket.readyState !== 'open');
  t.equal(few?.socket.readyState, 'open');
});
