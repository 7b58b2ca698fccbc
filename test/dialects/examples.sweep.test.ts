/** The examples of the page about dialects, run as printed, but for the port. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { freeDialectPorts } from '../../scripts/rig/service.js';
import { missingClients } from '../support/interop.js';
import { packageRoot } from '../support/package-root.js';
import { startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { missingTool } from '../support/tools.js';

const run = promisify(execFile);
const page = readSource('src/dialects/README.md');
const examples = [...page.matchAll(/^```(sh|js|py)\n([^]*?)^```$/gm)].map(([, language, text = '']) => ({
  language,
  text,
}));

t.test(
  'every example runs as printed',
  { skip: missingClients || missingTool('curl', 'python3') },
  async (t) => {
    const service = await startService(t, { SYNTHESIS_THREADS: '1', ...freeDialectPorts });
    const folder = mkdtempSync(join(tmpdir(), 'syrinx-examples-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    symlinkSync(join(packageRoot, 'test', 'interop', 'node_modules'), join(folder, 'node_modules'));
    const env = { ...process.env, SYRINX_KEY: service.key };
    const ports = new Map([
      ['8082', service.dialectPorts['elevenlabs']],
      ['8083', service.dialectPorts['openai']],
      ['10200', service.dialectPorts['wyoming']],
    ]);
    let ran = 0;
    for (const { language, text } of examples) {
      const address = /127\.0\.0\.1(?::|', )(\d+)/.exec(text);
      const port = address?.[1] ?? '';
      const actual = ports.get(port);
      // A command that starts the service.
      if (address === null || actual === undefined) continue;
      const code = text.replaceAll(address[0], address[0].replace(port, String(actual)));
      const [file] = /answer\.\w+/.exec(text) ?? [];
      if (file !== undefined) rmSync(join(folder, file), { force: true });
      let shown = '';
      if (language === 'sh') await run('sh', ['-ec', code], { cwd: folder, env });
      else if (language === 'py') await run('python3', ['-c', code], { cwd: folder, env });
      else {
        writeFileSync(join(folder, 'example.mjs'), code);
        ({ stdout: shown } = await run(process.execPath, ['example.mjs'], { cwd: folder, env }));
      }
      if (file !== undefined) t.ok(statSync(join(folder, file)).size > 8_000, `${file} has audio`);
      else t.match(shown, text.includes('seconds') ? /^[1-3]\.\d seconds/m : /^0\.\d+ Text[^]*once/m);
      ran++;
    }
    t.equal(ran, 7);
  },
);
