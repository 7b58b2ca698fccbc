/** Signals in rarer moments: during a start, with a stream that does not end, with a thread that hangs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openStream, SCRIPTED, spawnService, startService, until } from '../support/service.js';

const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

// Two at a time: some of them wait.
t.jobs = 2;

void t.test('a stream that outlasts DRAIN_SECONDS is cut', async (t) => {
  const service = await startService(t, { ...oneThread, DRAIN_SECONDS: '1' }, SCRIPTED);
  const stream = await openStream(service);
  service.signal('SIGTERM');
  // The client does not read, so the stream does not end by itself. The default of DRAIN_SECONDS is far longer than this wait.
  t.ok(await until(() => service.exit !== null, 15_000));
  t.match(service.exit, { code: 0, signal: null });
  await t.rejects(stream.rest(), 'the client sees that the stream is cut');
  t.match(service.logged('the drain is over: what is left is cut'), [{ inFlight: 1 }]);
  t.match(service.entries.at(-1), { msg: 'stopped', reason: 'SIGTERM' });
});

void t.test('SIGTERM while the voices load ends the start with exit code 0', async (t) => {
  const service = spawnService(t);
  await service.untilLogged('first API key written to a file');
  service.signal('SIGTERM');
  t.match(await service.exited, { code: 0, signal: null });
});

void t.test('SIGTERM while a voice pack is read, which hangs, ends the start with exit code 0', async (t) => {
  const place = t.testdir({ models: { endless: { 'spin.hostile': 'x' } } });
  const env = { MODELS_DIR: join(place, 'models') };
  const service = spawnService(t, env, 'test/support/hostile-service.js');
  t.ok(await until(() => existsSync(join(place, 'acted'))));
  service.signal('SIGTERM');
  t.ok(await until(() => service.exit !== null));
  t.match(service.exit, { code: 0, signal: null });
  t.match(service.logged('stopped'), [{ reason: 'SIGTERM' }]);
});

void t.test('a second signal while the voices load does not wait for them', async (t) => {
  const service = spawnService(t, { SYNTHESIS_THREADS: '8' });
  await service.untilLogged('first API key written to a file');
  service.signal('SIGTERM');
  await service.untilLogged('stopping');
  service.signal('SIGINT');
  t.match(await service.exited, { code: null, signal: 'SIGTERM' });
  t.same(service.logged('listening'), []);
});

void t.test('SIGTERM with a thread that hangs is still a requested end', async (t) => {
  const service = await startService(t, { ...oneThread, DRAIN: 'hangs' }, 'test/support/faulty-main.js');
  t.match(await service.stop(), { code: null, signal: 'SIGTERM' });
});

void t.test('an uncaught error, and a drain that hangs: a supervisor sees a crash', async (t) => {
  const service = await startService(t, { ...oneThread, DRAIN: 'hangs' }, 'test/support/faulty-main.js');
  service.signal('SIGWINCH');
  t.match(await service.exited, { code: null, signal: 'SIGKILL' });
  t.equal(service.logged('uncaught exception').length, 1);
  t.strictSame(service.logged('the drain failed'), []);
  t.match(service.entries.at(-1), { msg: 'stopped', reason: 'uncaught exception: scripted fault' });
});
