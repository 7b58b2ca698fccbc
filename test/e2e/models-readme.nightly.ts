/** Runs the commands of models/README.md as printed, with an example pack of each format and a service that runs. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { copyShippedPack } from '../../scripts/voices/fixtures/mixed.js';
import { packageRoot } from '../support/package-root.js';
import { startService, until } from '../support/service.js';
import { readSource } from '../support/source-files.js';

const run = promisify(execFile);
const commands = [...readSource('models/README.md').matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].flatMap(
  ([, code = '']) =>
    code
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== ''),
);

/** The only command that contains a text. */
const command = (text: string): string => {
  const found = commands.filter((line) => line.includes(text));
  if (found.length !== 1) throw new Error(`the page has ${found.length} commands with "${text}"`);
  return found[0]!;
};

const isSpeech = (path: string): boolean => {
  const bytes = readFileSync(path);
  return bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.subarray(44).some((byte) => byte !== 0);
};

/** For a trial of the pack and a load of all voices. */
const loadMsMax = 60_000;

const folder = t.testdir();
const models = join(folder, 'models');
copyShippedPack(models);
const service = await startService(t, { MODELS_DIR: models, SYNTHESIS_THREADS: '1' });
const env = {
  ...process.env,
  MODELS_DIR: models,
  DATA_DIR: service.dataDir,
  SYRINX_KEY: service.key,
  PORT: String(service.port),
};
/** In the root of the package, where `npm run` works. */
const inShell = (line: string) => run('sh', ['-ec', line], { cwd: packageRoot, env, maxBuffer: 1 << 24 });

t.test('the example without a download works as printed', async (t) => {
  const place = join(folder, 'echo-voice');
  const output = join(folder, 'echo.wav');
  for (const line of commands.slice(commands.indexOf(command('example pocket'))))
    await inShell(line.replaceAll('./echo-voice', place).replace('echo.wav', output));
  t.ok(isSpeech(output));
  t.strictSame(readdirSync(models), ['syrinx-en'], 'the last command removed it');
});

const formats = [
  ['pocket', 'my-voice-alba', 'apache-2.0'],
  ['pocket-one', 'my-voice-alba', 'not stated'],
  ['kokoro', 'my-voice-af_heart', 'apache-2.0'],
  ['kitten', 'my-voice-Bella', 'apache-2.0'],
  ['piper', 'my-voice', 'Apache-2.0'],
  ['sherpa-kokoro', 'my-voice-af_bella', 'apache-2.0'],
  ['sherpa-piper', 'my-voice', 'Apache-2.0'],
] as const;

for (const [format, voice, licence] of formats)
  t.test(`the steps from a file of ${format} to hearing it work as printed`, async (t) => {
    const made = join(folder, format);
    await inShell(`npm run voices -- example ${format} ${made}`);
    const place = format === 'pocket-one' ? join(made, 'model.onnx') : made;
    const checked = await inShell(command('check PATH').replace('PATH', place));
    t.match(checked.stdout, /\n +format .*\n +voices .*\n +language .*\n +sample rate .* Hz\n/);
    t.match(checked.stdout, new RegExp(`\\n +licence +${licence}`));
    t.match(checked.stdout, /\n +speed here +real-time factor/);
    const added = await inShell(command('add PATH').replace('PATH', place));
    t.match(added.stdout, /my-voice is added\./);
    const output = join(folder, `${format}.wav`);
    await inShell(command('try my-voice').replace('hello.wav', output));
    t.ok(isSpeech(output), 'heard without the service');
    const isThere = async () => (await (await service.get('/v1/tts/speakers')).text()).includes(`"${voice}"`);
    service.signal('SIGHUP');
    t.ok(await until(isThere, loadMsMax), 'the service took it over');
    const through = join(folder, `${format}-service.wav`);
    await inShell(`${command('--voice my-voice').replace('my-voice', voice)} -o ${through}`);
    t.ok(existsSync(through) && isSpeech(through), 'heard through the service');
    t.match((await inShell('npm run voices -- list')).stdout, /\nmy-voice /);
    t.match((await inShell('npm run voices -- remove my-voice')).stdout, /my-voice is removed/);
  });
