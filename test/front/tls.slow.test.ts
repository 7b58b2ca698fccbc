/** TLS in the process: versions, answers, and the renewal of certificates. */
import { execFileSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type PeerCertificate, type SecureVersion } from 'node:tls';
import t from 'tap';
import { WebSocket } from 'ws';
import { httpListener, type DialectParts } from '../../src/dialects/http-listener.js';
import { openAi } from '../../src/dialects/openai/openai.js';
import { readCertificate } from '../../src/front/certificate.js';
import type { FurtherListener, Shared } from '../../src/front/server.js';
import { limits } from '../../src/limits.js';
import { makeCertificate, type TestCertificate } from '../support/certificates.js';
import { FakeAdmission, GOOD_KEY, speak, startFront, type Front } from '../support/front-server.js';
import { FakeSpeech } from '../support/fake-speech.js';
import { openFrom, openIn } from '../support/many-connections.js';
import { RawClient } from '../support/raw-client.js';
import { missingTool } from '../support/tools.js';
import { eventually } from '../support/waiting.js';

const skip = missingTool('openssl');
const folder = t.testdir({});
const certificate = skip === false ? makeCertificate(folder, 'first') : undefined;

const startTls = (t: Parameters<typeof startFront>[0]): Promise<Front> =>
  startFront(t, certificate === undefined ? {} : { certificate });

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
  });

/** @returns the name in the certificate that a new connection gets */
const shownName = (port: number, { ca }: TestCertificate): Promise<string | string[] | undefined> =>
  new Promise((resolve, reject) => {
    const socket = connectTls({ host: '127.0.0.1', port, ca }, () => {
      const shown: PeerCertificate = socket.getPeerCertificate();
      socket.destroy();
      resolve(shown.subject.CN);
    });
    socket.once('error', reject);
  });

t.test('a pipe in the place of a certificate is refused, not waited for', (t) => {
  const certPath = join(t.testdir({}), 'pipe.pem');
  execFileSync('mkfifo', [certPath]);
  t.throws(() => readCertificate({ certPath, keyPath: certPath }), {
    message: /pipe\.pem: it is not a regular file$/,
  });
  t.end();
});

t.test('TLS 1.2 and 1.3 work, and older versions are refused', { skip }, async (t) => {
  const { port } = await startTls(t);
  const versionOf = (version: SecureVersion) =>
    new Promise<string | null>((resolve, reject) => {
      // OpenSSL offers old versions only if the client insists.
      const old = { ciphers: 'DEFAULT@SECLEVEL=0' };
      const socket = connectTls(
        { host: '127.0.0.1', port, ca: certificate!.ca, minVersion: version, maxVersion: version, ...old },
        () => {
          resolve(socket.getProtocol());
          socket.destroy();
        },
      );
      socket.once('error', reject);
    });
  t.equal(await versionOf('TLSv1.3'), 'TLSv1.3');
  t.equal(await versionOf('TLSv1.2'), 'TLSv1.2');
  for (const version of ['TLSv1', 'TLSv1.1'] as const)
    await t.rejects(versionOf(version), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' }, version);
});

t.test(
  'an address without a key makes few handshakes in a second, on two ports together',
  { skip },
  async (t) => {
    const handshakeMs = 4;
    const costly = { ...readCertificate(certificate!), handshakeMs };
    const dialect = (shared: Shared): FurtherListener => {
      const config = { host: '127.0.0.1', dataDir: folder, corsOrigins: [] };
      const { admission, speech } = { admission: new FakeAdmission(), speech: new FakeSpeech() };
      const parts: DialectParts = { config, certificate: costly, shared, speech, admission, bounds: limits };
      return httpListener(parts, openAi({ port: 0, voices: new Map() }, parts));
    };
    let nowMs = 0;
    const front = await startFront(t, {
      certificate: certificate!,
      parts: { certificate: costly, clock: () => nowMs, further: (shared) => [dialect(shared)] },
    });
    const opened = (count: number) =>
      Promise.all(
        [front.port, front.dialectPorts['openai']!].map((port) => openFrom(t, port, '127.0.0.5', count)),
      );
    const refusals = async () =>
      Number(/"connectionsOfAddressExhausted"\} (\d+)/.exec(await front.metrics.text())?.[1]);
    const atOnce = limits.handshakeMsAtOnceMax / handshakeMs;
    await opened(3 * atOnce);
    await eventually(async () => (await refusals()) === 5 * atOnce);
    nowMs += 1_000;
    await opened(atOnce);
    const inSecond = Math.floor(limits.handshakeMsPerSecond / handshakeMs);
    await eventually(async () => (await refusals()) === 7 * atOnce - inSecond);

    await (await front.sent(speak('/v1/tts/stream'))).response();
    const known = await openFrom(t, front.port, '127.0.0.1', 6 * atOnce);
    t.match(await (await front.sent(speak('/v1/tts/stream'))).response(), { status: 200 });
    t.equal(openIn(known), 6 * atOnce, 'an address that has shown a key opens all of them');
  },
);

t.test('a renewed certificate with a costlier key allows fewer handshakes', { skip }, async (t) => {
  const front = await startTls(t);
  const rsa = readCertificate(makeCertificate(folder, 'rsa', ['rsa:3072']));
  t.ok(rsa.handshakeMs > 1.5 * readCertificate(certificate!).handshakeMs, `${rsa.handshakeMs} ms`);
  t.ok(front.server.renewCertificate({ ...rsa, handshakeMs: 10 * limits.handshakeMsAtOnceMax }));
  const sockets = await openFrom(t, front.port, '127.0.0.6', 8);
  await eventually(() => openIn(sockets) === 1);
  t.pass('however costly it is, a stranger may make one');
});

t.test('every kind of answer works over TLS', { skip }, async (t) => {
  const front = await startTls(t);
  for (const path of ['/v1/tts/stream', '/v1/tts'] as const) {
    front.speech.script = (context) => context.stream(200, 21_000);
    const client = await front.sent(speak(path));
    const response = await client.response();
    t.equal(response.status, 200);
    t.ok(response.complete);
    const audio = front.speech.last.expectedBytes();
    const expected = path === '/v1/tts' ? Buffer.from(`{"audio":"${audio.toString('latin1')}"}`) : audio;
    t.ok(response.body.equals(expected), `${path}: every byte of ${expected.length}`);
    client.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await client.response()).status, 200, 'the connection is kept');
  }
  const ws = new WebSocket(`wss://127.0.0.1:${front.port}/v1/tts/ws`, {
    ca: certificate!.ca,
    headers: { 'x-api-key': GOOD_KEY },
  });
  const started = new Promise<string>((resolve, reject) => {
    ws.once('message', (data: Buffer) => resolve(data.toString()));
    ws.once('error', reject);
  });
  ws.once('open', () => ws.send('{"start_context":{"voice_id":"ada","model_id":"default"}}'));
  t.match(JSON.parse(await started), { context_started: { voice_id: 'ada' } });
  ws.terminate();
});

t.test('hundreds of connections in a row work', { skip }, async (t) => {
  const front = await startTls(t);
  const renewed = makeCertificate(folder, 'meanwhile');
  await (await front.sent(speak('/v1/tts/stream'))).response();
  let answered = 0;
  const ask = async (port: number, ca: string) => {
    const client = await RawClient.open(port, ca);
    client.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    if ((await client.response()).status === 200) answered++;
    client.destroy();
  };
  for (let i = 0; i < 400; i++) await ask(front.port, certificate!.ca);
  front.server.renewCertificate(readCertificate(renewed));
  for (let i = 0; i < 100; i++) await ask(front.port, renewed.ca);
  t.equal(answered, 500);
});

t.test('a port of another process is not shared', { skip }, async (t) => {
  const front = await startTls(t);
  const config = { host: '127.0.0.1', port: front.port, dataDir: front.dataDir, corsOrigins: [] };
  const second = await startFront(t, { certificate: certificate!, parts: { config } }).catch(
    (error: unknown) => error,
  );
  t.match(second, { name: 'ListenError', code: 'EADDRINUSE' });
});

t.test('a client without TLS is closed and disturbs no other', { skip }, async (t) => {
  const front = await startTls(t);
  const streaming = await front.client();
  const greeting = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3]);
  const plain = connect({ host: '127.0.0.1', port: front.port });
  let answer = '';
  plain.on('data', (bytes) => (answer += bytes.toString('latin1')));
  plain.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  await closed(plain);
  t.notMatch(answer, 'HTTP', 'nothing is said in plain text');
  for (let i = 0; i < 20; i++) {
    const half = connect({ host: '127.0.0.1', port: front.port });
    half.write(greeting);
    half.end();
    await closed(half);
  }
  streaming.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await streaming.response()).status, 200);
  t.equal((await (await front.sent(speak('/v1/tts/stream'))).response()).status, 200);
  t.equal(front.server.inFlight, 0);
});

t.test('new connections get a renewed certificate; open ones continue', { skip }, async (t) => {
  const front = await startTls(t);
  const renewed = makeCertificate(folder, 'renewed');
  t.equal(await shownName(front.port, certificate!), 'first');
  front.speech.script = (context) => context.audio(30_000);
  const streaming = await front.sent(speak('/v1/tts/stream'));
  await streaming.until(() => streaming.receivedBytes > 30_000);

  t.ok(front.server.renewCertificate(readCertificate(renewed)));
  t.equal(await shownName(front.port, renewed), 'renewed');
  await t.rejects(shownName(front.port, certificate!), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  const context = front.speech.last;
  context.audio(30_000);
  context.close();
  const response = await streaming.response();
  t.ok(response.complete);
  t.ok(response.body.equals(context.expectedBytes()), 'a stream that was in flight ends as it should');
  streaming.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await streaming.response()).status, 200, 'and its connection is kept');

  t.notOk(front.server.renewCertificate(readCertificate(renewed)), 'the same again changes nothing');
  t.equal(await shownName(front.port, renewed), 'renewed');
});

t.test(
  'only so many certificates are in use: the connections of the oldest are closed',
  { skip },
  async (t) => {
    const front = await startTls(t);
    const oldest = await front.client();
    let last = certificate!;
    for (let i = 1; i < limits.certificatesInUseMax; i++) {
      last = makeCertificate(folder, `number-${i}`);
      front.server.renewCertificate(readCertificate(last));
    }
    oldest.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await oldest.response()).status, 200);
    const kept = await RawClient.open(front.port, last.ca);
    front.server.renewCertificate(readCertificate(makeCertificate(folder, 'one-more')));
    await oldest.closed();
    kept.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await kept.response()).status, 200);
    kept.destroy();
  },
);
