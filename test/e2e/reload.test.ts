/** SIGHUP: the voices are read again while streams go on. */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  pause,
  readStream,
  recordsOf,
  spawnService,
  startService,
  until,
  type TestService,
} from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { packageRoot } from '../support/package-root.js';

const text = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(4);
const request = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
const tokens = text.trim().split(' ');

interface Manifest {
  speakers: { id: string }[];
}

/** A folder of voices, to be changed as operators do: a whole pack is put together beside it, then renamed. */
class Models {
  readonly folder: string;
  readonly #beside: string;
  #versions = 0;

  constructor(t: Test) {
    const root = t.testdir();
    this.folder = join(root, 'models');
    this.#beside = join(root, 'beside');
    mkdirSync(this.#beside);
    cpSync(join(packageRoot, 'models'), this.folder, { recursive: true });
  }

  get manifestPath(): string {
    return join(this.folder, 'syrinx-en', 'manifest.json');
  }

  /** Puts a changed pack in the place of the one there is. */
  change(edit: (manifest: Manifest) => void): void {
    const version = join(this.#beside, String(this.#versions++));
    cpSync(join(packageRoot, 'models', 'syrinx-en'), version, { recursive: true });
    const path = join(version, 'manifest.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
    edit(manifest);
    writeFileSync(path, JSON.stringify(manifest));
    const pack = join(this.folder, 'syrinx-en');
    renameSync(pack, `${version}-before`);
    renameSync(version, pack);
    rmSync(`${version}-before`, { recursive: true });
  }
}

const count = (service: TestService, message: string) =>
  service.entries.filter(({ msg }) => msg === message).length;

/** Sends SIGHUP and waits for what comes of it. */
const hangUp = async (service: TestService, message: string): Promise<void> => {
  const before = count(service, message);
  service.signal('SIGHUP');
  if (!(await until(() => count(service, message) > before)))
    throw new Error(`no "${message}": ${service.stdout}`);
};

const reloaded = (service: TestService) => hangUp(service, 'voices reloaded');

const speakers = async (service: TestService): Promise<string[]> => {
  const response = await service.get('/v1/tts/speakers');
  return ((await response.json()) as { speaker_ids: string[] }).speaker_ids;
};

const threadsOf = (service: TestService) => readdirSync(`/proc/${service.pid}/task`).length;
const filesOf = (service: TestService) => readdirSync(`/proc/${service.pid}/fd`).length;

t.test('voices are added, removed and renamed under streams, of which none is cut or changed', async (t) => {
  const models = new Models(t);
  const service = await startService(t, { MODELS_DIR: models.folder });
  const before = await speakers(service);
  const streams = Array.from({ length: 3 }, async () => {
    const response = await service.post('/v1/tts/stream', { ...request, timestamps: true });
    return readStream(response);
  });
  const paced = await service.post('/v1/tts/stream', request);
  const records = recordsOf(paced);
  await records.next();
  const socket = await openWs(service.port, service.key);
  const format = { encoding: 'pcm', sample_rate: 24_000 };
  for (const [contextId, voice] of [
    ['stays', 'wren'],
    ['renamed', before[1]],
  ] as const) {
    socket.start(contextId, { voice_id: voice, response_format: format });
    socket.text(contextId, text);
    socket.flush(contextId, 'first');
  }
  const renamed = before[1] ?? '';
  models.change((manifest) => {
    for (const speaker of manifest.speakers) if (speaker.id === renamed) speaker.id = 'renamed';
    manifest.speakers.push({ ...manifest.speakers[0], id: 'added' });
  });
  await reloaded(service);
  t.match(
    service.entries.find(({ msg }) => msg === 'voices reloaded'),
    {
      generation: 2,
      voices: 10,
      added: ['renamed', 'added'],
      removed: [renamed],
      executionProviders: ['cpu'],
    },
  );
  t.same(await speakers(service), before.map((id) => (id === renamed ? 'renamed' : id)).concat('added'));
  const refused = await service.post('/v1/tts', { ...request, voice: renamed });
  t.equal(refused.status, 422);
  t.ok(((await refused.json()) as { valid_voices: string[] }).valid_voices.includes('added'));
  t.match(await (await service.get('/openapi.json')).text(), /"added"/);
  const added = await service.post('/v1/tts/stream', { ...request, text: 'It speaks.', voice: 'added' });
  t.ok((await readStream(added)).audio.length > 10_000, 'the new voice speaks');
  for (const { words } of await Promise.all(streams))
    t.same(
      words.map(({ word }) => word),
      tokens,
    );
  for await (const record of records) t.type(record.audio_chunk, 'string');
  // Between two utterances one context takes up the new voices; the other, whose voice is gone, keeps the old ones.
  for (const contextId of ['stays', 'renamed']) {
    await socket.frame(({ flush_id, context_id }) => flush_id === 'first' && context_id === contextId);
    const length = socket.audio(contextId).length;
    t.ok(length > 48_000 * 5, 'the utterance that was under way is whole');
    socket.text(contextId, 'And one more.');
    socket.closeContext(contextId);
    await socket.frame(
      ({ context_closed, context_id }) => context_closed === true && context_id === contextId,
    );
    t.ok(socket.audio(contextId).length > length + 10_000);
  }
  t.notOk(socket.frames.some(({ error }) => error !== undefined));
  t.ok(await until(() => count(service, 'the older voices are unloaded') === 1));
  socket.close();
  t.match(await service.stop(), { code: 0, signal: null });
  t.equal(service.stderr, '');
});

t.test('voices that cannot be read change nothing, and the log names the file', async (t) => {
  const models = new Models(t);
  const service = await startService(t, { MODELS_DIR: models.folder, SYNTHESIS_THREADS: '1' });
  const before = await speakers(service);
  const kept = 'the voices were not reloaded, the current ones go on: fix the fault, then SIGHUP again';
  const whole = readFileSync(models.manifestPath);
  writeFileSync(models.manifestPath, whole.subarray(0, 1_000));
  await hangUp(service, kept);
  rmSync(models.manifestPath);
  await hangUp(service, kept);
  writeFileSync(models.manifestPath, whole);
  // As an operator who lost the files would find it.
  for (const name of ['encoder', 'frames', 'decoder']) {
    const path = join(models.folder, 'syrinx-en', `${name}.onnx`);
    copyFileSync(path, `${path}.new`);
    writeFileSync(`${path}.new`, 'damaged');
    renameSync(`${path}.new`, path);
  }
  await hangUp(service, kept);
  rmSync(models.folder, { recursive: true });
  await hangUp(service, kept);
  const reasons = service.entries.filter(({ msg }) => msg === kept).map(({ reason }) => reason);
  t.match(reasons, [
    /manifest\.json: not valid JSON$/,
    /manifest\.json: the file is missing$/,
    /encoder\.onnx: the file has 7 bytes, its manifest says \d+$/,
    /models: the folder of voices is missing$/,
  ]);
  t.same(await speakers(service), before);
  t.equal((await fetch(`${service.url}/readyz`)).status, 200);
  const { words } = await readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  t.same(
    words.map(({ word }) => word),
    tokens,
  );
  t.match(await service.stop(), { code: 0, signal: null });
});

t.test(
  'reloads under traffic, one after another and all at once, leave no thread and no file behind',
  async (t) => {
    const service = await startService(t, { SYNTHESIS_THREADS: '1' });
    let running = true;
    let streams = 0;
    const traffic = Array.from({ length: 2 }, async () => {
      while (running) {
        const response = await service.post('/v1/tts/stream', { ...request, timestamps: true });
        const { words } = await readStream(response);
        t.same(
          words.map(({ word }) => word),
          tokens,
        );
        streams++;
      }
    });
    const settled = () =>
      until(() => count(service, 'the older voices are unloaded') === count(service, 'voices reloaded'));
    await reloaded(service);
    await settled();
    const files = filesOf(service);
    for (let i = 0; i < 3; i++) await reloaded(service);
    const before = count(service, 'voices reloaded');
    for (let i = 0; i < 20; i++) {
      service.signal('SIGHUP');
      await pause(5);
    }
    t.ok(await until(() => count(service, 'voices reloaded') > before));
    running = false;
    await Promise.all(traffic);
    t.ok(streams >= 3);
    service.signal('SIGUSR2');
    t.ok(await until(() => count(service, 'status') === 1));
    await reloaded(service);
    t.ok(await settled());
    const fresh = await startService(t, { SYNTHESIS_THREADS: '1' });
    t.ok(await until(() => threadsOf(service) === threadsOf(fresh)), 'as many threads as a fresh start has');
    t.ok(await until(() => filesOf(service) <= files), 'and as many files open as after the first reload');
    t.match(await service.stop(), { code: 0, signal: null });
    t.equal(service.stderr, '');
  },
);

t.test('SIGHUP in the middle of a start, and of a drain', async (t) => {
  const service = spawnService(t, { SYNTHESIS_THREADS: '1' });
  while (!service.stdout.includes('first API key')) await pause(2);
  for (let i = 0; i < 5; i++) service.signal('SIGHUP');
  await service.listening();
  t.ok(await until(() => count(service, 'voices reloaded') >= 1));
  const whole = readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  service.signal('SIGHUP');
  service.signal('SIGTERM');
  service.signal('SIGHUP');
  t.same(
    (await whole).words.map(({ word }) => word),
    tokens,
  );
  t.match(await service.exited, { code: 0, signal: null });
  t.equal(service.stderr, '');
});
