/** Threads that hang in mid-utterance: what can be ended is, what cannot is left behind, and both are replaced. */
import t from 'tap';
import { voicesOf } from '../support/scripted-voices.js';
import { long, sentence, speak, start, until, untilIdle, untilWhole } from '../support/dispatch-bench.js';

// They wait, each for its own threads.
t.jobs = 6;

/** Long enough for a thread that only waits for the processor, short enough for a test. */
const bounds = { threadHangMsMax: 2_500, watchdogBeatMs: 100 };
/** Twice as long as a thread may hang. */
const endMs = 5_000;

for (const marker of ['!spin', '!stuck'])
  t.test(`${marker}: hangs in JavaScript; the thread is ended, its neighbours lose nothing`, async (t) => {
    const dispatcher = await start({ bounds });
    const neighbours = Array.from({ length: 8 }, () => speak(dispatcher, long));
    const victim = await speak(dispatcher, `${sentence}Then ${marker} it hangs.`);
    t.match(victim, { ending: 'failed', reason: 'its synthesis thread hangs', closes: 1 });
    for (const outcome of await Promise.all(neighbours))
      t.match(outcome, { ending: 'closed', letters: long, settled: long.length });
    await untilWhole(dispatcher);
    t.same(dispatcher.faults(), []);
    t.same(dispatcher.generations.warnings(), []);
    t.equal(dispatcher.restarts.synthesis, 1);
    t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
    await untilIdle(dispatcher);
    t.ok(await dispatcher.close(endMs));
  });

t.test(
  '!inside: hangs in native code; another thread takes its place, and the operator is told',
  async (t) => {
    const voices = voicesOf(['scripted']);
    const dispatcher = await start({ bounds, voices });
    const neighbours = Array.from({ length: 8 }, () => speak(dispatcher, long));
    const victim = await speak(dispatcher, `${sentence}Then !inside it hangs.`);
    t.match(victim, { ending: 'failed', reason: 'its synthesis thread hangs', closes: 1 });
    for (const outcome of await Promise.all(neighbours))
      t.match(outcome, { ending: 'closed', letters: long, settled: long.length });
    await untilWhole(dispatcher);
    t.same(dispatcher.faults(), [], 'as many threads as before');
    t.match(dispatcher.generations.warnings(), [/1 synthesis threads hang inside a model run: restart/]);
    t.equal(dispatcher.generations.status().hungThreads, 1);
    t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
    await untilIdle(dispatcher);
    t.notOk(await dispatcher.close(endMs), 'the process must end by signal');
    voices.letGo();
  },
);

t.test('!inside, and comes back after it was given up: it is ended and says no more', async (t) => {
  const voices = voicesOf(['scripted']);
  const dispatcher = await start({ threads: 1, voices, bounds: { ...bounds, hungThreadsReplacedMax: 0 } });
  const neighbours = Array.from({ length: 3 }, () => speak(dispatcher, long));
  const victim = await speak(dispatcher, `${sentence}Then !inside it hangs.`);
  t.match(victim, { ending: 'failed', reason: 'its synthesis thread hangs', closes: 1 });
  t.notOk(dispatcher.isWhole);
  t.match(dispatcher.faults(), [/were not replaced: restart/], 'one too many');
  voices.letGo();
  for (const outcome of await Promise.all(neighbours))
    t.match(outcome, { ending: 'closed', letters: long, settled: long.length }, 'spoken when it was back');
  await untilWhole(dispatcher);
  t.same(dispatcher.faults(), []);
  t.same(dispatcher.generations.warnings(), []);
  t.ok(await dispatcher.close(endMs));
});

t.test('a drain meets a thread that hangs', async (t) => {
  const dispatcher = await start({ threads: 1, bounds: { ...bounds, threadHangMsMax: 60_000 } });
  const spinning = speak(dispatcher, 'Now !spin it hangs.');
  await until(() => dispatcher.runningSegments === 1);
  // Past its first step.
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.ok(await dispatcher.close(2_000), 'in JavaScript it is ended');
  t.match(await spinning, { ending: 'failed', closes: 1 });
});

t.test(
  '!actor-spin: the contexts of an actor thread that hangs end with an error, new ones are served',
  async (t) => {
    const dispatcher = await start({ bounds });
    const lost = Array.from({ length: 3 }, () => speak(dispatcher, long.repeat(20)));
    lost.push(speak(dispatcher, 'Now !actor-spin it hangs.', true));
    for (const outcome of await Promise.all(lost)) t.match(outcome, { ending: 'failed', closes: 1 });
    await untilWhole(dispatcher);
    t.equal(dispatcher.restarts.actor, 1);
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.ok(await dispatcher.close(endMs));
  },
);
