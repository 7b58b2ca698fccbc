/** Signals: a drain, an end without one, and what a supervisor sees of a fault. Rarer cases are in signals.slow.test.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { RawClient } from '../support/raw-client.js';
import {
  openStream,
  prose,
  readStream,
  SCRIPTED,
  spawnService,
  speech,
  startService,
  type TestService,
  until,
} from '../support/service.js';

const isStopping = (service: TestService) => service.untilLogged('stopping');

// Two at a time: some of them wait.
t.jobs = 2;

void t.test(
  'SIGTERM and SIGHUP during streams and a whole file: all complete, no new connection, exit 0',
  async (t) => {
    const service = await startService(t, { OVERLOAD: 'late' }, SCRIPTED);
    // Each step takes a fifth of a second: all are in mid-speech when the signal comes.
    const text = `!slow ${prose(1)}`;
    const file = service.post('/v1/tts', speech(text));
    const read = readStream(await service.post('/v1/tts/stream', speech(text)));
    const late = await openStream(service, text);
    service.signal('SIGHUP');
    service.signal('SIGTERM');
    service.signal('SIGHUP');
    await isStopping(service);
    const refuses = () =>
      RawClient.open(service.port).then(
        (client) => client.destroy(),
        () => true,
      );
    t.ok(await until(async () => (await refuses()) === true), 'no new connection');
    t.ok((await read).audio.length >= text.trim().length * 4_800, 'to the last letter, of 50 ms');
    const response = await file;
    t.equal(response.status, 200);
    t.ok(((await response.json()) as { audio: string }).audio.length > 400_000, 'the file');
    t.ok((await late.rest()) > 300_000, 'the stream that was read late');
    t.match(await service.exited, { code: 0, signal: null });
    t.equal(service.stderr, '');
  },
);

void t.test(
  'SIGHUP, SIGUSR1 and SIGUSR2 end nothing, SIGUSR2 logs the status, and a second signal ends a drain',
  async (t) => {
    const service = spawnService(t, {}, SCRIPTED);
    await service.untilLogged('first API key written to a file');
    for (let i = 0; i < 5; i++) service.signal('SIGHUP');
    await service.listening();
    await service.untilLogged('voices reloaded');
    service.signal('SIGHUP');
    service.signal('SIGUSR1');
    service.signal('SIGUSR2');
    const idle = { requestsInFlight: 0, openContexts: 0, runningSegments: 0, threadsWhole: true };
    t.match(await service.untilLogged('status'), idle);
    t.notMatch(service.stderr, 'Debugger', 'nobody on this machine can run code in it');
    const stream = await openStream(service);
    service.signal('SIGTERM');
    await isStopping(service);
    service.signal('SIGINT');
    t.match(await service.exited, { code: 0 });
    await t.rejects(stream.rest(), 'the client sees that the stream is cut');
  },
);

void t.test('a call of the console that does not come whole holds up no stop', async (t) => {
  const service = await startService(t, { CONSOLE_PORT: '0', DRAIN_SECONDS: '60' }, SCRIPTED);
  const stranger = await RawClient.open(service.consolePort);
  t.teardown(() => stranger.destroy());
  stranger.send('POST /api/signIn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{');
  const other = await RawClient.open(service.consolePort);
  t.teardown(() => other.destroy());
  other.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await other.response();
  service.signal('SIGTERM');
  await isStopping(service);
  const stoppedMs = performance.now();
  t.match(await service.exited, { code: 0, signal: null });
  t.ok(performance.now() - stoppedMs < 10_000);
});

void t.test('Ctrl-C under npm, which arrives twice at once, lets a stream complete', async (t) => {
  for (let tries = 1; ; tries++) {
    const service = await startService(t, {}, SCRIPTED);
    const stream = await openStream(service, prose(6));
    const startMs = performance.now();
    service.signal('SIGINT');
    // Two that wait for the process would be one.
    await isStopping(service);
    service.signal('SIGINT');
    service.signal('SIGUSR2');
    await until(() => service.exit !== null || service.logged('status').length > 0);
    // On a busy machine the second can be so late that it is one of its own.
    if (performance.now() - startMs > 200 && tries < 20) {
      await Promise.all([service.kill(), stream.rest().catch(() => 0)]);
      continue;
    }
    t.ok((await stream.rest()) > 1_000_000);
    t.match(await service.exited, { code: 0, signal: null });
    return;
  }
});

void t.test('SIGHUP and SIGUSR2 end nothing while the service loads', async (t) => {
  const go = join(t.testdir(), 'go');
  const service = spawnService(t, { GO: go }, 'test/support/slow-to-load.js');
  await service.untilLogged('loading');
  service.signal('SIGHUP');
  service.signal('SIGUSR2');
  writeFileSync(go, '');
  await service.listening();
  service.signal('SIGUSR2');
  await service.untilLogged('status');
  t.match(await service.stop(), { code: 0, signal: null });
});

void t.test('an uncaught error, and a drain that fails: a supervisor sees a crash', async (t) => {
  const service = await startService(t, { DRAIN: 'fails' }, 'test/support/faulty-main.js');
  service.signal('SIGWINCH');
  // A supervisor takes SIGTERM for a requested end and would not start the service again.
  t.match(await service.exited, { code: null, signal: 'SIGKILL' });
  t.equal(service.logged('uncaught exception').length, 1);
  t.equal(service.logged('the drain failed').length, 1);
  const last = { msg: 'stopped', reason: 'uncaught exception: scripted fault' };
  t.match(service.entries.at(-1), last, 'the last line says why');
});
