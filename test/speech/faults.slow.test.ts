/** Threads that die in mid-utterance. */
import t from 'tap';
import type { SpeechContext } from '../../src/speech/speech.js';
import type { Frame } from '../../src/threads/messages.js';
import { recordingLog, type LogLine } from '../support/front-server.js';
import {
  lease,
  long,
  optionsOf,
  sentence,
  speak,
  start,
  startPlayed,
  untilIdle,
  untilWhole,
} from '../support/dispatch-bench.js';
import { longVoice, voicesOf } from '../support/scripted-voices.js';
import { eventually } from '../support/waiting.js';
import { opened } from '../support/fake-speech.js';

t.test('a text is spoken letter for letter, charged, and its lease closed once', async (t) => {
  const dispatcher = await startPlayed();
  const outcome = await speak(dispatcher, long);
  t.match(outcome, { ending: 'closed', letters: long, settled: long.length, closes: 1 });
  t.equal(dispatcher.openContexts, 0);
  t.ok(await dispatcher.close(30_000));
  t.ok(await dispatcher.close(30_000), 'closing again does nothing');
});

for (const [threads, begin, markers] of [
  ['played threads', startPlayed, ['!throw', '!exit']],
  // What only threads of their own can suffer.
  ['threads', start, ['!reject-late', '!heap']],
] as const)
  t.test(`${threads}: a fault fails its own utterance only, and the pool is whole again`, async (t) => {
    const dispatcher = await begin();
    for (const marker of markers) {
      const neighbours = Array.from({ length: 6 }, () => speak(dispatcher, long));
      const victim = await speak(dispatcher, `${sentence}Then ${marker} it breaks.`);
      t.match(victim, { ending: 'failed', closes: 1 }, marker);
      t.ok(sentence.startsWith(victim.letters.slice(0, 20)), 'what it said before was right');
      for (const outcome of await Promise.all(neighbours))
        t.match(
          outcome,
          { ending: 'closed', letters: long, settled: long.length },
          'a neighbour lost nothing',
        );
      await untilWhole(dispatcher);
      t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
      t.equal(dispatcher.openContexts, 0);
      await untilIdle(dispatcher);
    }
    t.equal(dispatcher.threads.restarts.synthesis, markers.length - (begin === startPlayed ? 1 : 0));
    t.ok(await dispatcher.close(30_000));
  });

t.test('a segment that kills its thread does not run again', async (t) => {
  const dispatcher = await startPlayed({ threads: 1 });
  const outcome = await speak(dispatcher, 'Just !exit now.');
  t.equal(outcome.ending, 'failed');
  await untilWhole(dispatcher);
  t.ok(dispatcher.threads.isWhole, 'one death, one replacement');
  t.ok(await dispatcher.close(30_000));
});

for (const marker of ['!actor-exit', '!actor-throw'])
  t.test(
    `${marker}: the contexts of an actor thread that dies end with an error, new ones are served`,
    async (t) => {
      const dispatcher = await startPlayed();
      const lost = Array.from({ length: 3 }, () => speak(dispatcher, long));
      lost.push(speak(dispatcher, `Now ${marker} it breaks.`, true));
      for (const outcome of await Promise.all(lost)) t.match(outcome, { ending: 'failed', closes: 1 });
      // The jobs can fail before the front thread knows that the thread ended.
      await eventually(() => dispatcher.threads.restarts.actor === 1);
      await untilWhole(dispatcher);
      t.ok(dispatcher.threads.isWhole);
      t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
      t.ok(await dispatcher.close(30_000));
    },
  );

t.test('a segment runs again after each death in a step of another one', async (t) => {
  const dispatcher = await startPlayed({ threads: 1, bounds: { segmentRetriesMax: 0 } });
  const text = `${sentence.slice(0, 40)} !slow`;
  const bystander = speak(dispatcher, text);
  for (let i = 0; i < 3; i++) t.match(await speak(dispatcher, 'Just !exit now.'), { ending: 'failed' });
  t.match(await bystander, { ending: 'closed', letters: text });
  t.ok(await dispatcher.close(30_000));
});

t.test('a segment whose threads die in no step runs again a few times, not for ever', async (t) => {
  const dispatcher = await startPlayed({ threads: 1, bounds: { segmentRetriesMax: 1 } });
  t.match(await speak(dispatcher, 'Just !late-exit now.'), {
    ending: 'failed',
    reason: 'its synthesis threads kept ending',
  });
  await eventually(() => dispatcher.threads.restarts.synthesis === 2);
  await untilWhole(dispatcher);
  t.match(await speak(dispatcher, 'After that.'), { ending: 'closed', letters: 'After that.' });
  t.ok(await dispatcher.close(30_000));
});

t.test('a frame of a context that never was is logged, and changes nothing', async (t) => {
  const lines: LogLine[] = [];
  const dispatcher = await startPlayed({ log: recordingLog(lines) });
  const outcome = await speak(dispatcher, 'Now !actor-stray it goes on.', true);
  t.match(outcome, { ending: 'closed', letters: 'Now !actor-stray it goes on.' });
  t.match(
    lines.filter(({ level }) => level === 'error'),
    [{ message: /a context that it never had/, fields: { contextId: 2 ** 20, type: 'closed' } }],
  );
  t.ok(await dispatcher.close(30_000));
});

t.test('a fault of an actor reaches the log, also when its context is over', async (t) => {
  const lines: LogLine[] = [];
  const dispatcher = await startPlayed({ log: recordingLog(lines) });
  const outcome = await speak(dispatcher, 'Now !actor-fails-twice it ends.', true);
  t.match(outcome, { ending: 'failed', reason: 'scripted fault' }, 'the transport logs this one');
  await eventually(() => lines.some(({ level }) => level === 'error'));
  t.match(
    lines.filter(({ level }) => level === 'error'),
    [{ message: 'a context failed after its end', fields: { reason: 'scripted fault' } }],
  );
  t.ok(await dispatcher.close(30_000));
});

t.test('a job is cancelled between two steps', async (t) => {
  const dispatcher = await startPlayed({ threads: 1 });
  const first = Promise.withResolvers<undefined>();
  const { account, granted } = lease();
  const context = opened(dispatcher.open(optionsOf(granted), () => first.resolve(undefined)));
  // 200 steps of 200 ms.
  context.append(`!slow ${'a'.repeat(990)}.`);
  context.end();
  await first.promise;
  const releasedMs = performance.now();
  context.release();
  await untilIdle(dispatcher);
  t.ok(performance.now() - releasedMs < 20_000, 'long before the last step');
  t.equal(dispatcher.scheduler.runningSegments, 0);
  t.equal(account.closed, 1);
  t.ok(await dispatcher.close(30_000));
});

t.test('the end of a context ends its job, however long a step of it takes', async (t) => {
  const voices = voicesOf([longVoice]);
  // No watchdog ends the step.
  const bounds = { threadHangMsMax: 600_000 };
  const dispatcher = await startPlayed({ threads: 1, voices, bounds });
  const { granted } = lease();
  const context = opened(dispatcher.open(optionsOf(granted, false, longVoice), () => undefined));
  context.append('!inside, the second step waits.');
  context.end();
  await voices.hung();
  context.release();
  await untilIdle(dispatcher);
  t.equal(dispatcher.scheduler.runningSegments, 0, 'its step still runs');
  voices.letGo();
  t.ok(await dispatcher.close(30_000));
});

t.test('a fault on the front thread while a segment starts ends its own context', async (t) => {
  const dispatcher = await startPlayed();
  const neighbour = speak(dispatcher, long);
  const { granted } = lease();
  const frames: Frame[] = [];
  const broken = {
    ...optionsOf(granted),
    settings: {
      ...optionsOf(granted).settings,
      get normalizeText(): boolean {
        throw new TypeError('scripted fault');
      },
    },
  };
  const context = opened(dispatcher.open(broken, (frame) => frames.push(frame)));
  context.append(long);
  context.end();
  t.match(frames, [{ type: 'failed', reason: /TypeError/ }]);
  context.release();
  t.match(await neighbour, { ending: 'closed', letters: long });
  await untilIdle(dispatcher);
  t.equal(dispatcher.scheduler.runningSegments, 0);
  t.equal(dispatcher.openContexts, 0);
  t.ok(await dispatcher.close(30_000));
});

t.test(
  'a context that is released while it speaks sends nothing more and leaves nothing running',
  async (t) => {
    const dispatcher = await startPlayed();
    const { account, granted } = lease();
    let frames = 0;
    const first = Promise.withResolvers<undefined>();
    const context = opened(
      dispatcher.open(optionsOf(granted), () => {
        frames++;
        first.resolve(undefined);
      }),
    );
    context.append(long.repeat(20));
    context.end();
    await first.promise;
    context.release();
    const seen = frames;
    t.equal(account.closed, 1, 'the slot is free at once');
    t.equal(dispatcher.openContexts, 0);
    await untilIdle(dispatcher);
    t.equal(dispatcher.scheduler.runningSegments, 0);
    t.equal(frames, seen);
    t.ok(account.settled < long.length, 'only what was handed over is charged');
    t.ok(await dispatcher.close(30_000));
  },
);

t.test('an account has half of the contexts that the others leave, until its own are released', async (t) => {
  const dispatcher = await startPlayed({ bounds: { contextsMax: 40 } });
  const openOf = (account: string) =>
    dispatcher.open(optionsOf({ ...lease().granted, account }), () => undefined);
  const fill = (account: string): SpeechContext[] => {
    for (const taken: SpeechContext[] = []; ;) {
      const context = openOf(account);
      if (typeof context !== 'string') taken.push(context);
      else {
        t.equal(context, 'contextsOfAccountExhausted');
        return taken;
      }
    }
  };
  const [greedy, next] = [fill('greedy'), fill('next')];
  t.strictSame([greedy.length, next.length], [20, 10]);
  const context = opened(openOf('newcomer'));
  for (const taken of greedy.splice(0, 10)) taken.release();
  t.equal(fill('greedy').length, 4, 'half of 29');
  context.release();
  t.ok(await dispatcher.close(30_000));
});
