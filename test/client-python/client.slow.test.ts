/** The Python client against a server whose every move is a line of the test: client_test.py beside this file. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { pythonFor } from '../support/tools.js';

const { python, skip } = pythonFor('httpx', 'websockets');

t.test('the Python client keeps to the protocol, and nothing ends it badly', { skip }, async (t) => {
  const path = join(packageRoot, 'test', 'client-python', 'client_test.py');
  const env = { PATH: process.env['PATH'], PYTHONPATH: join(packageRoot, 'src', 'client-python') };
  const { stderr } = await promisify(execFile)(python, ['-B', '-W', 'error::ResourceWarning', path], { env });
  const [, ran = '0'] = /^Ran (\d+) tests/m.exec(stderr) ?? [];
  t.ok(Number(ran) >= 18, stderr);
  t.notMatch(stderr, /never retrieved|skipped/);
});
