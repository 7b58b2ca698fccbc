/** The samples of voices in the console. */
import t from 'tap';
import { Samples } from '../../src/console/samples.js';
import { InstalledVoices } from '../../src/console/voices.js';
import { limits } from '../../src/limits.js';
import { sampleSentence } from '../../src/text/sample-sentences.js';
import type { VoicePack } from '../../src/threads/voices.js';
import { FakeSpeech } from '../support/fake-speech.js';

const packOf = (name: string, language: string, sample?: string): VoicePack => ({
  ...{ engine: 'piper', name, voices: [{ id: name, sampleRateHz: 22_050, language }] },
  ...{ modelBytes: 1, openFiles: 1, data: null, ...(sample !== undefined && { sample }) },
});

t.test('a voice says what its pack can speak, or the sentence of its language', async (t) => {
  const packs = [packOf('klaus', 'de-DE'), packOf('marko', 'mk-MK', 'абвгд')];
  const voices = new InstalledVoices({
    generation: () => ({ number: 1, packs, findings: [] }),
    speechCpu: () => new Map(),
    reload: { isRunning: false, last: null, request: () => undefined },
  });
  const speech = new FakeSpeech();
  const samples = new Samples({ speech, textFor: (id) => voices.sampleTextOf(id), bounds: limits });
  t.ok((await samples.of('klaus')).length > 0);
  t.equal(speech.last.text, sampleSentence('de'));
  await samples.of('marko');
  t.equal(speech.last.text, 'абвгд');
  t.equal(speech.last.options.settings.voiceId, 'marko');
  await samples.of('marko');
  t.equal(speech.contexts.length, 2, 'it is made once');
  await t.rejects(samples.of('nobody'), { code: 'notFound' });
});
