/** Runs the commands of the README, of the reference and of the commands' page as printed, with this test's address and key. */
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import type { Program } from '../../scripts/command.js';
import { keys } from '../../scripts/keys.js';
import { store } from '../../scripts/store.js';
import { usageReport } from '../../scripts/usage.js';
import { readConfig } from '../../src/config.js';
import { firstKeyText, welcome } from '../../src/terminal.js';
import { packageRoot } from '../support/package-root.js';
import { runner } from '../support/run-command.js';
import { startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { missingTool } from '../support/tools.js';

const run = promisify(execFile);
const printedUrl = 'http://127.0.0.1:8080';

const blocksOf = (path: string) =>
  [...readSource(path).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
    language,
    code,
  }));
const commandsPage = blocksOf('scripts/README.md');
const pages = [...blocksOf('README.md'), ...blocksOf('src/front/README.md')];

const service = await startService(t, { SYNTHESIS_THREADS: '1' });

/** The only block of a language that contains a text. */
const block = (language: string, text: string, blocks = pages): string => {
  const found = blocks.filter(
    (candidate) => candidate.language === language && candidate.code.includes(text),
  );
  if (found.length !== 1)
    throw new Error(`The pages have ${String(found.length)} ${language} blocks with ${text}`);
  return found[0]!.code
    .replaceAll(printedUrl, service.url)
    .replaceAll(printedUrl.replace('http', 'ws'), service.url.replace('http', 'ws'));
};

const environment = (path?: string) => ({
  PATH: [
    ...(path === undefined ? [] : [path]),
    join(packageRoot, 'node_modules', '.bin'),
    process.env['PATH'],
  ].join(':'),
  HOME: process.env['HOME'],
  SYRINX_KEY: service.key,
  PORT: String(service.port),
  DATA_DIR: service.dataDir,
});

const inShell = (code: string, cwd: string, path?: string) =>
  run('sh', ['-ec', code], { cwd, env: environment(path), maxBuffer: 1 << 24 });

/** Runs a command of the pages in this process, without npm. @returns what it prints */
const inProcess = async (program: Program, line: string): Promise<string> => {
  // Without `--` npm would take the options.
  if (!/^npm run (?:keys|usage|store)(?: -- |$)/.test(line)) throw new Error(line);
  const [, , , ...args] = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''));
  const command = runner(program, service.dataDir);
  return (await command(...args.filter((word) => word !== '--'))).stdout;
};

/** The duration of a WAV file in seconds. Its header must be correct. */
const wavSeconds = (t: Test, path: string): number => {
  const bytes = readFileSync(path);
  t.equal(bytes.toString('latin1', 0, 4), 'RIFF');
  t.equal(bytes.readUInt32LE(4), bytes.length - 8);
  t.equal(bytes.readUInt32LE(40), bytes.length - 44);
  return (bytes.length - 44) / bytes.readUInt32LE(28);
};

t.test('curl, the whole file', { skip: missingTool('curl') }, async (t) => {
  const dir = t.testdir();
  await inShell(block('sh', 'whole.wav'), dir);
  t.ok(wavSeconds(t, join(dir, 'whole.wav')) > 1);
});

t.test('curl, streamed', { skip: missingTool('curl') }, async (t) => {
  const dir = t.testdir();
  await inShell(block('sh', 'streamed.pcm'), dir);
  t.ok(statSync(join(dir, 'streamed.pcm')).size > 48_000, 'more than a second at 24 kHz');
});

t.test('curl, as a voice-agent platform', { skip: missingTool('curl') }, async (t) => {
  const dir = t.testdir();
  await inShell(block('sh', 'answer.pcm'), dir);
  const seconds = statSync(join(dir, 'answer.pcm')).size / 2 / 16_000;
  t.ok(seconds > 0.5 && seconds < 3, `${seconds} s`);
});

t.test('Node, with the times of the words', async (t) => {
  const dir = t.testdir();
  writeFileSync(join(dir, 'example.mjs'), block('js', '/v1/tts/stream'));
  const { stdout } = await run(process.execPath, ['example.mjs'], { cwd: dir, env: environment() });
  const lines = stdout.trim().split('\n');
  t.strictSame(
    lines.map((line) => line.replace(/^\d+\.\d\d /, '')),
    ['Every', 'word', 'has', 'its', 'time.'],
  );
  const seconds = lines.map((line) => Number.parseFloat(line));
  t.strictSame(
    seconds,
    [...seconds].sort((a, b) => a - b),
  );
  t.ok(statSync(join(dir, 'node.pcm')).size > 48_000);
});

t.test('Node, over a WebSocket', async (t) => {
  const dir = t.testdir();
  writeFileSync(join(dir, 'socket.mjs'), block('js', '/v1/tts/ws'));
  const { stdout, stderr } = await run(process.execPath, ['socket.mjs'], { cwd: dir, env: environment() });
  t.equal(stderr, '');
  const words = [...stdout.matchAll(/'([^']+)'/g)].map(([, word]) => word);
  t.strictSame(words, ['Text', 'comes', 'in', 'pieces.', 'Sound', 'does', 'not', 'wait.']);
  t.ok(statSync(join(dir, 'socket.pcm')).size > 2 * 64_000, 'more than two seconds at 32 kHz');
});

t.test('Python', { skip: missingTool('python3') }, async (t) => {
  const dir = t.testdir();
  writeFileSync(join(dir, 'example.py'), block('python', 'urllib.request'));
  const { stdout } = await run('python3', ['example.py'], { cwd: dir, env: environment() });
  t.ok(wavSeconds(t, join(dir, 'python.wav')) > 0.8);
  t.equal(stdout, `${String(statSync(join(dir, 'python.wav')).size)} bytes\n`);
});

t.test('npm run say, through a player', async (t) => {
  const dir = t.testdir();
  const player = join(dir, 'ffplay');
  writeFileSync(player, `#!/bin/sh\ncat > '${join(dir, 'heard')}'\n`);
  chmodSync(player, 0o755);
  const [line = ''] = /^ {2}npm run say .*$/m.exec(readSource('README.md')) ?? [];
  await inShell(line, packageRoot, dir);
  t.ok(statSync(join(dir, 'heard')).size > 64_000, 'more than a second at 32 kHz');
});

t.test('what a first start shows', async (t) => {
  const [firstKey = ''] = /svc_sk_\w{32,}/.exec(readSource('README.md')) ?? [];
  const { speaker_ids: voices } = (await (await service.get('/v1/tts/speakers')).json()) as {
    speaker_ids: string[];
  };
  const { port, opsPort, ...config } = readConfig({});
  const consolePort = config.console?.port ?? null;
  const [claimUrl = ''] = /http:\S+\/claim#\S+/.exec(readSource('README.md')) ?? [];
  const facts = { config, port, opsPort, consolePort, dialectPorts: {}, claimUrl, voices, firstKey };
  const shown = firstKeyText(firstKey) + welcome(facts);
  t.ok(readSource('README.md').includes(shown.trim()), shown);
});

/** The lines of the only block with a text, without their comments. */
const commands = (text: string, blocks: typeof pages): string[] =>
  block('sh', text, blocks)
    .trim()
    .split('\n')
    .map((line) => line.replace(/ +#.*$/, ''));

t.test("the README's commands are those of their page", (t) => {
  const printed = commandsPage
    .flatMap(({ code }) => code.split('\n'))
    .map((line) => line.replace(/ +#.*$/, ''));
  for (const command of commands('npm run keys', pages)) t.ok(printed.includes(command), command);
  t.end();
});

t.test('npm run keys', async (t) => {
  const lines = commands('npm run keys', commandsPage);
  const outputs: string[] = [];
  for (const line of lines) {
    const made = /svc_sk_\w+/.exec(outputs[0] ?? '')?.[0] ?? '';
    const command = line.replace('svc_sk_...', made);
    outputs.push(made === '' ? (await inShell(command, packageRoot)).stdout : await inProcess(keys, command));
  }
  const [create = '', account = '', kiosk = '', credit = '', meter = '', set = '', defaults = ''] = outputs;
  const [rename = '', suspend = '', list = '', revoke = ''] = outputs.slice(7);
  t.match(create, /^svc_sk_\w+$/m);
  t.match(account, /^svc_sk_\w+$/m);
  t.match(kiosk, /^svc_sk_\w+$/m);
  t.match(credit, /60000 credits/);
  t.match(meter, /is not metered/);
  t.match(set, /has spent \d+ of 5000 credits/);
  t.match(defaults, /normalizes text, speaks at speed 1\.1/);
  t.match(rename, /is named "front desk"/);
  t.match(suspend, /is suspended/);
  t.match(list, /ada +not metered/);
  t.match(list, / kiosk +ada .* 0 of 5000 .* wren,lark +suspended/);
  t.match(list, / front desk .* active/);
  t.match(revoke, /is revoked/);
});

t.test('npm run usage', async (t) => {
  const [all = '', ada = '', json = ''] = commands('npm run usage', commandsPage);
  t.match((await inShell(all, packageRoot)).stdout, /^default +\d+ [^]*^ada +0 /m);
  t.match(await inProcess(usageReport, ada), /^ada +0 +0 +0 +0 +0\.0 +not metered /m);
  t.match(JSON.parse(await inProcess(usageReport, json)), { since: '2026-07-01T00:00:00.000Z' });
});

t.test('npm run store', async (t) => {
  const dir = t.testdir();
  const [backup = '', verify = '', restore = ''] = commands('store -- backup', commandsPage).map((line) =>
    line.replaceAll('/backups/', `${dir}/`),
  );
  t.match((await inShell(backup, packageRoot)).stdout, /store-\d{4}-\d\d-\d\d\.sqlite: \d+ accounts/);
  t.match(await inProcess(store, verify), 'is good');
  const [made = ''] = readdirSync(dir);
  const again = restore.replace(/store-[\d-]+\.sqlite/, made);
  await t.rejects(inShell(again, packageRoot), /is in use/, 'the service runs');
});
