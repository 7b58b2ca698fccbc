/** A pipe in the place of a file of the data folder has no end: its reader would wait for ever. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';

const refused = /cannot read \/.*: it is not a regular file/;

/** Each file, what reads it (from `folder`, the data folder), and what comes of it. */
const readers: readonly (readonly [path: string, module: string, read: string, outcome: RegExp])[] = [
  [
    'browser-secret',
    'src/accounts/browser-tokens.js',
    'new module.BrowserTokens(folder, {})',
    /browser-secret is no secret: remove it/,
  ],
  [
    'voices/trials.json',
    'workers/engines/trial.js',
    "new module.KeptTrials(folder + '/voices').find('a')",
    /^undefined$/,
  ],
  [
    'voices/hung.json',
    'src/threads/voices.js',
    "JSON.stringify(module.hungPacks(folder + '/voices'))",
    /^\{\}$/,
  ],
  [
    'webhooks/1.json',
    'workers/webhooks.js',
    "module.openWebhooks({ folder: folder + '/webhooks' }).read(1)",
    refused,
  ],
  [
    'lexicons/accounts/ada/console.txt',
    'workers/lexicons/write.js',
    "module.accountWords(folder + '/lexicons', {}).list('ada')",
    refused,
  ],
  ['syrinx-8080.pid', 'src/ops/pid-file.js', 'module.runningServices(folder).length', /^0$/],
  ['journal/1/1.log', 'src/store/journal.js', 'module.leftJournals(folder)', refused],
  ['journal/1/store', 'src/store/journal.js', 'module.leftJournals(folder)', refused],
];

t.test('a pipe in the place of a file of the data folder holds up nothing', async (t) => {
  const run = async ([path, module, read, outcome]: (typeof readers)[number]): Promise<void> => {
    const folder = t.testdir();
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    execFileSync('mkfifo', [join(folder, path)]);
    const script = `
      const folder = ${JSON.stringify(folder)};
      const module = await import(${JSON.stringify(new URL(`../${module}`, import.meta.url))});
      try { console.log(String(${read})); } catch (error) { console.log(error.message); }
    `;
    // In a process of its own: a reader that waits cannot be stopped.
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      timeout: 30_000,
      killSignal: 'SIGKILL',
    });
    t.match(stdout.trim(), outcome, path);
  };
  for (const reader of readers) await run(reader);
});
