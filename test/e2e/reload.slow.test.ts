/** SIGHUP: the service reads its voices again while streams go on. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { packageRoot } from '../support/package-root.js';
import { openStream, prose, readStream, speech, startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

const text = prose(4);
const format = { encoding: 'pcm', sample_rate: 24_000 };
const body = (more: object = {}) => speech(text, { response_format: format, ...more });
const tokens = text.trim().split(' ');
const unloaded = 'the older voices are unloaded';

interface Manifest {
  speakers: { id: string }[];
}

/** A folder of voices. It changes as in operation: a whole pack is built beside it, then renamed. */
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

  /** Replaces the pack by a changed one. */
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

const models = new Models(t);
const service = await startService(t, { MODELS_DIR: models.folder });

/** Sends SIGHUP and waits for its result. */
const hangUp = async (message = 'voices reloaded') => {
  const count = service.logged(message).length + 1;
  service.signal('SIGHUP');
  return service.untilLogged(message, count);
};

const speakers = async (): Promise<string[]> => {
  const response = await service.get('/v1/tts/speakers');
  return ((await response.json()) as { speaker_ids: string[] }).speaker_ids;
};

/** Reads the words of a stream, which must be complete. */
const readWords = async (): Promise<string[]> => {
  const { words } = await readStream(await service.post('/v1/tts/stream', body({ timestamps: true })));
  return words.map(({ word }) => word);
};

t.test('voices are added, removed and renamed during streams, none of which is cut or changed', async (t) => {
  const before = await speakers();
  const stream = readWords();
  const late = await openStream(service, text);
  const socket = await openWs(service.port, service.key);
  const [, renamed = ''] = before;
  for (const [contextId, voice] of [
    ['stays', 'wren'],
    ['renamed', renamed],
  ] as const) {
    socket.start(contextId, { voice_id: voice, response_format: format });
    socket.text(contextId, text);
    socket.flush(contextId, 'first');
  }
  models.change((manifest) => {
    for (const speaker of manifest.speakers) if (speaker.id === renamed) speaker.id = 'renamed';
    manifest.speakers.push({ ...manifest.speakers[0], id: 'added' });
  });
  t.match(await hangUp(), {
    generation: 2,
    voices: 10,
    added: ['renamed', 'added'],
    removed: [renamed],
    executionProviders: ['cpu'],
  });
  t.same(await speakers(), before.map((id) => (id === renamed ? 'renamed' : id)).concat('added'));
  const refused = await service.post('/v1/tts', body({ voice: renamed }));
  t.equal(refused.status, 422);
  t.ok(((await refused.json()) as { valid_voices: string[] }).valid_voices.includes('added'));
  t.match(await (await service.get('/openapi.json')).text(), /"added"/);
  const added = await service.post('/v1/tts/stream', body({ text: 'It speaks.', voice: 'added' }));
  t.ok((await readStream(added)).audio.length > 10_000, 'the new voice speaks');
  t.same(await stream, tokens);
  t.ok((await late.rest()) > 100_000);
  // Between two utterances a context changes to the new voices. If its voice is gone, it keeps the old ones.
  for (const contextId of ['stays', 'renamed']) {
    await socket.frame(({ flush_id, context_id }) => flush_id === 'first' && context_id === contextId);
    const { length } = socket.audio(contextId);
    t.ok(length > 48_000 * 5, 'the utterance during the reload is whole');
    socket.text(contextId, 'And one more.');
    socket.closeContext(contextId);
    await socket.frame(
      ({ context_closed, context_id }) => context_closed === true && context_id === contextId,
    );
    t.ok(socket.audio(contextId).length > length + 10_000);
  }
  t.notOk(socket.frames.some(({ error }) => error !== undefined));
  await service.untilLogged(unloaded);
  // The files are the same now: an utterance goes on with the new threads.
  socket.start('endless', { voice_id: 'wren', timestamps: true, response_format: format });
  socket.text('endless', text.trim());
  await socket.frame(({ audio_chunk, context_id }) => audio_chunk !== undefined && context_id === 'endless');
  t.match(await hangUp(), { generation: 3 });
  await service.untilLogged(unloaded, 2);
  socket.closeContext('endless');
  await socket.frame(({ context_closed, context_id }) => context_closed === true && context_id === 'endless');
  t.same(
    socket.words('endless').map(({ word }) => word),
    tokens,
  );
  t.notOk(socket.of('endless').some(({ error }) => error !== undefined));
  socket.close();
});

t.test('unreadable voices change nothing, and the log names the file', async (t) => {
  const before = await speakers();
  const kept = 'the voices were not reloaded, the current ones go on: fix the fault, then SIGHUP again';
  const manifest = readFileSync(models.manifestPath);
  writeFileSync(models.manifestPath, manifest.subarray(0, 1_000));
  await hangUp(kept);
  rmSync(models.manifestPath);
  await hangUp(kept);
  writeFileSync(models.manifestPath, manifest);
  // The running service has the old files mapped, so they are replaced and not overwritten.
  for (const name of ['encoder', 'frames', 'decoder']) {
    const path = join(models.folder, 'syrinx-en', `${name}.onnx`);
    copyFileSync(path, `${path}.new`);
    writeFileSync(`${path}.new`, 'damaged');
    renameSync(`${path}.new`, path);
  }
  await hangUp(kept);
  rmSync(models.folder, { recursive: true });
  await hangUp(kept);
  t.match(
    service.logged(kept).map(({ reason }) => reason),
    [
      /manifest\.json: not valid JSON$/,
      /manifest\.json: the file is missing$/,
      /encoder\.onnx: the file has 7 bytes, its manifest says \d+$/,
      /models: the folder of voices is missing$/,
    ],
  );
  t.same(await speakers(), before);
  t.equal((await service.get('/readyz', {})).status, 200);
  t.same(await readWords(), tokens);
  t.match(await service.stop(), { code: 0, signal: null });
  t.equal(service.stderr, '');
});
