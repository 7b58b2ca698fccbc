/**
 * Clients that use a kept connection again after a pause. The service ends idle connections, and a request that is on its
 * way at that moment gets no answer. Whoever keeps to the `keep-alive` header never meets that.
 *
 * All clients run at the same time, on lines with a round trip of 300 ms.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Client } from 'undici';
import { isNight } from '../fuzz/check.js';
import { packageRoot } from '../support/package-root.js';
import { startProxy } from '../support/proxy.js';
import { header, RawClient, requestBytes } from '../support/raw-client.js';
import { pause, SCRIPTED, speech, startService } from '../support/service.js';
import { startDistantLine, type DistantLine } from '../support/distant-line.js';
import { missingTool, pythonFor } from '../support/tools.js';

const CONNECTIONS = 30;
/** The race is met in about one pause of twelve. */
const REQUESTS = isNight ? 6 : 3;
const DELAY_MS = 150;
const STAGGER_MS = 50;

/** Of each connection: its pauses, spread evenly over the range and alike in sum. */
const pausesMs = (fromMs: number, toMs: number): number[][] =>
  Array.from({ length: CONNECTIONS }, (_, connection) =>
    Array.from({ length: REQUESTS - 1 }, (_, round) => {
      const part = (connection * 0.618_034 + round * 0.754_878) % 1;
      return Math.round(fromMs + part * (toMs - fromMs));
    }),
  );

const body = JSON.stringify(
  speech('Is this line still open?', { response_format: { encoding: 'mulaw', sample_rate: 8_000 } }),
);

interface Answers {
  readonly statuses: number[];
  /** Of requests without an answer. */
  readonly errors: string[];
}

const allAnswered = (t: Test, { statuses, errors }: Answers): void => {
  t.strictSame(errors, []);
  t.equal(statuses.length, CONNECTIONS * REQUESTS);
  t.ok(
    statuses.every((status) => status === 200),
    String(statuses.find((status) => status !== 200)),
  );
};

const headersOf = (key: string) => ({ 'x-api-key': key, 'content-type': 'application/json' });

/**
 * @param thresholdMs undici reuses a connection for so much less than the announced time
 * @param ca connects with TLS
 */
const askByUndici = async (
  port: number,
  keys: readonly string[],
  pauses: readonly (readonly number[])[],
  thresholdMs?: number,
  ca?: string,
): Promise<Answers> => {
  const answers: Answers = { statuses: [], errors: [] };
  const run = async (index: number): Promise<void> => {
    const client = new Client(ca === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`, {
      // Without an announcement, the connection would be kept for a minute.
      keepAliveTimeout: 60_000,
      ...(thresholdMs !== undefined && { keepAliveTimeoutThreshold: thresholdMs }),
      ...(ca !== undefined && { connect: { ca } }),
    });
    await pause(index * STAGGER_MS);
    for (const [round, pauseMs] of [0, ...(pauses[index] ?? [])].entries()) {
      await pause(pauseMs);
      try {
        const path = round % 2 === 0 ? '/v1/tts' : '/v1/tts/stream';
        const response = await client.request({
          ...{ method: 'POST', path, body },
          headers: headersOf(keys[index] ?? ''),
        });
        await response.body.text();
        answers.statuses.push(response.statusCode);
      } catch (error) {
        answers.errors.push(String(error));
      }
    }
    await client.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => run(index)));
  return answers;
};

const askByUrllib3 = (
  python: string,
  port: number,
  keys: readonly string[],
  pauses: readonly (readonly number[])[],
): Promise<Record<'plain' | 'retrying', Answers>> =>
  new Promise((resolve, reject) => {
    const child = spawn(python, [join(packageRoot, 'test/support/idle_urllib3.py')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', reject).once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Record<'plain' | 'retrying', Answers>);
      else reject(new Error(`python ended with ${code}`));
    });
    child.stdin.end(JSON.stringify({ port, keys, pausesMs: pauses, staggerMs: STAGGER_MS, body }));
  });

t.test('idle connections', { jobs: 10 }, async (t) => {
  // Beside other programs a machine may be at its capacity. A refusal says nothing about connections.
  const service = await startService(t, { SYNTHESIS_THREADS: '1', OVERLOAD: 'late' }, SCRIPTED);
  const keys = await service.makeKeys(CONNECTIONS, 1_000_000);
  const line = (t: Test): Promise<DistantLine> => startDistantLine(t, service.port, DELAY_MS);
  const late = pausesMs(8_000, 11_000);

  void t.test('the service keeps its promise', async (t) => {
    const paths = ['/v1/tts', '/v1/tts/stream', '/v1/tts/speakers', '/healthz'];
    // Of its own: with the requests of the other tests a key could ask for a tenth stream.
    const ownKeys = await service.makeKeys(CONNECTIONS, 1_000_000);
    const idleMs = await Promise.all(
      Array.from({ length: 120 }, async (_, index) => {
        await pause(index * 35);
        const client = await RawClient.open(service.port);
        const path = paths[index % paths.length] ?? '';
        const key = ownKeys[index % ownKeys.length] ?? '';
        const isSpeech = path.startsWith('/v1/tts') && !path.endsWith('speakers');
        const sentMs = performance.now();
        client.send(requestBytes(isSpeech ? { method: 'POST', path, key, body } : { path, key }));
        const response = await client.response();
        t.strictSame([response.status, header(response, 'keep-alive')], [200, 'timeout=7'], path);
        await client.closed();
        client.destroy();
        return performance.now() - sentMs;
      }),
    );
    const [first, last] = [Math.min(...idleMs), Math.max(...idleMs)];
    t.comment(`idle connections ended after ${first.toFixed(0)} to ${last.toFixed(0)} ms`);
    t.ok(first > 7_500, `the first after ${first} ms`);
  });

  void t.test('undici, which keeps to the announced time, has no failure', async (t) => {
    const distant = await line(t);
    allAnswered(t, await askByUndici(distant.port, keys, late));
    t.equal(distant.connections, CONNECTIONS * REQUESTS, 'it used no connection that had idled so long');
  });

  void t.test('within the announced time a connection is always good', async (t) => {
    const distant = await line(t);
    allAnswered(t, await askByUndici(distant.port, keys, pausesMs(4_500, 5_500), -60_000));
    t.equal(distant.connections, CONNECTIONS, 'it used each connection to the end');
  });

  void t.test('a client that does not look at the announced time has failures', async (t) => {
    const distant = await line(t);
    const { statuses, errors } = await askByUndici(distant.port, keys, late, -60_000);
    t.comment(`${errors.length} of ${errors.length + statuses.length} requests: ${errors[0]}`);
    t.ok(errors.length > 0, 'these pauses and lines find the race');
    t.ok(
      errors.every((error) => /other side closed|ECONNRESET|EPIPE/.test(error)),
      errors.join('\n'),
    );
  });

  const { python, skip } = pythonFor('urllib3');
  void t.test(
    'urllib3, which does not look at it either, has none if it may try again',
    { skip },
    async (t) => {
      const distant = await line(t);
      const { plain, retrying } = await askByUrllib3(python, distant.port, keys, late);
      t.comment(`without: ${plain.errors.length} of ${CONNECTIONS * REQUESTS}: ${plain.errors[0]}`);
      t.equal(plain.statuses.length + plain.errors.length, CONNECTIONS * REQUESTS);
      t.ok(
        plain.errors.every((error) => /Connection aborted|reset|closed/i.test(error)),
        plain.errors.join('\n'),
      );
      allAnswered(t, retrying);
    },
  );

  void t.test('nginx as shipped has no failure', { skip: missingTool('nginx', 'openssl') }, async (t) => {
    const distant = await line(t);
    const proxy = await startProxy(t, join(service.dataDir, 'nginx'), [distant.port, 1]);
    allAnswered(t, await askByUndici(proxy.port, keys, late, undefined, proxy.certificate));
    t.equal(distant.connections, CONNECTIONS * REQUESTS, 'nginx keeps no connection to the service');
    t.equal(proxy.errors(), '');
  });
});
