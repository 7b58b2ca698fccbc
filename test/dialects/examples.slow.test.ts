/** The examples of the page about dialects, run as printed, but for the port. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { missingClients } from '../support/interop.js';
import { packageRoot } from '../support/package-root.js';
import { startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { missingTool } from '../support/tools.js';

const run = promisify(execFile);
const page = readSource('src/dialects/README.md');
const examples = [...page.matchAll(/^```(sh|js)\n([^]*?)^```$/gm)].map(([, language, text = '']) => ({
  language,
  text,
}));

t.test('every example runs as printed', { skip: missingClients || missingTool('curl') }, async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', ELEVENLABS_PORT: '0', OPENAI_PORT: '0' });
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-examples-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(packageRoot, 'test', 'interop', 'node_modules'), join(folder, 'node_modules'));
  const env = { ...process.env, SYRINX_KEY: service.key };
  const ports = new Map([
    ['8082', service.dialectPorts['elevenlabs']],
    ['8083', service.dialectPorts['openai']],
  ]);
  let ran = 0;
  for (const { language, text } of examples) {
    const port = /127\.0\.0\.1:(\d+)/.exec(text)?.[1] ?? '';
    const actual = ports.get(port);
    // A command that starts the service.
    if (actual === undefined) continue;
    const code = text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${actual}`);
    rmSync(join(folder, 'answer.mp3'), { force: true });
    let shown = '';
    if (language === 'sh') await run('sh', ['-ec', code], { cwd: folder, env });
    else {
      writeFileSync(join(folder, 'example.mjs'), code);
      ({ stdout: shown } = await run(process.execPath, ['example.mjs'], { cwd: folder, env }));
    }
    if (text.includes('answer.mp3')) t.ok(statSync(join(folder, 'answer.mp3')).size > 8_000, 'it has audio');
    else t.match(shown, /^0\.\d+ Text[^]*once/m);
    ran++;
  }
  t.equal(ran, 5);
});
