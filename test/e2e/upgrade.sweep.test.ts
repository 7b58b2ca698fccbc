/** Upgrades behind nginx, by the script of the operator's page, with scripted engines. */
import { execFileSync, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { isNight } from '../fuzz/check.js';
import { usageReport } from '../../scripts/usage.js';
import { runner } from '../support/run-command.js';
import { packageRoot } from '../support/package-root.js';
import { ask, freeUnitPorts, startProxy, textOf } from '../support/proxy.js';
import type { Exit } from '../../scripts/rig/service.js';
import { SCRIPTED, pause, until, type StreamRecord } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';
import { Units } from '../support/units.js';

const skip = missingTool('nginx', 'openssl', 'curl');
const sentence = 'The train was late again, and we walked. ';
/** More than all buffers on the way to a client that does not read, which the kernel enlarges to 15 MB: 200 s, 26 MB of base64. */
const long = sentence.repeat(100).slice(0, 4_000);
const format = { encoding: 'pcm', sample_rate: 48_000 };
/** The scripted engine makes 50 ms for a letter. */
const longBytes = long.length * 0.05 * 96_000;

t.test('upgrades behind nginx', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-upgrade-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'data');
  const units = new Units(t, join(folder, 'units'), {
    ENTRY: SCRIPTED,
    DATA_DIR: dataDir,
    SYNTHESIS_THREADS: '1',
    // Long streams and requests without a pause: a busy machine needs longer than the default.
    DRAIN_SECONDS: '120',
    // Two services and their callers share the cores: one of them would find the machine full.
    OVERLOAD: 'late',
  });
  const [first, second] = await freeUnitPorts();
  const proxy = await startProxy(t, join(folder, 'nginx'), [first, second]);
  const isReady = (port: number) =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const root = join(folder, 'opt');
  const upgrade = (from: number, to: number, ...archive: string[]) => {
    const script = join(packageRoot, 'scripts/deploy/upgrade.sh');
    const env = { ...units.env, SYRINX_ROOT: root };
    const child = spawn(script, [String(from), String(to), ...archive], { env });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    const over = new Promise<Exit & { output: string }>((resolve) =>
      child.once('close', (code, signal) => resolve({ code, signal, output })),
    );
    return over;
  };
  /** Fails with the last log entries of the unit if it does not become ready. */
  const becomesReady = async (t: Test, port: number): Promise<void> => {
    const ready = await until(() => isReady(port), 120_000);
    t.ok(ready, ready ? 'is ready' : `not ready: ${JSON.stringify(units.log(port).slice(-5))}`);
  };
  const linesOf = (port: number, msg: string) => units.log(port).filter((line) => line.msg === msg);

  // By night to the other port and back; by day back only.
  const begun = isNight ? first : second;
  t.equal(units.run('start', begun), 0);
  await becomesReady(t, begun);
  const key = readFileSync(join(dataDir, 'first-key'), 'utf8').trim();
  let characters = 0;

  /** A stream that is read no further than its first bytes, until `goOn` is called. */
  const openStream = async () => {
    characters += long.length;
    const body = { text: long, voice: 'wren', response_format: format };
    const answer = await ask(proxy, { method: 'POST', path: '/v1/tts/stream', key, body });
    t.equal(answer.status, 200);
    await new Promise((resolve) => answer.body.once('readable', resolve));
    return async (): Promise<number> => {
      const records = (await textOf(answer)).split('\n\n').filter(Boolean);
      return records
        .map((record) => JSON.parse(record.slice('data: '.length)) as StreamRecord)
        .reduce((sum, { audio_chunk = '' }) => sum + Buffer.from(audio_chunk, 'base64').length, 0);
    };
  };

  /** The same over a WebSocket. */
  const openSocket = async () => {
    characters += long.length;
    const client = await openWs(proxy.port, key, { ca: proxy.certificate });
    client.start('long', { voice_id: 'wren', response_format: format });
    client.text('long', long);
    client.flush('long', 'said');
    await client.frame((frame) => frame.audio_chunk !== undefined);
    client.ws.pause();
    return async (): Promise<number> => {
      client.ws.resume();
      await client.frame((frame) => frame.flush_id === 'said');
      const bytes = client.audio('long').length;
      t.same(await client.closing(), { code: 1001, reason: 'service is stopping' }, 'closed when it is idle');
      return bytes;
    };
  };

  /** Sends requests one after another, with short pauses, each on a new connection. @returns the requests without an answer */
  const askOn = (isOver: () => boolean) => {
    const body = { text: 'Yes.', voice: 'wren', response_format: { encoding: 'mulaw' } };
    const failures: unknown[] = [];
    let answered = 0;
    const loop = async (): Promise<void> => {
      while (!isOver()) {
        try {
          const answer = await ask(proxy, { method: 'POST', path: '/v1/tts', key, body });
          const text = await textOf(answer);
          if (answer.status !== 200) failures.push(`${answer.status} ${text}`);
          characters += body.text.length;
        } catch (error) {
          failures.push(error);
        }
        answered += 1;
        await pause(50);
      }
    };
    return Promise.all([loop(), loop()]).then(() => ({ failures, answered }));
  };

  for (const [from, to] of [[first, second] as const, [second, first] as const].slice(isNight ? 0 : 1))
    await t.test(from === first ? 'to the other port' : 'and back', async (t) => {
      const goOn = [await openStream(), await openSocket()];
      const idle = await openWs(proxy.port, key, { ca: proxy.certificate });
      const before = linesOf(to, 'request').length;
      let isOver = false;
      const asking = askOn(() => isOver);
      const upgraded = upgrade(from, to);
      // When the new process is ready, which may take long beside all that is asked.
      t.ok(await until(() => linesOf(from, 'draining').length > 0, 120_000));
      t.ok((linesOf(from, 'draining')[0]?.['inFlight'] as number) >= 2, 'both are in flight');
      t.match(await idle.closing(), { code: 1001 });
      const late = await openWs(proxy.port, key, { ca: proxy.certificate });
      late.close();
      await late.closing();
      t.ok(await until(() => linesOf(to, 'socket').length > 0), 'a new socket goes to the new process');
      for (const spoken of await Promise.all(goOn.map((rest) => rest())))
        t.ok(spoken >= longBytes, 'to the last sample');
      t.match(await upgraded, { code: 0, output: `syrinx@${to} serves all requests` });
      isOver = true;
      const { failures, answered } = await asking;
      t.same(failures, [], `of ${answered} requests meanwhile`);
      t.ok(answered > 10);
      t.ok(linesOf(to, 'request').length > before, 'the new process answered some of them');
      t.equal(units.exitCode(from), '0');
      t.same(units.installed.slice(-2), [`enable ${to}`, `disable ${from}`]);
    });

  await t.test('the store has the charges of both processes', async (t) => {
    const report = await runner(usageReport, dataDir)('--json');
    t.equal(report.status, 0, report.stderr);
    t.match(JSON.parse(report.stdout), { accounts: [{ characters, credits: characters }] });
  });

  await t.test(
    'a release that does not become ready is stopped, and the old one continues to serve',
    async (t) => {
      units.set(second, `MODELS_DIR=${folder}`);
      const before = units.installed;
      const { code, output } = await upgrade(first, second);
      t.equal(code, 1);
      t.match(output, `syrinx@${second} is not ready, and was stopped; syrinx@${first} keeps serving`);
      t.ok(await isReady(first));
      t.equal(units.exitCode(second), '1');
      t.same(units.installed, before);
    },
  );

  await t.test(
    'an archive is unpacked and becomes current; if it is not ready, the old one is again',
    async (t) => {
      mkdirSync(join(root, 'old'), { recursive: true });
      symlinkSync('old', join(root, 'current'));
      const archiveOf = (name: string): string => {
        const made = join(folder, 'made');
        mkdirSync(join(made, name), { recursive: true });
        writeFileSync(join(made, name, 'LICENSE'), '');
        const path = join(folder, `${name}.tar.gz`);
        execFileSync('tar', ['-czf', path, '-C', made, name]);
        return path;
      };
      t.match(await upgrade(first, second, archiveOf('syrinx-0.3.0-bad')), {
        code: 1,
        output: 'is not ready',
      });
      t.equal(readlinkSync(join(root, 'current')), 'old');
      t.match(await upgrade(first, second, join(folder, 'missing.tar.gz')), {
        code: 2,
        output: 'missing.tar.gz',
      });
      t.equal(readlinkSync(join(root, 'current')), 'old');
      t.ok(await isReady(first));
      units.set(second, 'LOG_LEVEL=info');
      t.match(await upgrade(first, second, archiveOf('syrinx-0.3.0-good')), { code: 0 });
      t.equal(readlinkSync(join(root, 'current')), 'syrinx-0.3.0-good');
      t.same(readdirSync(root).sort(), ['current', 'old', 'syrinx-0.3.0-bad', 'syrinx-0.3.0-good']);
    },
  );

  // From here on the service is on the second port.
  await t.test('a release that cannot be executed is stopped as well', async (t) => {
    units.set(first, 'CANNOT_EXECUTE=1');
    const { code, output } = await upgrade(second, first);
    t.equal(code, 1);
    t.match(output, `syrinx@${first} is not ready, and was stopped; syrinx@${second} keeps serving`);
    t.equal(units.stopped.at(-1), String(first), 'otherwise systemd would start it again and again');
    t.ok(await isReady(second));
  });

  await t.test('a release whose port is in use is never ready, although its ops port answers', async (t) => {
    const taken = createServer().listen(first, '127.0.0.1');
    await once(taken, 'listening');
    t.teardown(() => taken.close());
    units.set(first, 'LOG_LEVEL=info');
    const { code, output } = await upgrade(second, first);
    t.equal(code, 1);
    t.match(output, `syrinx@${first} is not ready, and was stopped`);
    t.ok(await isReady(second));
  });

  await t.test('an upgrade that was interrupted after the new start says how to continue', async (t) => {
    t.equal(units.run('start', first), 0);
    await becomesReady(t, first);
    const { code, output } = await upgrade(second, first);
    t.equal(code, 1);
    t.match(output, `systemctl disable --now syrinx@${second}`);
    t.ok((await isReady(second)) && (await isReady(first)), 'both still run');
    t.equal(units.run('stop', first), 0);
  });

  await t.test('an upgrade from a port where nothing runs changes nothing', async (t) => {
    t.match(await upgrade(first, second), { code: 1, output: `syrinx@${first} does not run` });
    t.match(await upgrade(second, second), { code: 2, output: 'usage' });
    t.ok(await isReady(second));
  });
});
