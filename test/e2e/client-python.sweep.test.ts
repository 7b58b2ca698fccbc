/** The Python client against the real service: the examples of its page, its package, and Pipecat. */
import { execFile } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { pythonFor } from '../support/tools.js';

const run = promisify(execFile);
const folder = join(packageRoot, 'src', 'client-python');
const { python, skip } = pythonFor('httpx', 'websockets');

t.test('examples and Pipecat', { skip }, async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1' });
  const env = { PATH: process.env['PATH'], PYTHONPATH: folder, SYRINX_KEY: service.key };

  await t.test('the examples of the page run as printed', async (t) => {
    const blocks = [...readSource('src/client-python/README.md').matchAll(/^```python\n([\s\S]*?)^```$/gm)];
    const programs = blocks.map(([, code = '']) => code).filter((code) => !code.includes('syrinx_pipecat'));
    t.equal(programs.length, blocks.length - 1, 'that of Pipecat runs below');
    const dir = t.testdir();
    const outputs: string[] = [];
    for (const code of programs) {
      writeFileSync(join(dir, 'example.py'), code.replace('http://127.0.0.1:8080', service.url));
      const { stdout, stderr } = await run(python, ['-B', '-X', 'dev', 'example.py'], { cwd: dir, env });
      t.notMatch(stderr, /Error|Warning/);
      outputs.push(stdout);
    }
    t.strictSame(
      outputs[0]
        ?.replace(/^\d+\.\d\d /gm, '')
        .trim()
        .split('\n'),
      'Text is sent as it is written. The first sentence is heard at once.'.split(' '),
    );
    t.ok(statSync(join(dir, 'answer.pcm')).size > 2 * 48_000, 'more than two seconds');
    t.strictSame(outputs.slice(1), ['9 voices\nThe once.\nTrue\n', 'spoken\n']);
    t.equal(readFileSync(join(dir, 'whole.wav')).toString('latin1', 0, 4), 'RIFF');
    t.ok(statSync(join(dir, 'streamed.mp3')).size > 16_000, 'more than a second at 128 kbps');
  });

  await t.test('the service of Pipecat speaks, is interrupted and reports errors', async (t) => {
    const test = join(packageRoot, 'test', 'client-python', 'pipecat_test.py');
    const page = join(folder, 'README.md');
    const { stdout, stderr } = await run(python, ['-B', test], {
      env: { ...env, SYRINX_URL: service.url, SYRINX_PAGE: page },
    });
    t.comment(stdout);
    t.match(stderr, /^Ran 5 tests/m);
    const lines = readSource('src/client-python/syrinx_pipecat.py').split('\n').length - 1;
    t.ok(lines <= 150, `${lines} lines`);
  });
});

t.test('the Python package has the version of the service', (t) => {
  const { version } = JSON.parse(readSource('package.json')) as { version: string };
  t.match(readSource('src/client-python/pyproject.toml'), `\nversion = "${version}"\n`);
  t.end();
});
