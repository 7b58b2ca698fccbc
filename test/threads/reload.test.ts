/** Reloads that are asked for while one runs, over generations that only count. */
import t from 'tap';
import { createLog } from '../../src/log.js';
import { limits } from '../../src/limits.js';
import { VoiceReload, type VoiceReloadParts } from '../../src/threads/reload.js';
import { eventually } from '../support/waiting.js';
import { voicesOf } from '../support/scripted-voices.js';

t.test('files that change while they are read are read once more', async (t) => {
  const reads: (() => void)[] = [];
  const voices = voicesOf(['ada']);
  const status = { contextsOfOlderVoices: 0, generation: 1, executionProviders: ['cpu'] };
  const generations = {
    ...{ settled: () => Promise.resolve(), load: () => Promise.resolve(true) },
    ...{ status: () => status, current: { voices: { speakerIds: ['ada'] } } },
  } as unknown as VoiceReloadParts['generations'];
  const reload = new VoiceReload({
    generations,
    read: () => new Promise((resolve) => reads.push(() => resolve(voices))),
    log: createLog('silent', limits),
  });
  reload.request();
  await eventually(() => reads.length === 1);
  reload.request();
  reload.request();
  reads[0]!();
  await eventually(() => reads.length === 2);
  reads[1]!();
  await eventually(() => !reload.isRunning);
  t.equal(reads.length, 2);
});
