/** What a load measures of the cost of speech. */
import t from 'tap';
import { measureCost } from '../../../workers/engines/steps.js';
import type { Engine, EngineChunk } from '../../../workers/engines/engine.js';
import { loadFrom, modelsDir } from '../../support/voices.js';

const RATE_HZ = 24_000;

const burn = (ms: number): void => {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  for (const endMs = cpuMs() + ms; cpuMs() < endMs;);
};

const pack = { voices: [{ id: 'ada', sampleRateHz: RATE_HZ, language: 'en' }] };

/** The first step of a sentence takes longer, and that of the first sentence longer still; each makes so much speech. */
const engineOf = (
  chunksMs: readonly number[],
  { compileMs = 0, firstMs = 0, stepMs = 0, executionProvider = 'cpu' } = {},
) => {
  const texts: string[] = [];
  const engine = {
    voices: pack.voices,
    executionProvider,
    open: ({ text }: { text: string }) => {
      texts.push(text);
      let at = 0;
      const step = (): Promise<EngineChunk | null> => {
        burn((at === 0 ? firstMs : stepMs) + (at === 0 && texts.length === 1 ? compileMs : 0));
        const chunkMs = chunksMs[at++];
        if (chunkMs === undefined) return Promise.resolve(null);
        const pcm = new Int16Array((RATE_HZ * chunkMs) / 1000);
        return Promise.resolve({ pcm, words: [], last: at === chunksMs.length });
      };
      return { step, sampleRateHz: RATE_HZ };
    },
  };
  return { engine: engine as unknown as Engine, texts };
};

t.test('the CPU time of a sentence, and of its first step; the first sentence compiles code', async (t) => {
  const { engine, texts } = engineOf([500, 500, 1_000], { compileMs: 60, firstMs: 40, stepMs: 20 });
  const cost = await measureCost(pack, engine);
  // A loaded machine takes more than what is burnt, and each step at least that.
  const allMs = (cost?.cpu ?? 0) * 2_000;
  t.ok(cost !== null && cost.beginMs >= 40 && cost.beginMs <= allMs - 40, `${cost?.beginMs} ms to begin`);
  t.ok(allMs >= 80 && allMs < 800, `${allMs} ms in all`);
  t.ok(cost !== null && cost.beginMs < 100, 'without the compilation');
  t.equal(texts.length, 2);
  t.ok(texts[0]!.length > 10, 'a sentence in the language of the voice');
  const slow = engineOf([1_000], { firstMs: 300 });
  await measureCost(pack, slow.engine);
  t.equal(slow.texts.length, 1, 'the load of a slow voice takes no longer');
});

t.test('on a GPU the time that passes is the cost', async (t) => {
  const { engine } = engineOf([1_000], { firstMs: 30, executionProvider: 'cuda' });
  const cost = await measureCost(pack, engine);
  t.ok(cost !== null && cost.cpu >= 0.03, `${cost?.cpu}`);
});

t.test('a pack without a voice, or a voice that says nothing, has no figure', async (t) => {
  t.equal(await measureCost({ voices: [] }, engineOf([500]).engine), null);
  t.equal(await measureCost(pack, engineOf([]).engine), null);
});

t.test('a load measures the voices of each pack that it loads, if it is asked to', async (t) => {
  const plain = await loadFrom(modelsDir);
  t.same([...(plain.costs ?? [])], []);
  const measured = await loadFrom(modelsDir, { measuresCosts: true });
  t.ok(measured.voices.length > 0);
  for (const { id } of measured.voices) {
    const cost = measured.costs?.get(id);
    // Some systems count CPU time in ticks: a step can cost nothing, a sentence cannot.
    t.ok(cost !== undefined && cost.cpu > 0.001 && cost.cpu < 2, `${id}: ${cost?.cpu}`);
    t.ok(
      cost !== undefined && cost.beginMs >= 0 && cost.beginMs < 5_000,
      `${id}: ${cost?.beginMs} ms to begin`,
    );
  }
});
