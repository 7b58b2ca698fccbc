/** `npm run voices`, with a pack that is a copy of the shipped one with a single voice. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { voices as program } from '../../scripts/voices.js';
import { runner } from '../support/run-command.js';
import { modelsDir } from '../support/voices.js';
import { eventually } from '../support/waiting.js';

interface Manifest {
  speakers: { id: string }[];
}

/** Control characters in it do not reach the terminal. */
const licence = 'MIT\u001b]0;owned\u0007\u009b31m';
const controls = /[^\P{Cc}\n\t]/u;

const rename = (folder: string, id: string): void => {
  const path = join(folder, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  manifest.speakers = [{ ...manifest.speakers[0]!, id }];
  writeFileSync(path, JSON.stringify({ ...manifest, licence }));
};

/** The shipped pack in a folder of voices, and a pack with the one voice `robin` elsewhere. */
const prepare = (t: Test) => {
  const root = t.testdir({ models: {}, home: {} });
  const [models, download] = [join(root, 'models'), join(root, 'home', 'robin')];
  for (const folder of [join(models, 'syrinx-en'), download])
    cpSync(join(modelsDir, 'syrinx-en'), folder, { recursive: true });
  rename(download, 'robin');
  return { root, models, download, voices: runner(program, join(root, 'data'), { MODELS_DIR: models }) };
};

t.test('a pack is added, listed, tried and removed', async (t) => {
  const { root, models, download, voices } = prepare(t);
  symlinkSync('manifest.json', join(download, 'extra.bin'));
  mkdirSync(join(models, '.adding-killed'));
  utimesSync(join(models, '.adding-killed'), 1, 1);
  const added = await voices('add', download, '--name', 'garden');
  t.match(added, {
    status: 0,
    stdout:
      /^garden is added\.\n(?: .*\n)+A running service takes it over by `npm run service -- reload`.*\nHear it: .* robin\n$/,
  });
  for (const row of [
    /^ {2}format +syrinx$/m,
    /^ {2}voices +1: robin$/m,
    /^ {2}language +en$/m,
    /^ {2}sample rate +24000 Hz$/m,
    /^ {2}licence +MIT\ufffd\]0;owned\ufffd/m,
    /^ {2}speed here +real-time factor [\d.]+: [\d.]+ times as fast as speech/m,
    /^ {2}first chunk +after [\d.]+ ms; the longest step takes [\d.]+ ms$/m,
  ])
    t.match(added.stdout, row);
  t.notMatch(added.stdout + added.stderr, controls);
  t.strictSame(readdirSync(models).sort(), ['garden', 'syrinx-en'], 'nothing else is left');
  t.equal(
    statSync(join(models, 'garden')).mode,
    statSync(models).mode,
    'who may read MODELS_DIR may read it',
  );
  t.strictSame(
    readFileSync(join(models, 'garden', 'extra.bin')),
    readFileSync(join(download, 'manifest.json')),
    'a link inside the folder is a file of its own',
  );
  t.ok(existsSync(join(root, 'data', 'voices', 'trials.json')), 'the service need not try it again');
  t.match(
    (await voices('list')).stdout,
    /^PACK .*\nsyrinx-en .*\ngarden +syrinx +en +24000 Hz +12\.\d MB .* robin\n$/,
  );
  t.match(await voices('add', download), { status: 1, stderr: /a voice "robin" is installed already/ });
  t.match(await voices('add', download, '--name', 'garden'), {
    status: 1,
    stderr: /garden is there already: give another name with --name$/m,
  });
  t.strictSame(readdirSync(models).sort(), ['garden', 'syrinx-en']);

  const file = join(root, 'robin.wav');
  const tried = await voices('try', 'garden', 'Good morning.', '-o', file);
  t.match(tried, {
    status: 0,
    stdout: /^robin: [\d.]+ s of speech in \d+ ms, first audio after \d+ ms, in /,
  });
  const wav = readFileSync(file);
  t.equal(wav.toString('latin1', 0, 4), 'RIFF');
  t.equal(wav.readUInt32LE(24), 24_000);
  t.equal(wav.readUInt32LE(40), wav.length - 44, 'its sizes are right');
  t.ok(wav.length > 24_000);

  t.match(await voices('remove', 'robin'), { status: 0, stdout: /^garden is removed\./ });
  t.strictSame(readdirSync(models), ['syrinx-en']);
  t.match(await voices('remove', 'jay'), { status: 1, stderr: /one of 9 voices of the pack "syrinx-en"/ });
  t.match(await voices('remove', 'syrinx-en'), { status: 1, stderr: /the only pack that can be used/ });
  t.match(await voices('try', 'nobody'), { status: 1, stderr: /no pack and no voice "nobody"/ });
});

t.test('a refusal of a file says why, and leaves nothing behind', async (t) => {
  const { models, download, voices } = prepare(t);
  writeFileSync(join(download, 'decoder.onnx'), 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n');
  for (const command of ['check', 'add'])
    t.match(
      await voices(command, download),
      { status: 1, stderr: /decoder\.onnx: a Git LFS pointer/ },
      command,
    );
  t.strictSame(readdirSync(models), ['syrinx-en']);
  t.match(await voices('check', join(models, 'none')), { status: 1, stderr: /no such file or folder/ });
  t.match(await voices('add', download, '--name', 'a/b'), {
    status: 1,
    stderr: /a name has at most 100 letters/,
  });
  cpSync(download, join(models, 'robin'), { recursive: true });
  for (const name of ['empty', 'evil\u001b[2J']) mkdirSync(join(models, name));
  const listed = await voices('list');
  t.match(
    listed.stdout,
    /\nNot usable:\n {2}\S+empty: the folder is empty\n {2}\S+decoder\.onnx: a Git LFS pointer.*\n {2}\S+evil\ufffd\[2J: a name/,
  );
  t.notMatch(listed.stdout + listed.stderr, controls);
  const { stdout: json } = await voices('list', '--json');
  t.match(JSON.parse(json), {
    packs: [
      { pack: 'syrinx-en', format: 'syrinx', voices: [{ id: 'wren', language: 'en', sample_rate: 24_000 }] },
    ],
    not_usable: [/empty: the folder is empty/, /a Git LFS pointer/, /evil.*: a name/],
  });
  t.match(await voices('remove', 'robin'), { status: 0 }, 'a pack that cannot be used has a name');
  t.match(await voices('list', '--name', 'x'), { status: 2, stderr: /"list" takes no --name/ });
});

t.test('a copy takes only regular files of the folder, and no more bytes than a pack has', async (t) => {
  const { root, models, download, voices } = prepare(t);
  const extra = join(download, 'extra.bin');
  const secret = join(root, 'home', 'secret');
  writeFileSync(secret, 'secret');
  chmodSync(secret, 0o600);
  const refused = async (message: RegExp) => {
    t.match(await voices('add', download), { status: 1, stderr: message });
    t.strictSame(readdirSync(models), ['syrinx-en'], 'nothing is left');
    rmSync(extra);
  };
  symlinkSync('/dev/zero', extra);
  await refused(/extra\.bin: not a regular file: remove it$/m);
  execFileSync('mkfifo', [extra]);
  await refused(/extra\.bin: not a regular file: remove it$/m);
  symlinkSync(secret, extra);
  await refused(/extra\.bin: a link to .*secret, which is outside the folder: put the file itself/);
  symlinkSync(models, extra);
  await refused(/extra\.bin: not a regular file/);
  writeFileSync(extra, '');
  truncateSync(extra, 2 ** 40);
  await refused(/the files have 1099\d+ bytes, and at most 8589934592 are allowed/);
});

t.test(
  'root adds no pack for another user',
  { skip: process.getuid?.() !== 0 && 'only root can give files away' },
  async (t) => {
    const { models, download, voices } = prepare(t);
    chownSync(models, 1234, 1234);
    t.match(await voices('add', download), {
      status: 1,
      stderr: /run this command as that user \(sudo -u '#1234'\)/,
    });
    t.strictSame(readdirSync(models), ['syrinx-en']);
  },
);

t.test('SIGHUP while a pack is copied leaves nothing behind', async (t) => {
  const { root, models, download } = prepare(t);
  // It is copied for seconds.
  truncateSync(join(download, 'decoder.onnx'), 2 ** 32);
  const file = fileURLToPath(new URL('../../scripts/voices.js', import.meta.url));
  const env = { ...process.env, DATA_DIR: join(root, 'data'), MODELS_DIR: models };
  const child = spawn(process.execPath, [file, 'add', download], { env, stdio: 'ignore' });
  await eventually(() => readdirSync(models).some((name) => name.startsWith('.adding-')));
  const ended = once(child, 'exit');
  child.kill('SIGHUP');
  t.strictSame(await ended, [128 + constants.signals.SIGHUP, null]);
  t.strictSame(readdirSync(models), ['syrinx-en']);
});

// SIGTERM: trial-end.sweep.test.ts.
t.test('SIGINT while a pack is examined, which hangs, leaves nothing behind', async (t) => {
  const { root, models, download } = prepare(t);
  writeFileSync(join(download, 'manifest.json'), '"endless"');
  const mark = join(root, 'mark');
  const hook = `
      import { writeFileSync } from 'node:fs';
      const parse = JSON.parse;
      JSON.parse = (text, ...more) => {
        if (text === '"endless"') for (writeFileSync(${JSON.stringify(mark)}, '');;);
        return parse(text, ...more);
      };`;
  const file = fileURLToPath(new URL('../../scripts/voices.js', import.meta.url));
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, file, 'add', download];
  const env = { ...process.env, DATA_DIR: join(root, 'data'), MODELS_DIR: models };
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  await eventually(() => existsSync(mark));
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  t.strictSame(await ended, [128 + constants.signals.SIGINT, null]);
  t.strictSame(readdirSync(models), ['syrinx-en']);
});
