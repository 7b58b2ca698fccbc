import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { pythonFor } from '../support/tools.js';

const { python, skip } = pythonFor('httpx', 'websockets', 'mypy');

t.test('the types of the Python client are complete', { skip }, async (t) => {
  const file = join(packageRoot, 'src', 'client-python', 'syrinx_client.py');
  await promisify(execFile)(python, ['-m', 'mypy', '--strict', '--cache-dir', t.testdir(), file]);
});
