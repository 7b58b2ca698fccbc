/** When a context asks whether the machine has capacity: before words that nobody counted yet, and never for a listener who is served. */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { OneByOne } from '../../src/slices.js';
import { Context } from '../../src/speech/context.js';
import { ContextMeter } from '../../src/speech/playback.js';
import { Scheduler } from '../../src/speech/scheduler.js';
import type { ContextOptions } from '../../src/speech/speech.js';
import type { ActorThreads } from '../../src/threads/actor-threads.js';
import type { Generations } from '../../src/threads/generations.js';

const createContext = () => {
  const time = { nowMs: 0 };
  /** Units of text for which the context asked. */
  const asked: number[] = [];
  const job = {
    outcome: new Promise(() => undefined),
    cancel: () => undefined,
    setPlayFrom: () => undefined,
  };
  const voices = { speakerIds: ['ada'], sampleRateHz: () => 1_000, language: () => 'en-US' };
  const generation = { number: 1, voices, pool: { run: () => job } };
  const generations = { enter: () => generation, leave: () => undefined, isCurrent: () => true };
  const options: ContextOptions = {
    lease: {
      account: 'default',
      settle: () => undefined,
      heard: () => undefined,
      close: () => undefined,
      void: () => undefined,
    },
    group: {},
    settings: { voiceId: 'ada', temperature: 1, normalizeText: false },
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
    framing: 'socket',
    timestamps: false,
  };
  const clock = () => time.nowMs;
  const context = new Context({
    id: 1,
    options,
    sink: () => undefined,
    scheduler: new Scheduler({ clock, threads: 1, jobsMax: 8, bounds: limits }),
    generations: generations as unknown as Generations,
    actors: { send: () => undefined } as unknown as ActorThreads,
    bounds: limits,
    meter: new ContextMeter(new Metrics(), clock, options),
    log: { error: () => undefined },
    later: new OneByOne(),
    admits: ({ textUnits }) => {
      asked.push(textUnits);
      return false;
    },
    lexicons: () => [],
    onOver: () => undefined,
  });
  return { asked, context, time };
};

t.test('a context without text asks, also while a flush of nothing is answered', (t) => {
  const { asked, context } = createContext();
  t.equal(context.admits(5), false);
  context.flush('f');
  t.equal(context.activity, 'speaking');
  t.equal(context.admits(7), false);
  t.strictSame(asked, [5, 7]);
  t.end();
});

t.test(
  'words that follow at once are admitted with the first; after a pause it asks for all that is held',
  (t) => {
    const { asked, context, time } = createContext();
    context.append('Well, ');
    time.nowMs = 100;
    t.equal(context.admits(3), true);
    time.nowMs = 5_000;
    t.equal(context.admits(3), false);
    t.strictSame(asked, [9]);
    t.end();
  },
);

t.test('a listener whose speech is being made or played goes on without a question', (t) => {
  const { asked, context, time } = createContext();
  context.append('This is a whole sentence of some length. And');
  t.equal(context.admits(10), true, 'it is being made');
  context.deliver({ type: 'audio', contextId: 1, segment: 0, durationMs: 3_000, bytes: Buffer.alloc(1) });
  time.nowMs = 2_000;
  t.equal(context.admits(10), true, 'it is being played');
  t.strictSame(asked, []);
  t.end();
});
