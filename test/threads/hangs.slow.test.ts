/** Threads that hang in a step: the pool ends those that it can, leaves the others behind, and replaces both. */
import t from 'tap';
import { voicesByPack, voicesOf, type ScriptedVoices } from '../support/scripted-voices.js';
import {
  long,
  sentence,
  speak,
  start,
  startPlayed,
  untilIdle,
  untilWhole,
} from '../support/dispatch-bench.js';
import { SteppedWatchdog, steppedBounds } from '../support/stepped-watchdog.js';

t.jobs = 3;

const endMs = 30_000;
const hangs = { ending: 'failed', reason: 'its synthesis thread hangs', closes: 1 };

/** A dispatcher whose watchdog's time stands still until `untilFound`. */
const bench = async (
  options: Omit<Parameters<typeof start>[0] & object, 'voices' | 'watchdog'> & {
    voices?: ScriptedVoices;
    /** The threads are played. */
    isPlayed?: boolean;
  } = {},
) => {
  const { voices = voicesOf(['scripted']), bounds, isPlayed = false, ...others } = options;
  const watchdog = new SteppedWatchdog();
  const dispatcher = await (isPlayed ? startPlayed : start)({
    ...others,
    voices,
    watchdog,
    bounds: { ...steppedBounds, ...bounds },
  });
  /** Lets time pass until the watchdog found the thread of this text. */
  const untilFound = async (spoken: ReturnType<typeof speak>) => {
    let isOver = false;
    void spoken.then(() => (isOver = true));
    await voices.hung();
    await watchdog.passUntil(() => isOver);
    return spoken;
  };
  return { dispatcher, voices, watchdog, untilFound };
};

for (const marker of ['!spin', '!stuck'])
  t.test(
    `${marker}: a thread that hangs in JavaScript is ended, and its neighbours lose nothing`,
    async (t) => {
      const { dispatcher, voices, untilFound } = await bench({ isPlayed: marker === '!stuck' });
      const neighbours = Array.from({ length: 8 }, () => speak(dispatcher, long));
      t.match(await untilFound(speak(dispatcher, `${sentence}Then ${marker} it hangs.`)), hangs);
      for (const outcome of await Promise.all(neighbours))
        t.match(outcome, { ending: 'closed', letters: long, settled: long.length });
      await untilWhole(dispatcher);
      t.same(dispatcher.threads.faults(), []);
      t.same(dispatcher.threads.generations.warnings(), []);
      t.equal(dispatcher.threads.restarts.synthesis, 1);
      t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
      await untilIdle(dispatcher);
      const again = speak(dispatcher, `Now ${marker} it hangs.`);
      await voices.hung(2);
      t.ok(await dispatcher.close(1_000), 'a drain ends one that hangs');
      t.match(await again, { ending: 'failed', closes: 1 });
    },
  );

t.test('!inside: a thread that hangs in native code is replaced, with a warning', async (t) => {
  const { dispatcher, voices, untilFound } = await bench();
  const neighbours = Array.from({ length: 8 }, () => speak(dispatcher, long));
  t.match(await untilFound(speak(dispatcher, `${sentence}Then !inside it hangs.`)), hangs);
  for (const outcome of await Promise.all(neighbours))
    t.match(outcome, { ending: 'closed', letters: long, settled: long.length });
  await untilWhole(dispatcher);
  t.same(dispatcher.threads.faults(), [], 'no thread is missing');
  t.match(dispatcher.threads.generations.warnings(), [
    /1 synthesis threads hang inside a model run: restart/,
  ]);
  t.equal(dispatcher.threads.generations.status().hungThreads, 1);
  t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
  await untilIdle(dispatcher);
  t.notOk(await dispatcher.close(endMs), 'the process must end by signal');
  voices.letGo();
});

t.test('!inside: a thread that comes back after it was given up is ended and sends nothing', async (t) => {
  const { dispatcher, voices, untilFound } = await bench({
    threads: 1,
    bounds: { hungThreadsReplacedMax: 0 },
    isPlayed: true,
  });
  const neighbours = Array.from({ length: 3 }, () => speak(dispatcher, long));
  t.match(await untilFound(speak(dispatcher, `${sentence}Then !inside it hangs.`)), hangs);
  t.notOk(dispatcher.threads.isWhole);
  t.match(dispatcher.threads.faults(), [/were not replaced: restart/], 'it is not replaced');
  voices.letGo();
  for (const outcome of await Promise.all(neighbours))
    t.match(outcome, { ending: 'closed', letters: long, settled: long.length }, 'its successor speaks them');
  await untilWhole(dispatcher);
  t.same(dispatcher.threads.faults(), []);
  t.same(dispatcher.threads.generations.warnings(), []);
  t.ok(await dispatcher.close(endMs));
});

t.test(
  'a thread that dies in native code, or hangs between two steps, is replaced, and its pack stays',
  async (t) => {
    const voices = voicesByPack(['scripted', 'stranger']);
    const { dispatcher, watchdog } = await bench({ voices, bounds: { segmentRetriesMax: 0 } });
    t.match(await speak(dispatcher, 'Now !die-inside it dies.'), { ending: 'failed', closes: 1 });
    await untilWhole(dispatcher);
    const victim = speak(dispatcher, 'Now !late-spin it hangs.', false, 'stranger');
    await voices.hung();
    await watchdog.passUntil(() => dispatcher.threads.restarts.synthesis === 2);
    t.match(await victim, { ending: 'failed', reason: 'its synthesis threads kept ending' });
    t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
    t.same(dispatcher.voices.speakerIds, ['scripted', 'stranger']);
    t.equal(dispatcher.threads.generations.status().hungThreads, 0);
    t.ok(await dispatcher.close(endMs), 'a drain does not wait for the one that died');
  },
);

t.test(
  '!actor-spin: a hung actor thread fails its contexts, and its successor serves new ones',
  async (t) => {
    const { dispatcher, watchdog } = await bench({ isPlayed: true });
    const lost = Array.from({ length: 3 }, () => speak(dispatcher, long.repeat(20)));
    lost.push(speak(dispatcher, 'Now !actor-spin it hangs.', true));
    await watchdog.passUntil(() => dispatcher.threads.restarts.actor === 1);
    for (const outcome of await Promise.all(lost)) t.match(outcome, { ending: 'failed', closes: 1 });
    await untilWhole(dispatcher);
    t.equal(dispatcher.threads.restarts.actor, 1);
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.ok(await dispatcher.close(endMs));
  },
);
