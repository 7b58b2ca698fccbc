/** `syrinx status`, `reload` and `stop`, the PID file, the link to the console, and the last line of the log. */
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

t.test('services are found by their PID files, reloaded and stopped, without a cut stream', async (t) => {
  const first = await startService(
    t,
    {
      ...{ ...oneThread, CONSOLE_PORT: '0', CONSOLE_ORIGIN: 'https://console.example.com' },
      // It drains while a command asks for its status, which takes seconds on a busy machine.
      DRAIN_SECONDS: '120',
    },
    SCRIPTED,
  );
  const { dataDir, port } = first;
  const command = runner(program, dataDir);
  // Whatever this shell has set.
  const console = runner(consoleProgram, dataDir, { CONSOLE_PORT: '1' });
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
  t.match(await console('link'), { status: 0, stdout: /^https:\/\/console\.example\.com\/claim#/ });
  // More than the system takes for a client that does not read.
  const stream = await openStream(first, prose(50));
  t.match(await command('reload'), { status: 0, stdout: /reads its voices/ });
  await first.untilLogged('voices reloaded');

  const second = await startService(t, { ...oneThread, CONSOLE_PORT: 'off', DATA_DIR: dataDir }, SCRIPTED);
  t.ok(await until(() => pidFiles(dataDir).length === 2));
  t.match(await command('stop'), { status: 1, stderr: /choose one with --port \d+ or \d+/ });
  t.match(await command('stop', '--port', '1'), { status: 1, stderr: /has port 1: choose from/ });
  t.match(await command('stop', '--port', 'x'), { status: 2, stderr: /not "x"/ });
  const draining = { status: 1, stdout: /not ready: draining/ };
  const stopping = command('stop', '--port', String(port));
  await first.untilLogged('stopping');
  t.match(await command('status', '--port', String(port)), draining, 'while it drains');
  t.ok((await stream.rest()) > 1_000_000, 'the stream is complete');
  t.match(await stopping, { status: 0, stdout: /has stopped/ });
  t.match(await first.exited, { code: 0, signal: null });
  t.match(first.entries.at(-1), { msg: 'stopped', reason: 'SIGTERM' }, 'the last line says why');
  t.equal(second.exit, null);
  t.strictSame(pidFiles(dataDir), [`syrinx-${second.port}.pid`]);
  t.match(await console('link'), { status: 1, stderr: /^The console is off/ });
  // As an installation runs it: without npm, and by its word.
  const installed = spawnSync(join(packageRoot, 'scripts', 'syrinx'), ['status', '--json'], {
    env: { ...process.env, DATA_DIR: dataDir },
    encoding: 'utf8',
  });
  t.equal(installed.status, 0);
  t.match(JSON.parse(installed.stdout), { services: [{ port: second.port }] });

  const left = join(dataDir, `syrinx-${second.port}.pid`);
  await second.kill();
  t.ok(existsSync(left));
  t.match(await command('stop'), { status: 1, stderr: /No service runs/ }, 'one that was killed');
  // A process that lives, and that started at another time.
  writeFileSync(left, readFileSync(left, 'utf8').replace(/^\d+/, String(process.pid)));
  for (const act of ['status', 'reload', 'stop'])
    t.match(
      await command(act),
      { status: 1, stderr: /No service runs on .*: start it with/ },
      `${act}: this test is not stopped`,
    );
});
