/** The ops listener of a whole service: there before the voices are, and until the end of a drain. */
import { createServer, type AddressInfo } from 'node:net';
import t from 'tap';
import { recordsOf, SCRIPTED, spawnService, startService, until } from '../support/service.js';

const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

const freePort = async (): Promise<number> => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const { port } = holder.address() as AddressInfo;
  await new Promise((resolve) => holder.close(resolve));
  return port;
};

/** What a `/readyz` says; `null` while nothing listens there. */
const readiness = async (port: number): Promise<string | null> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    const { status, reasons = [] } = (await response.json()) as { status: string; reasons?: string[] };
    return [response.status, status, ...reasons].join(' | ');
  } catch {
    return null;
  }
};

t.test('while voices load it says so; then it is ready', async (t) => {
  const opsPort = await freePort();
  const service = spawnService(t, { ...oneThread, OPS_PORT: String(opsPort) });
  const said = new Set<string | null>();
  await until(async () => said.add(await readiness(opsPort)).has('200 | ready'));
  said.delete(null);
  t.strictSame([...said], ['503 | not ready | voices are loading', '200 | ready']);
  await service.listening();
  t.equal(service.opsPort, opsPort, 'the log has the port');
  t.equal(await readiness(service.port), '200 | ready', 'the other listener agrees');
});

t.test('during a drain it goes on, and says so', async (t) => {
  const service = await startService(t, oneThread, SCRIPTED);
  const response = await service.post('/v1/tts/stream', {
    text: 'All is well that ends well. '.repeat(60),
    voice: 'wren',
    response_format: { encoding: 'pcm', sample_rate: 48_000 },
  });
  const records = recordsOf(response);
  await records.next();
  service.signal('SIGTERM');
  const draining = '503 | not ready | draining';
  t.ok(await until(async () => (await readiness(service.opsPort)) === draining));
  t.equal((await fetch(`${service.opsUrl}/metrics`)).status, 200);
  for await (const _ of records);
  t.match(await service.exited, { code: 0 });
  t.equal(await readiness(service.opsPort), null);
});

t.test('its port in use is one line that names the variable, and exit code 1', async (t) => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  t.teardown(() => holder.close());
  const { port } = holder.address() as AddressInfo;
  const service = spawnService(t, { ...oneThread, OPS_PORT: String(port) });
  t.match(await service.exited, { code: 1 });
  t.match(service.stderr, /^syrinx: cannot listen on 127\.0\.0\.1:\d+: the port is in use .*OPS_PORT\)\n$/);
});
