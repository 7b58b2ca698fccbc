/** The service on a terminal: its log level, faults of the start, and a terminal that is closed or takes nothing. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { runningServices } from '../../src/ops/pid-file.js';
import { RawClient } from '../support/raw-client.js';
import { holdPort, newDataFolder, until } from '../support/service.js';
import {
  CTRL_C,
  readyText,
  jsonText,
  noTerminal,
  openService as open,
  startCommand,
  startCommandOf,
} from '../support/terminal.js';
import { missingTool } from '../support/tools.js';

t.test('LOG_LEVEL holds on a terminal too', { skip: noTerminal }, async (t) => {
  const env = { DATA_DIR: newDataFolder(t), LOG_LEVEL: 'debug', NO_COLOR: '1' };
  const terminal = open(t, 80, env, startCommandOf('src/main.js'));
  await terminal.showing(readyText);
  terminal.type(CTRL_C);
  t.equal(await terminal.exited, 0);
  // Threads write by themselves, and perhaps later.
  t.match(terminal.shown, /DEBUG: voice pack loaded [^\n]*pack=syrinx-en/, 'lines of threads');
  t.match(terminal.shown, /DEBUG: worst case mib\.total=\d+ /);
  t.notMatch(terminal.shown, jsonText);
  const quiet = open(t, 80, { DATA_DIR: join(t.testdir(), 'data'), LOG_LEVEL: 'warn' });
  await quiet.showing(/svc_sk_/);
  quiet.type(CTRL_C);
  t.equal(await quiet.exited, 0);
  t.notMatch(quiet.shown, /INFO|ready/);
});

t.test('a fault of the environment is one line that says what to do', { skip: noTerminal }, async (t) => {
  const { port, release } = await holdPort();
  t.teardown(release);
  const env = { DATA_DIR: join(t.testdir(), 'data'), OPS_PORT: String(port) };
  const terminal = open(t, 80, env);
  t.equal(await terminal.exited, 1);
  t.match(terminal.shown, /^syrinx: [^\n]+ set OPS_PORT to [^\n]+\n$/);
  const fault = `cannot listen on 127.0.0.1:${port}: the port is in use, perhaps by another syrinx;`;
  t.ok(terminal.shown.includes(fault), terminal.shown);
});

t.test('the service ends when its terminal is closed', { skip: noTerminal }, async (t) => {
  const dataDir = join(t.testdir(), 'data');
  const terminal = open(t, 80, { DATA_DIR: dataDir });
  const [, port = ''] = await terminal.showing(/Speech +http:\/\/127\.0\.0\.1:(\d+)\s/);
  await terminal.showing(readyText);
  const [service] = runningServices(dataDir);
  terminal.child.kill('SIGKILL');
  const refuses = () =>
    RawClient.open(Number(port)).then(
      (client) => client.destroy(),
      () => true,
    );
  t.ok(await until(async () => (await refuses()) === true));
  t.ok(await until(() => service?.isAlive() === false), 'it keeps what it knows, and ends');
});

/** A start whose log writes from a thread, because the service may not open its terminal a second time. */
const onLockedTerminal = (() => {
  const mayOpenAll = process.getuid?.() === 0;
  const lacking = 'setpriv --bounding-set=-dac_override,-dac_read_search ';
  return `chmod 000 "$(tty)"; ${startCommand.replace('exec ', `exec ${mayOpenAll ? lacking : ''}`)}`;
})();
const CTRL_S = '\x13';

for (const [kind, command, code] of [
  ['its own terminal', startCommand, 0],
  ['a terminal that it may not open again', onLockedTerminal, 128 + constants.signals.SIGTERM],
] as const)
  t.test(
    `the service ends on a signal although ${kind} takes nothing`,
    { skip: noTerminal || missingTool('setpriv') },
    async (t) => {
      const folder = t.testdir();
      const typed = join(folder, 'typed');
      const reader = `head -n 1 </dev/tty >'${typed}' &`;
      const env = { DATA_DIR: join(folder, 'data') };
      const terminal = open(t, 80, env, `${reader} echo "process $$"; ${command}`);
      const [, pid = ''] = await terminal.showing(/^process (\d+)\n/);
      await terminal.showing(readyText);
      terminal.type(`${CTRL_S}\n`);
      t.ok(await until(() => readFileSync(typed, 'utf8') === '\n'), 'the terminal has stopped');
      process.kill(Number(pid), 'SIGTERM');
      t.equal(await terminal.exited, code);
    },
  );
