/** `syrinx status`, `reload` and `stop`, the PID file, and the last line of the log. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { consoleProgram } from '../../scripts/console.js';
import { service as program } from '../../scripts/service.js';
import { packageRoot } from '../support/package-root.js';
import { runner } from '../support/run-command.js';
import { openStream, prose, SCRIPTED, startService, until } from '../support/service.js';

const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

const pidFiles = (dataDir: string): string[] => readdirSync(dataDir).filter((name) => name.endsWith('.pid'));

t.test('a service is found by its PID file, reloaded and stopped, without a cut stream', async (t) => {
  const service = await startService(t, oneThread, SCRIPTED);
  const { dataDir, port } = service;
  const command = runner(program, dataDir);
  const path = join(dataDir, `syrinx-${port}.pid`);
  t.ok(await until(() => existsSync(path)));
  const [pid = ''] = readFileSync(path, 'utf8').split('\n');
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.match(await command('status'), {
    status: 0,
    stdout: new RegExp(`\\n *${port} +${pid} .* http://127\\.0\\.0\\.1:\\d+ +ready\\n`),
  });
  const { stdout } = await command('status', '--json');
  t.match(JSON.parse(stdout), {
    services: [{ port, pid: Number(pid), ready: true, reasons: [], warnings: [], since: /^20.*Z$/ }],
  });

  const stream = await openStream(service, prose(6));
  t.match(await command('reload'), { status: 0, stdout: /reads its voices/ });
  await service.untilLogged('voices reloaded');
  const stopping = command('stop');
  await service.untilLogged('stopping');
  t.match(await command('status'), { status: 1, stdout: /not ready: draining/ }, 'while it drains');
  t.ok((await stream.rest()) > 1_000_000, 'the stream is complete');
  t.match(await stopping, { status: 0, stdout: /has stopped/ });
  t.match(await service.exited, { code: 0, signal: null });
  t.strictSame(pidFiles(dataDir), []);
  t.match(service.entries.at(-1), { msg: 'stopped', reason: 'SIGTERM' }, 'the last line says why');
  for (const act of ['status', 'reload', 'stop'])
    t.match(await command(act), { status: 1, stderr: /No service runs on .*: start it with/ }, act);
});

t.test('the file of a killed service is no service, and its id may be that of another process', async (t) => {
  const killed = await startService(t, oneThread, SCRIPTED);
  const { dataDir } = killed;
  const command = runner(program, dataDir);
  const path = join(dataDir, `syrinx-${killed.port}.pid`);
  t.ok(await until(() => existsSync(path)));
  await killed.kill();
  t.ok(existsSync(path));
  t.match(await command('stop'), { status: 1, stderr: /No service runs/ });
  // A process that lives, and that started at another time.
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(process.pid)));
  t.match(await command('stop'), { status: 1, stderr: /No service runs/ }, 'this test is not stopped');
});

t.test(
  'a link to the console has the address of the service that runs, whatever this shell has set',
  async (t) => {
    const service = await startService(
      t,
      { ...oneThread, CONSOLE_PORT: '0', CONSOLE_ORIGIN: 'https://console.example.com' },
      SCRIPTED,
    );
    t.ok(await until(() => pidFiles(service.dataDir).length === 1));
    const command = runner(consoleProgram, service.dataDir, { CONSOLE_PORT: '1' });
    t.match(await command('link'), { status: 0, stdout: /^https:\/\/console\.example\.com\/claim#/ });
    const quiet = await startService(t, { ...oneThread, CONSOLE_PORT: 'off' }, SCRIPTED);
    t.ok(await until(() => pidFiles(quiet.dataDir).length === 1));
    t.match(await runner(consoleProgram, quiet.dataDir)('link'), {
      status: 1,
      stderr: /^The console is off/,
    });
  },
);

t.test('of two services on a data folder, one is chosen by its port', async (t) => {
  const first = await startService(t, oneThread, SCRIPTED);
  const { dataDir } = first;
  const second = await startService(t, { ...oneThread, DATA_DIR: dataDir }, SCRIPTED);
  const command = runner(program, dataDir);
  t.ok(await until(() => pidFiles(dataDir).length === 2));
  t.match(await command('stop'), { status: 1, stderr: /choose one with --port \d+ or \d+/ });
  t.match(await command('stop', '--port', '1'), { status: 1, stderr: /has port 1: choose from/ });
  t.match(await command('stop', '--port', 'x'), { status: 2, stderr: /not "x"/ });
  t.match(await command('stop', '--port', String(first.port)), { status: 0 });
  t.match(await first.exited, { code: 0 });
  t.equal(second.exit, null);
  // As an installation runs it: without npm, and by its word.
  const { status, stdout } = spawnSync(join(packageRoot, 'scripts', 'syrinx'), ['status', '--json'], {
    env: { ...process.env, DATA_DIR: dataDir },
    encoding: 'utf8',
  });
  t.equal(status, 0);
  t.match(JSON.parse(stdout), { services: [{ port: second.port }] });
});

t.test('the log says that a service stopped by a fault, and which; and what a drain has cut', async (t) => {
  const faulty = await startService(t, { ...oneThread, DRAIN: 'hangs' }, 'test/support/faulty-main.js');
  faulty.signal('SIGWINCH');
  await faulty.exited;
  t.match(faulty.entries.at(-1), { msg: 'stopped', reason: 'uncaught exception: scripted fault' });

  const busy = await startService(t, { ...oneThread, DRAIN_SECONDS: '1' }, SCRIPTED);
  const stream = await openStream(busy);
  busy.signal('SIGTERM');
  await t.rejects(stream.rest());
  await busy.exited;
  t.match(busy.logged('the drain is over: what is left is cut'), [{ inFlight: 1 }]);
  t.match(busy.entries.at(-1), { msg: 'stopped', reason: 'SIGTERM' });
});
