/** A service that has room for one voice pack beside the default one. */
import { join } from 'node:path';
import t from 'tap';
import { copyShippedPack } from '../../scripts/voices/fixtures/mixed.js';
import { piperModel, smallShape, writePiper } from '../../scripts/voices/fixtures/piper.js';
import { rawTable, writePack } from '../support/kokoro.js';
import { startService } from '../support/service.js';

const text = 'The kettle is on, and the kitchen smells of toast.';
const format = { encoding: 'pcm', sample_rate: 24_000 };

t.test('voices of three packs speak at once, in turn, and the default voice stays loaded', async (t) => {
  const models = join(t.testdir(), 'models');
  copyShippedPack(models);
  await writePiper(join(models, 'piper'), 'piper', piperModel(smallShape));
  writePack(join(models, 'kokoro'), { 'model.onnx': {}, 'voices/af_heart.bin': rawTable(0) });
  const env = { MODELS_DIR: models, PACKS_LOADED_MAX: '2', SYNTHESIS_THREADS: '2', OVERLOAD: 'late' };
  // As in gpu.slow.test.ts: beside other tests, niced processes would take minutes to try the voices.
  const service = await startService(t, env, 'src/main.js', ['setsid']);
  const bytesOf = async (voice: string): Promise<number> => {
    const response = await service.post('/v1/tts/stream', { text, voice, response_format: format });
    t.equal(response.status, 200);
    return (await response.arrayBuffer()).byteLength;
  };
  // The default voice is speaking when another pack is unloaded.
  const voices = ['wren', 'wren', 'piper', 'kokoro'];
  for (let round = 0; round < 2; round++)
    for (const bytes of await Promise.all(voices.map(bytesOf))) t.ok(bytes > 20_000, `${bytes} bytes`);
  // In each of the two threads.
  t.equal(await service.metric('syrinx_voice_packs_loaded'), 4);
  const loads = await service.metric('syrinx_voice_pack_loads_total');
  // After the start each thread has `kokoro`. If one of them always speaks `piper`, no other load is needed.
  t.ok(loads >= 1, `${loads} loads`);
  t.ok((await service.metric('syrinx_voice_pack_load_seconds_total')) > 0);
  await service.untilLogged('voice pack loaded', loads);
  const entries = service.logged('voice pack loaded');
  t.equal(entries.length, loads, 'each load is a line of the log');
  t.notOk(entries.some(({ pack }) => pack === 'syrinx-en'));
  service.signal('SIGTERM');
  t.match(await service.exited, { code: 0 });
});
