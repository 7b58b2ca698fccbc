/** The archive, in a root that has a shell and the C libraries and nothing else; and the npm package, in an empty project. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { isLoadableBinary } from '../../scripts/package/parts.js';
import { packageProgram } from '../../scripts/package/main.js';
import { temporaryFolder } from '../store/support.js';
import { packageRoot } from '../support/package-root.js';
import { runner } from '../support/run-command.js';
import { missingTool } from '../support/tools.js';

const skip = missingTool('npm', 'tar', 'mount');
const bytesMax = 150e6;
const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
  version: string;
};
const release = `syrinx-${version}-${process.platform}-${process.arch}`;

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** A started service, or `null` if it ended. */
const untilListening = async (child: ChildProcess): Promise<{ port: number } | null> => {
  for await (const line of createInterface({ input: child.stdout! }))
    if (line.endsWith('"msg":"listening"}')) {
      // The loop paused it.
      setImmediate(() => child.stdout!.resume());
      return JSON.parse(line) as { port: number };
    }
  return null;
};

const ports = { PORT: '0', OPS_PORT: '0', CONSOLE_PORT: 'off', SYNTHESIS_THREADS: '1' };
const sentence = 'The ferry leaves at seven, and nobody waits for the late ones. ';

t.test('the archive holds all that the service needs', { skip }, async (t) => {
  const root = temporaryFolder(t);
  const out = join(root, 'out');
  mkdirSync(out);
  const made = await runner(packageProgram, '')('--out', out);
  t.equal(made.status, 0, made.stderr);
  const archive = join(out, `${release}.tar.gz`);
  t.same(readdirSync(out), [`${release}.tar.gz`], 'nothing else is left');
  t.ok(statSync(archive).size <= bytesMax, `${statSync(archive).size} bytes`);
  mkdirSync(join(root, 'opt'));
  execFileSync('tar', ['-xzf', archive, '-C', join(root, 'opt'), '--no-same-owner']);
  const folder = join(root, 'opt', release);

  await t.test('has what runs here, and no binary that does not', (t) => {
    const files = filesIn(folder);
    t.same(
      files.filter((path) => isLoadableBinary(path) === false),
      [],
    );
    t.ok(files.filter((path) => isLoadableBinary(path)).length >= 6, 'Node and the native parts');
    const forDevelopers =
      /^\/(?:dist\/(?:test|scripts\/(?:bench|torture))|node_modules\/(?:typescript|esbuild|tap))\//;
    t.same(
      files.map((path) => path.slice(folder.length)).filter((path) => forDevelopers.test(path)),
      [],
    );
    t.end();
  });

  await t.test('has a licence for each part, and a bill of materials', (t) => {
    const installed = filesIn(join(folder, 'node_modules'))
      .filter((path) => /node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path))
      .map((path) => JSON.parse(readFileSync(path, 'utf8')) as { name: string; version: string })
      .map((manifest) => `${manifest.name}@${manifest.version}`);
    const bill = JSON.parse(readFileSync(join(folder, 'SBOM.cdx.json'), 'utf8')) as {
      bomFormat: string;
      metadata: { component: { name: string } };
      components: {
        'bom-ref': string;
        licenses: { license: { id?: string } }[];
        hashes?: { content: string }[];
        externalReferences: { url: string; hashes?: { content: string }[] }[];
      }[];
    };
    t.equal(bill.bomFormat, 'CycloneDX');
    t.equal(bill.metadata.component.name, 'syrinx');
    const listed = new Set(bill.components.map((component) => component['bom-ref']));
    t.ok(installed.length > 40);
    t.same(
      installed.filter((reference) => !listed.has(reference)),
      [],
    );
    for (const name of ['lame', 'ffmpeg', 'opus', 'koffi', '@koromix/koffi-linux-x64', 'libopus-wasm']) {
      const part = bill.components.find((component) => component['bom-ref'].startsWith(`${name}@`));
      const [source] = part?.externalReferences ?? [];
      t.match(source?.url, /^(?:git\+)?https:/, `${name} has its source`);
      t.match((part?.hashes ?? source?.hashes)?.[0]?.content, /^[\da-f]{64,128}$/, `${name} has a checksum`);
    }
    const page = readFileSync(join(folder, 'LICENCES.md'), 'utf8');
    const texts = [...page.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path);
    t.ok(texts.length > installed.length);
    t.same(
      texts.filter((path) => !existsSync(join(folder, path))),
      [],
    );
    t.end();
  });

  // The loader, the C and C++ libraries, a shell and readlink.
  const programs = ['sh', 'readlink'].map((name) => realpathSync(join('/bin', name)));
  const natives = filesIn(folder).filter((path) => isLoadableBinary(path));
  for (const path of [...programs, ...natives])
    for (const [, library = ''] of execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(
      /\s(\/(?:usr\/)?lib\S+) \(/g,
    )) {
      mkdirSync(join(root, dirname(library)), { recursive: true });
      copyFileSync(library, join(root, library));
    }
  mkdirSync(join(root, 'bin'));
  ['sh', 'readlink'].forEach((name, i) => copyFileSync(programs[i] ?? '', join(root, 'bin', name)));
  for (const name of ['proc', 'data', 'tmp']) mkdirSync(join(root, name));
  if (spawnSync('mount', ['-t', 'proc', 'proc', join(root, 'proc')]).status !== 0) {
    t.comment('the root was not tried, because this user may not mount');
    return;
  }
  t.teardown(() => spawnSync('umount', ['--lazy', join(root, 'proc')]));
  const inRoot = (...args: readonly string[]): ChildProcess =>
    spawn('chroot', [root, `/opt/${release}/scripts/syrinx`, ...args], {
      env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin', DATA_DIR: '/data', ...ports },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const output = async (child: ChildProcess): Promise<{ code: number | null; text: string }> => {
    let text = '';
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, text };
  };

  await t.test('starts, speaks, has its commands and drains in a root without anything else', async (t) => {
    const service = inRoot();
    t.teardown(() => service.kill('SIGKILL'));
    const ended = once(service, 'exit') as Promise<[number | null]>;
    const listening = await untilListening(service);
    if (listening === null) {
      t.fail('it ended');
      return;
    }
    const created = await output(inRoot('keys', '--', 'create', '--account', 'ada', '--credits', '5000'));
    const key = /svc_sk_\S+/.exec(created.text)?.[0] ?? '';
    t.match(created, { code: 0 });
    t.match(await output(inRoot('usage')), { code: 0, text: 'ada' });
    t.match(await output(inRoot('voices', 'list')), { code: 0, text: 'syrinx-en' });
    t.match(await output(inRoot('store', 'verify')), { code: 0, text: 'is good' });
    t.match(await output(inRoot('sing')), { code: 2, text: 'there is no command "sing"' });
    const speak = (times: number) =>
      fetch(`http://127.0.0.1:${listening.port}/v1/tts`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ text: sentence.repeat(times), voice: 'wren', response_format: 'mp3' }),
      });
    const first = await speak(1);
    t.equal(first.status, 200);
    t.ok(((await first.json()) as { audio: string }).audio.length > 10_000);
    const inFlight = speak(20);
    // The listing takes long enough for the request to arrive.
    t.match(await output(inRoot('keys', 'list')), { code: 0, text: 'ada' });
    service.kill('SIGTERM');
    const last = await inFlight;
    t.equal(last.status, 200, 'a drain finishes what is spoken');
    t.ok(((await last.json()) as { audio: string }).audio.length > 200_000);
    t.same(await ended, [0, null]);
  });
});

t.test(
  'the npm package: `npx syrinx` is the service, and `syrinx/client` the client',
  { skip },
  async (t) => {
    const folder = temporaryFolder(t);
    const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: packageRoot,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
    const modules = join(folder, 'node_modules');
    mkdirSync(modules);
    execFileSync('tar', ['-xzf', join(folder, filename), '-C', modules]);
    // As npm would install it, without the registry.
    renameSync(join(modules, 'package'), join(modules, 'syrinx'));
    const { dependencies } = JSON.parse(readFileSync(join(modules, 'syrinx', 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(packageRoot, 'node_modules', name), join(modules, name));
    }
    mkdirSync(join(modules, '.bin'));
    symlinkSync('../node/bin/node', join(modules, '.bin', 'node'));
    symlinkSync('../syrinx/scripts/syrinx', join(modules, '.bin', 'syrinx'));

    const service = spawn('npx', ['--no-install', 'syrinx'], {
      cwd: folder,
      env: { ...process.env, ...ports, DATA_DIR: join(folder, 'data'), MODELS_DIR: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
      // npx does not pass on signals: the group gets them.
      detached: true,
    });
    const ended = once(service, 'close');
    const signal = (name: NodeJS.Signals) =>
      service.exitCode === null && process.kill(-(service.pid ?? 0), name);
    t.teardown(() => signal('SIGKILL'));
    const listening = await untilListening(service);
    const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim();
    const program = `
    import { connect } from 'syrinx/client';
    const client = await connect({ url: 'http://127.0.0.1:${listening?.port ?? 0}', apiKey: '${key}' });
    const context = client.context({ voiceId: 'wren', format: { encoding: 'pcm', sampleRateHz: 24000 } });
    context.send('Good morning.');
    void context.close();
    let bytes = 0;
    for await (const audio of context.audio) bytes += audio.length;
    console.log(bytes);
    await client.close();`;
    const spoken = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: folder,
      encoding: 'utf8',
    });
    t.ok(Number(spoken) > 24_000, `${spoken.trim()} bytes of speech`);
    signal('SIGTERM');
    await ended;
  },
);
