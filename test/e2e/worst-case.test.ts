/** The worst case at the start: told in the log, fitted to the machine, and refused where it cannot fit. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { spawnService, startService } from '../support/service.js';
import { missingTool } from '../support/tools.js';

const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };
const isOneLine = (text: string): boolean => text.trimEnd().split('\n').length === 1;

t.test('it is one line of the log, in MiB, and its parts are the whole', async (t) => {
  const service = await startService(t, { ...oneThread, MEMORY_MAX_MIB: '900', CONTEXTS_MAX: '50' });
  const line = service.entries.find(({ msg }) => msg === 'worst case');
  t.match(line, { memoryMaxMiB: 900, contextsMax: 50, level: 30 });
  const { total = 0, ...parts } = line?.['mib'] as Record<string, number>;
  const sum = Object.values(parts).reduce((all, part) => all + part, 0);
  t.ok(Math.abs(sum - total) <= Object.keys(parts).length, `${sum} of ${total}`);
  t.ok(total <= 900);
  t.ok((line?.['poolsFactor'] as number) < 1);
  t.match(await service.stop(), { code: 0 });
});

t.test('what cannot fit does not start, and one line says what to change', async (t) => {
  const refusals: readonly (readonly [Record<string, string>, string])[] = [
    [{ MEMORY_MAX_MIB: '128' }, 'MEMORY_MAX_MIB allows 128 MiB'],
    [{ MEMORY_MAX_MIB: '1000000' }, 'but this machine'],
    [{ CONTEXTS_MAX: '1000000' }, 'lower CONTEXTS_MAX'],
    [{ SOCKETS_MAX: 'many' }, 'SOCKETS_MAX must be a whole number'],
  ];
  await Promise.all(
    refusals.map(async ([env, told]) => {
      const service = spawnService(t, { ...oneThread, ...env });
      t.match(await service.exited, { code: 1 }, told);
      t.match(service.stderr, told);
      t.ok(isOneLine(service.stderr), service.stderr);
    }),
  );
});

t.test(
  'with few open files it has few connections; with too few it does not start',
  { skip: missingTool('prlimit') },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'syrinx-files-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
    const start = (files: number) => {
      const child = spawn(
        'prlimit',
        [`--nofile=${files}:${files}`, process.execPath, '--disable-warning=ExperimentalWarning', main],
        {
          cwd: packageRoot,
          env: {
            PATH: process.env['PATH'],
            HOST: '127.0.0.1',
            PORT: '0',
            OPS_PORT: '0',
            DATA_DIR: join(folder, String(files)),
            ...oneThread,
          },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      );
      const output = { stdout: '', stderr: '' };
      child.stdout.on('data', (bytes: Buffer) => (output.stdout += bytes.toString()));
      child.stderr.on('data', (bytes: Buffer) => (output.stderr += bytes.toString()));
      const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
      t.teardown(() => child.kill('SIGKILL'));
      return { child, output, exited };
    };
    const few = start(400);
    const listening = new Promise<void>((resolve) => {
      few.child.stdout.on('data', () => {
        if (few.output.stdout.includes('"listening"')) resolve();
      });
    });
    await Promise.race([listening, few.exited]);
    const told = few.output.stdout.split('\n').find((line) => line.includes('"worst case"'));
    const { files, connectionsMax } = JSON.parse(told ?? '{}') as { files: number; connectionsMax: number };
    t.ok(
      files <= 400 && connectionsMax >= 64 && connectionsMax < 400,
      `${connectionsMax} connections, ${files} files`,
    );
    few.child.kill('SIGTERM');
    t.equal(await few.exited, 0);

    const tooFew = start(100);
    t.equal(await tooFew.exited, 1);
    t.match(tooFew.output.stderr, 'may open 100: raise the limit');
    t.ok(isOneLine(tooFew.output.stderr));
  },
);
