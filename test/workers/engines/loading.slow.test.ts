/** Which packs a thread has loaded where there is no room for all, and the copies that they are loaded from. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { piperConfig, piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { limits } from '../../../src/limits.js';
import { wordSpans } from '../../../src/text/words.js';
import { unguarded } from '../../../src/threads/vitals.js';
import { VoicePackError, type VoicePack } from '../../../src/threads/voices.js';
import type {
  Engine,
  EngineMeans,
  LoadedVoices,
  PackHold,
  VoiceFormat,
} from '../../../workers/engines/engine.js';
import { DerivedFiles } from '../../../workers/engines/graph/derived.js';
import { LoadedPacks } from '../../../workers/engines/loaded.js';
import { piper } from '../../../workers/engines/piper/format.js';
import { loadPacks, readEntry } from '../../../workers/engines/registry.js';

const warnings: unknown[] = [];
const means: EngineMeans = {
  provider: 'cpu',
  native: unguarded,
  log: { debug: () => undefined, warn: (...line: unknown[]) => warnings.push(line) },
  bounds: limits,
};

/** A format that counts its loads. Pack NAME has the voice NAME. */
class CountingFormat implements VoiceFormat {
  readonly name = 'counting';
  readonly looksFor = 'nothing';
  readonly loaded = new Set<string>();
  readonly loads: string[] = [];
  /** Packs that were loaded again with what the first load had found out. */
  readonly known: string[] = [];
  loadedMost = 0;
  broken: string | null = null;

  recognises(): boolean {
    return false;
  }

  read(): Promise<never> {
    return Promise.reject(new Error('not used'));
  }

  async load(
    { name, voices }: VoicePack,
    { native, loading = native }: EngineMeans,
    measured?: unknown,
  ): Promise<Engine> {
    await loading(() => new Promise((resolve) => setImmediate(resolve)));
    if (this.broken === name) throw new VoicePackError(`${name}: broken`);
    this.loads.push(name);
    this.loaded.add(name);
    if (measured === `of ${name}`) this.known.push(name);
    this.loadedMost = Math.max(this.loadedMost, this.loaded.size);
    return {
      voices,
      executionProvider: 'cpu',
      measured: `of ${name}`,
      open: () => {
        throw new Error('not used');
      },
      release: () => {
        this.loaded.delete(name);
        return Promise.resolve();
      },
    };
  }
}

const shelfOf = async (names: readonly string[], loadedMax: number) => {
  const format = new CountingFormat();
  const packs = names.map((name): VoicePack => {
    const voices = [{ id: name, sampleRateHz: 16_000, language: 'en' }];
    return { engine: 'counting', name, voices, modelBytes: 0, openFiles: 0, data: null };
  });
  const shelf = new LoadedPacks(
    packs.map((pack) => [pack, format]),
    means,
    loadedMax,
  );
  await shelf.loadAll();
  const hold = (
    voiceId: string,
    {
      dueMs = 0,
      isCancelled = false,
      asStep,
    }: { dueMs?: number; isCancelled?: boolean; asStep?: () => void } = {},
  ) =>
    shelf.hold({
      voiceId,
      dueMs: () => dueMs,
      isCancelled: () => isCancelled,
      asStep: (_, run) => {
        asStep?.();
        return run();
      },
    });
  return { format, shelf, hold };
};

/** Whether a promise is settled by now. */
const isSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  let settled = false;
  void promise.finally(() => (settled = true)).catch(() => undefined);
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  return settled;
};

const release = (hold: PackHold | null) => hold?.release();

t.test(
  'a start loads each pack once and keeps the first ones, never more than there is room for',
  async (t) => {
    const { format } = await shelfOf(['default', 'a', 'b', 'c'], 3);
    t.strictSame([...format.loads].sort(), ['a', 'b', 'c', 'default']);
    t.strictSame([...format.loaded].sort(), ['a', 'b', 'default']);
    t.equal(format.loadedMost, 3);
  },
);

t.test('a start goes on without a pack that cannot be loaded, but not without the default one', async (t) => {
  const { format, shelf } = await shelfOf(['default', 'a', 'b'], 3);
  format.broken = 'b';
  const { engines, faults } = await shelf.loadAll();
  t.strictSame([engines.length, [...faults]], [2, [['b', 'b: broken']]]);
  format.broken = 'default';
  await t.rejects(shelf.loadAll(), { message: 'default: broken' });
});

t.test('the pack that was not used for the longest time makes room; the default pack stays', async (t) => {
  const { format, hold } = await shelfOf(['default', 'a', 'b', 'c'], 3);
  release(await hold('b'));
  release(await hold('a'));
  const parts: string[] = [];
  const held = await hold('c', { asStep: () => parts.push('step') });
  t.match(held, { load: { pack: 'c' } });
  t.ok(held!.load!.ms >= 0);
  t.strictSame(parts, ['step', 'step'], 'no model runs while graphs are freed or loaded');
  t.strictSame([...format.loaded].sort(), ['a', 'c', 'default']);
  release(held);
  release(await hold('b'));
  t.strictSame([...format.loaded].sort(), ['b', 'c', 'default']);
  t.strictSame(format.known, ['c', 'b'], 'a later load finds out nothing again');
  t.equal((await hold('default'))!.load, null);
});

t.test('a pack that speaks stays, and the job waits; the default voice does not', async (t) => {
  const { format, hold } = await shelfOf(['default', 'a', 'b'], 2);
  const speaking = await hold('a');
  const waiting = hold('b', { dueMs: 5 });
  t.notOk(await isSettled(waiting));
  release(await hold('default', { dueMs: 9 }));
  const later = hold('a', { dueMs: 7 });
  t.notOk(await isSettled(later), 'else the pack that speaks would never be free');
  release(await hold('a', { dueMs: 1 }));
  release(speaking);
  const held = await waiting;
  t.strictSame([...format.loaded].sort(), ['b', 'default']);
  t.notOk(await isSettled(later));
  release(held);
  release(await later);
  t.strictSame([...format.loaded].sort(), ['a', 'default']);
  t.equal(format.loadedMost, 2);
});

t.test('a loaded pack is held at once while another is being loaded', async (t) => {
  const { hold } = await shelfOf(['default', 'a', 'b', 'c'], 3);
  const order: string[] = [];
  release(await hold('a'));
  const loading = hold('c', { dueMs: 1 }).then(() => order.push('c'));
  await hold('a', { dueMs: 2 }).then(() => order.push('a'));
  await loading;
  t.strictSame(order, ['a', 'c']);
});

t.test('a cancelled job loads nothing; a pack that cannot be loaded fails its job only', async (t) => {
  const { format, hold } = await shelfOf(['default', 'a', 'b'], 2);
  const before = format.loads.length;
  t.equal(await hold('b', { isCancelled: true }), null);
  t.equal(format.loads.length, before);
  format.broken = 'b';
  await t.rejects(hold('b'), { message: 'b: broken' });
  release(await hold('a'));
  format.broken = null;
  t.match(await hold('b'), { load: { pack: 'b' } });
  await t.rejects(
    Promise.resolve().then(() => hold('nobody')),
    { message: /unknown voice/ },
  );
});

const piperPacks = async (t: Test, count: number) => {
  const folder = t.testdir();
  const derived = new DerivedFiles(join(folder, 'derived'));
  const packs: VoicePack[] = [];
  for (let seed = 1; seed <= count; seed++) {
    const path = join(folder, `v${seed}`);
    await writePiper(path, `v${seed}`, piperModel(smallShape, seed), piperConfig());
    packs.push((await readEntry({ name: `v${seed}`, path, files: null }, derived, [], [piper])).pack);
  }
  return { packs, folder: join(folder, 'derived') };
};

const text = 'We were all in the garden.';
const speak = async (voices: LoadedVoices, voiceId: string): Promise<Int16Array> => {
  const held = await voices.hold?.({
    voiceId,
    dueMs: () => 0,
    isCancelled: () => false,
    asStep: (_, run) => run(),
  });
  const segment = voices.open({
    ...{ text, words: wordSpans(text), before: '', after: '', seed: 3, utteranceSeed: 3 },
    settings: { voiceId, temperature: 1, normalizeText: false },
  });
  const samples: number[] = [];
  for (;;) {
    const chunk = await segment.step();
    if (chunk === null) break;
    samples.push(...chunk.pcm);
    if (chunk.last) break;
  }
  held?.release();
  return Int16Array.from(samples);
};

t.test('a voice that was unloaded sounds as before', async (t) => {
  const { packs } = await piperPacks(t, 3);
  const all = await loadPacks(packs, means, [piper]);
  t.equal(all.hold, undefined, 'where all are loaded, no job waits');
  const few = await loadPacks(packs, means, [piper], 2);
  t.equal(few.loadedPacks?.(), 2);
  for (const voice of ['v3', 'v2', 'v1', 'v3', 'v2']) {
    const samples = await speak(few, voice);
    t.ok(samples.some((sample) => Math.abs(sample) > 3_000));
    t.strictSame(samples, await speak(all, voice), voice);
    t.equal(few.loadedPacks?.(), 2);
  }
});

t.test(
  'graphs are loaded from optimised copies, which a load makes again when they are damaged',
  async (t) => {
    const { packs, folder } = await piperPacks(t, 1);
    const copies = async () => {
      const files = await readdir(folder, { recursive: true });
      return files.filter((file) => /optimised-\w+\/\w+\.onnx$/.test(file));
    };
    t.strictSame(await copies(), []);
    const first = await speak(await loadPacks(packs, means, [piper]), 'v1');
    const made = await copies();
    t.ok(made.length >= 3, 'a copy of each graph');
    t.strictSame(warnings, []);
    await writeFile(join(folder, made[0]!), 'damaged');
    const second = await speak(await loadPacks(packs, means, [piper]), 'v1');
    t.equal(second.length, first.length);
    t.ok(
      second.every((sample, at) => Math.abs(sample - first[at]!) <= 2),
      'the graphs themselves make the same sound',
    );
    t.match(warnings, [[{ pack: 'v1' }, /optimised copy/]]);
    warnings.length = 0;
    t.strictSame(await copies(), [], 'the damaged copies are gone');
    await loadPacks(packs, means, [piper]);
    t.strictSame(await copies(), made);
    t.strictSame(warnings, []);
  },
);
