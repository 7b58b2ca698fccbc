/** A thread that dies while it speaks: its other streams run again on a new thread, whatever noise the model draws. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { exchange, speechRequest } from '../../scripts/rig/http.js';
import { Service } from '../../scripts/rig/service.js';
import { breaking } from '../../scripts/torture/threads/faults.js';
import { makeMixedPacks, voiceOfEachPack } from '../../scripts/voices/fixtures/mixed.js';
import { rawTable, writePack } from '../support/kokoro.js';
import { pause } from '../support/service.js';

const text =
  'The kettle is on, and the kitchen smells of toast. Shall we sit by the window and talk until the others are home?';

t.test('streams go on after the death of their thread, with as many samples as without it', async (t) => {
  const models = join(t.testdir(), 'models');
  await makeMixedPacks(models);
  mkdirSync(join(models, 'noisy'));
  // Long steps, so that the death falls into one of them.
  const model = { isNoisy: true, loopsPerId: 20 };
  writePack(join(models, 'noisy'), { 'model.onnx': model, 'voices/af_heart.bin': rawTable(0) });
  let deaths = 0;
  const service = await Service.start({
    entry: new URL('../../scripts/torture/threads/fragile-service.js', import.meta.url),
    env: { MODELS_DIR: models },
    synthesisThreads: 1,
    actorThreads: 1,
    onLine: (line) => {
      if (line.includes('"msg":"synthesis thread ended; ')) deaths++;
    },
  });
  t.teardown(() => service.stop());
  // A key has at most nine requests in flight.
  const [key = '', another = ''] = await service.makeKeys(2);
  const speak = async (voice: string, spoken = text): Promise<{ bytes: Buffer; isWhole: boolean }> => {
    const request = speechRequest({
      ...{ key: spoken === text ? key : another, voice },
      ...{ text: spoken, path: '/v1/tts' },
    });
    const { body, isWhole, status } = await exchange(service.port, request);
    if (!isWhole || status !== 200) return { bytes: Buffer.alloc(0), isWhole: false };
    const { audio } = JSON.parse(body.toString()) as { audio: string };
    return { bytes: Buffer.from(audio, 'base64'), isWhole: true };
  };
  const voices = [...voiceOfEachPack(await service.voices()), 'noisy'];
  t.equal(voices.length, 9);
  const expected = new Map<string, Buffer>();
  for (const voice of voices) expected.set(voice, (await speak(voice)).bytes);
  const [once, again] = [await speak('noisy'), await speak('noisy')];
  t.notOk(once.bytes.equals(again.bytes), 'the graph draws noise');
  t.equal(once.bytes.length, again.bytes.length);
  // In a step of each engine, and a little later each time.
  for (const [round, breaks] of voices.entries()) {
    const streams = voices.map((voice) => speak(voice));
    await pause(7 * round);
    const broken = await speak(breaks, breaking('exit'));
    t.notOk(broken.isWhole, `the request that met the fault in ${breaks} failed`);
    for (const [i, stream] of streams.entries()) {
      const { bytes, isWhole } = await stream;
      t.ok(isWhole, `${voices[i]}, round ${round}`);
      // The length of these depends on the seed of the request.
      if (!/^(?:wren|(?:sherpa-)?piper)$/.test(voices[i]!))
        t.equal(bytes.length, expected.get(voices[i]!)!.length, `${voices[i]}: as many samples`);
    }
  }
  t.equal(deaths, voices.length, 'a thread died each time');
});
