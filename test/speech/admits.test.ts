/** When a context asks whether the machine has capacity: before words that nobody counted yet, and never for a listener who is served. */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog, type Log } from '../../src/log.js';
import { Metrics } from '../../src/metrics.js';
import { OneByOne } from '../../src/slices.js';
import { Context } from '../../src/speech/context.js';
import { Costs } from '../../src/speech/costs.js';
import { Scheduler } from '../../src/speech/scheduler.js';
import type { ContextOptions } from '../../src/speech/speech.js';
import { aheadMs, Utterances } from '../../src/speech/utterances.js';
import type { ActorCommand, Framing } from '../../src/threads/messages.js';
import type { ActorThreads } from '../../src/threads/actor-threads.js';
import type { JobOutcome } from '../../src/threads/synthesis-thread.js';
import { ClockTable } from '../../src/threads/playback-clock.js';
import type { Generations } from '../../src/threads/generations.js';
import { lease, optionsOf, startPlayed, untilIdle } from '../support/dispatch-bench.js';
import { opened } from '../support/fake-speech.js';

const createContext = (framing: Framing = 'socket') => {
  /** `readMs`: what each look at the clock takes. */
  const time = { nowMs: 0, readMs: 0 };
  /** `hasRoom`: what a listener hears who had left the load. */
  const machine = { hasRoom: true };
  /** Commands to the actor, and frames to the transport. */
  const sent: string[] = [];
  const frames: string[] = [];
  /** Units of text for which the context asked. */
  const asked: number[] = [];
  const { promise: outcome, resolve: finish } = Promise.withResolvers<JobOutcome>();
  /** Jobs that were cancelled, and code points that were charged. */
  const ends = { cancelled: 0, charged: 0 };
  const job = { outcome, cancel: () => (ends.cancelled += 1), setStart: () => undefined };
  const voices = { speakerIds: ['ada'], sampleRateHz: () => 1_000, language: () => 'en-US' };
  const generation = { number: 1, voices, pool: { run: () => job } };
  const generations = { enter: () => generation, leave: () => undefined, current: generation };
  const options: ContextOptions = {
    lease: {
      account: 'default',
      settle: (characters) => (ends.charged += characters),
      delivered: () => undefined,
      close: () => undefined,
      void: () => undefined,
    },
    group: {},
    settings: { voiceId: 'ada', temperature: 1, normalizeText: false },
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
    framing,
    timestamps: false,
  };
  const clock = () => (time.nowMs += time.readMs);
  const clocks = new ClockTable(2);
  const scheduler = new Scheduler({ clock, clocks, threads: 1, jobsMax: 8, bounds: limits });
  const context = new Context({
    id: 1,
    options,
    sink: (frame) => frames.push(frame.type),
    scheduler,
    generations: generations as unknown as Generations,
    actors: { send: ({ type }: ActorCommand) => sent.push(type) } as unknown as ActorThreads,
    bounds: limits,
    clocks,
    metrics: new Metrics(),
    log: { error: () => undefined },
    later: new OneByOne(),
    returns: () => machine.hasRoom,
    admits: ({ pieces, uncutMs = 0 }) => {
      asked.push(pieces.reduce((sum, { text }) => sum + text.length, 0) + uncutMs / 70);
      return false;
    },
    lexicons: () => [],
    onOver: () => undefined,
    onReleased: () => undefined,
  });
  return { asked, clocks, context, ends, finish, frames, machine, scheduler, sent, time };
};

/** A frame of the first segment. */
const audio = {
  type: 'audio',
  contextId: 1,
  segment: 0,
  durationMs: 1_500,
  bytes: Buffer.alloc(1),
} as const;

t.test('a flush of nothing is answered at once, and the actor does not hear of it', (t) => {
  const { context, frames, sent } = createContext();
  for (const flushId of ['one', 'two']) context.flush(flushId);
  t.strictSame([frames, sent], [['flushed', 'flushed'], ['open']]);
  context.append('Hi.');
  context.flush('three');
  context.flush('four');
  t.strictSame(sent, ['open', 'segment', 'flush', 'flush'], 'but after text flushes keep their order');
  t.equal(frames.length, 2);
  t.end();
});

t.test('a release gives the playback clock back, once', (t) => {
  const { clocks, context } = createContext();
  t.equal(clocks.free, 1);
  context.release();
  context.release();
  t.equal(clocks.free, 2);
  t.end();
});

t.test('a release cancels the job that runs, once', (t) => {
  const { context, ends } = createContext();
  context.append('This is a whole sentence of some length. And');
  t.equal(context.schedule.running.length, 1);
  context.release();
  context.release();
  t.equal(ends.cancelled, 1);
  t.end();
});

t.test('a whole result is charged when it is complete: a client that leaves before pays nothing', (t) => {
  for (const [framing, charged] of [
    ['stream', 41],
    ['whole', 0],
  ] as const) {
    const { context, ends } = createContext(framing);
    context.append('This is a whole sentence of some length. And another one.');
    context.deliver(audio);
    context.handed(audio);
    context.release();
    t.equal(ends.charged, charged, framing);
  }
  t.end();
});

t.test('a text of thousands of pieces is cut in slices, as one without markup', (t) => {
  const { context, time } = createContext();
  const pieces = Array.from({ length: 3_000 }, () => [{ text: 'a', form: { spelling: 'b' } }, { text: ' ' }]);
  time.readMs = 1;
  context.append('a '.repeat(3_000), pieces.flat());
  t.ok(time.nowMs <= 12, `the clock was read ${time.nowMs} times, once for each piece that was cut`);
  t.equal(context.activity, 'speaking', 'the others wait');
  context.release();
  t.end();
});

t.test('text that waits for its turn to be cut counts, so that a burst is not undercounted', (t) => {
  const { context, time } = createContext();
  time.readMs = limits.sliceMsMax + 1;
  context.append('a'.repeat(100));
  time.readMs = 0;
  t.match(context.demandNow(), { isAwaiting: true });
  t.ok(context.demandNow()!.remainingMs > 5_000, `${context.demandNow()!.remainingMs} ms`);
  context.release();
  t.equal(context.demandNow(), null);
  t.end();
});

t.test('a context without words asks, also while a flush of white space is answered', (t) => {
  const { asked, context } = createContext();
  t.equal(context.admits('aaaaa'), false);
  context.append(' ');
  t.equal(context.demandNow(), null, 'white space alone is no demand');
  context.flush('f');
  t.equal(context.activity, 'speaking');
  t.equal(context.admits('aaaaaaa'), false);
  t.strictSame(asked, [5, 7]);
  t.end();
});

t.test(
  'held words ask each time until some of them are spoken, and take nothing from others meanwhile',
  (t) => {
    const { asked, context, time } = createContext();
    for (const text of ['a', 'a'.repeat(24) + ' '.repeat(15), ' ', ' b']) {
      t.equal(context.admits(text), false);
      context.append(text);
      t.equal(context.demandNow(), null);
      time.nowMs += 500;
    }
    t.equal(context.activity, 'holding');
    t.strictSame(asked, [1, 40, 41, 43]);
    t.end();
  },
);

t.test(
  'an utterance that pauses goes on for a second after its listener ran dry; then it asks again',
  async (t) => {
    const { asked, context, finish, time } = createContext();
    context.append('This is a whole sentence of some length. And');
    const audio = { type: 'audio', contextId: 1, segment: 0, durationMs: 1_500 } as const;
    context.deliver({ ...audio, bytes: Buffer.alloc(1) });
    context.handed({ ...audio, bytes: Buffer.alloc(1) });
    finish({ type: 'done', samples: 1_500, effort: { startedMs: 0, computeMs: 15 } });
    await setImmediate();
    context.deliver({ type: 'spoken', contextId: 1, segment: 0 });
    for (const [nowMs, isServed, isCounted] of [
      [900, true, true],
      [1_100, true, false],
      [2_400, true, false],
      [2_600, false, false],
    ] as const) {
      time.nowMs = nowMs;
      context.append(' ');
      t.equal(context.admits('a'), isServed, `after ${nowMs} ms`);
      t.equal(context.demandNow() !== null, isCounted, `its words count, after ${nowMs} ms`);
    }
    t.equal(asked.length, 1);
  },
);

t.test('a listener whose speech is being made or played goes on without a question', (t) => {
  const { asked, context, time } = createContext();
  context.append('This is a whole sentence of some length. And');
  t.equal(context.admits('aaaaaaaaaa'), true, 'it is being made');
  context.deliver({ type: 'audio', contextId: 1, segment: 0, durationMs: 3_000, bytes: Buffer.alloc(1) });
  time.nowMs = 2_000;
  t.equal(context.admits('aaaaaaaaaa'), true, 'it is being played');
  t.strictSame(asked, []);
  t.end();
});

t.test('text that is long to say counts with its spoken form as soon as it is being made', (t) => {
  for (const [text, form, leastMs] of [
    ['one two six', undefined, 500],
    ['999999999999 9999999999', undefined, 12_000],
    ['\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c', undefined, 1_200],
    ['qq', { spelling: 'nine hundred '.repeat(15).trim() }, 12_000],
  ] as const) {
    const { context } = createContext();
    context.append(text, [{ text, ...(form !== undefined && { form }) }]);
    context.flush('f');
    const { remainingMs } = context.demandNow()!;
    t.ok(remainingMs > leastMs && remainingMs < 2 * leastMs, `${text}: ${remainingMs} ms`);
    t.equal(context.schedule.audio.ms, remainingMs, 'and so for the bounds of unsent audio');
    context.release();
  }
  t.end();
});

t.test('a segment longer than its estimate counts until it is complete', async (t) => {
  const { context, finish, time } = createContext();
  context.append('Remember it.');
  context.flush('f');
  const audio = { type: 'audio', contextId: 1, segment: 0, durationMs: 300, bytes: Buffer.alloc(1) } as const;
  for (let arrivedMs = 300; arrivedMs <= 12_000; arrivedMs += 300) {
    time.nowMs = arrivedMs;
    context.deliver(audio);
    const { remainingMs } = context.demandNow()!;
    if (arrivedMs > 840) t.equal(remainingMs, 2_000, `at ${arrivedMs} ms`);
    t.ok(context.schedule.audio.ms >= arrivedMs, 'no audio is missing from the bounds');
  }
  finish({ type: 'done', samples: 12_000, effort: { startedMs: 0, computeMs: 15 } });
  await setImmediate();
  t.equal(context.demandNow(), null);
  t.equal(context.schedule.audio.ms, 12_000);
  context.release();
});

t.test('a text that is long to say is divided between its words', (t) => {
  const { context, sent } = createContext();
  const form = { spelling: 'nine hundred '.repeat(15).trim() };
  const pieces = Array.from({ length: 60 }, () => [{ text: 'qq', form }, { text: ' ' }]).flat();
  context.append('qq '.repeat(60), pieces);
  context.end();
  t.equal(sent.filter((type) => type === 'segment').length, 1, 'one segment runs');
  const [first] = context.schedule.running;
  t.ok(first!.expectedMs > 10_000 && first!.expectedMs <= 400 * 70, 'and makes no minutes');
  context.release();
  t.end();
});

t.test('each part of a divided segment has its own words and forms, and the charges add up', (t) => {
  const options = { ...optionsOf(lease().granted), framing: 'stream' as const };
  const utterances = new Utterances(limits, options, 'en-US', () => []);
  const form = { spelling: 'nine hundred '.repeat(15).trim() };
  for (let word = 0; word < 8; word++) {
    utterances.append('qq', { form });
    utterances.append(' ');
  }
  utterances.append('ab '.repeat(20).trim());
  utterances.end();
  const parts = [];
  for (let cut = utterances.cut(); cut !== null; cut = utterances.cut())
    parts.push(...cut.map(({ request }) => request));
  const written = `${'qq '.repeat(8)}${'ab '.repeat(20).trim()}`;
  t.ok(parts.length > 3);
  t.equal(parts.map(({ text }) => text).join(''), written);
  for (const { text, words, spoken = [] } of parts) {
    const replaced = spoken.map(({ first }) => text.slice(words[first]?.start, words[first]?.end));
    t.strictSame(replaced, text.match(/qq/g) ?? [], text);
  }
  t.equal(utterances.charge(parts.length), written.length);
  t.end();
});

t.test('a word that is longer than several divided segments stays one word', (t) => {
  const utterances = new Utterances(limits, optionsOf(lease().granted), 'en-US', () => []);
  utterances.append('9'.repeat(3 * limits.segmentCharactersMax));
  utterances.end();
  const goesOn = [];
  for (let cut = utterances.cut(); cut !== null; cut = utterances.cut())
    goesOn.push(...cut.map(({ tokenContinues }) => tokenContinues));
  t.ok(goesOn.length > 6, `${goesOn.length} parts`);
  t.strictSame(
    goesOn,
    goesOn.map((_, part) => part < goesOn.length - 1),
  );
  t.end();
});

t.test('what waits behind text that was cut in part is cut, or dropped, as it came', (t) => {
  const utterances = new Utterances(limits, optionsOf(lease().granted), 'en-US', () => []);
  const text = 'ab '.repeat(400);
  for (let count = 0; count < 3; count++) utterances.append(text, { pauseMs: 10 });
  utterances.flush('f');
  utterances.append('dropped');
  let spoken = '';
  const cut = (): boolean => {
    const segments = utterances.cut();
    for (const { request } of segments ?? []) spoken += request.pauseMs?.toString() ?? request.text;
    return segments !== null;
  };
  while (spoken.length < 1_500) cut();
  t.equal(utterances.hasPending, true);
  const dropped = utterances.drop(0, () => t.fail('a complete utterance stays'));
  t.equal(dropped, 'dropped'.length);
  utterances.append('Yes. ');
  utterances.end();
  while (cut());
  t.equal(utterances.hasPending, false);
  for (let count = 0; count < 3; count++) utterances.append(text, { pauseMs: 10 });
  cut();
  utterances.drop(1_000, () => undefined);
  t.equal(utterances.hasPending, false, 'what was dropped does not wait');
  t.equal(spoken.replaceAll(/\s/g, ''), `10${text}`.repeat(3).replaceAll(/\s/g, '') + 'Yes.');
  t.end();
});

t.test('white space that was dropped is not charged with the words after it', (t) => {
  const utterances = new Utterances(limits, optionsOf(lease().granted), 'en-US', () => []);
  const blank = ' '.repeat(3 * limits.segmentCharactersMax);
  utterances.append(blank);
  while (utterances.cut() !== null);
  t.equal(
    utterances.drop(0, () => undefined),
    blank.length,
  );
  utterances.append('Yes.');
  utterances.end();
  while (utterances.cut() !== null);
  t.equal(utterances.charge(0), 'Yes.'.length);
  t.end();
});

t.test('what a listener needs: since when it waits for first audio, then how much it has in hand', (t) => {
  const { context, time } = createContext();
  t.equal(context.demandNow(), null, 'nothing to be made');
  time.nowMs = 1_000;
  context.append('Well');
  t.equal(context.demandNow(), null, 'nothing of it is spoken yet');
  context.append(', this is a whole sentence of some length. And');
  t.match(context.demandNow(), { isAwaiting: true, slackMs: 0 });
  time.nowMs = 1_400;
  t.match(context.demandNow(), { isAwaiting: true, slackMs: -400 });
  context.deliver({ type: 'audio', contextId: 1, segment: 0, durationMs: 1_000, bytes: Buffer.alloc(1) });
  t.match(context.demandNow(), { isAwaiting: false, slackMs: 1_000 });
  time.nowMs = 1_600;
  t.match(context.demandNow(), { isAwaiting: false, slackMs: 1_000 }, 'it has not taken its audio');
  context.release();
  t.equal(context.demandNow(), null);
  t.end();
});

t.test('a context that waits for the audio of its own account takes nothing from others', (t) => {
  const { context, scheduler } = createContext();
  const part = limits.unsentAudioBytesMax / 2;
  scheduler.audio.change('default', part);
  context.append('This is a whole sentence of some length. And');
  t.equal(context.schedule.running.length, 0);
  t.equal(context.demandNow(), null, 'no thread works for it');
  scheduler.audio.change('default', -part);
  t.match(context.demandNow(), { isAwaiting: true }, 'now it is being made');
  context.release();
  t.end();
});

t.test(
  'a listener who takes nothing for long leaves the load, and goes on when the machine has room',
  async (t) => {
    const { context, finish, machine, scheduler, time } = createContext();
    const part = limits.unsentAudioBytesMax / 2;
    context.append('This is a whole sentence of some length. This is another sentence of the text. And');
    context.deliver(audio);
    context.handed(audio);
    scheduler.audio.change('default', part);
    finish({ type: 'done', samples: 1_500, effort: { startedMs: 0, computeMs: 15 } });
    await setImmediate();
    t.equal(context.schedule.running.length, 0, 'the gate is shut');
    time.nowMs += 19_000;
    t.not(context.demandNow(), null, 'it may take audio at any moment');
    time.nowMs += 2_000;
    t.equal(context.demandNow(), null);
    machine.hasRoom = false;
    scheduler.audio.change('default', -part);
    t.equal(context.schedule.running.length, 0, 'the gate is open, and others have its place');
    machine.hasRoom = true;
    scheduler.wake();
    t.equal(context.schedule.running.length, 0, 'it does not ask all the time');
    time.nowMs += 250;
    scheduler.wake();
    t.equal(context.schedule.running.length, 1);
    t.not(context.demandNow(), null);
    context.release();
  },
);

/** A context with 60 s of audio, of which its listener takes a second now and then. */
const withMuchToTake = async () => {
  const bench = createContext();
  const { context, finish } = bench;
  const second = { ...audio, durationMs: 1_000 };
  context.append('This is a whole sentence of some length. This is another sentence of the text. And');
  for (let seconds = 0; seconds < 60; seconds++) context.deliver(second);
  finish({ type: 'done', samples: 60_000, effort: { startedMs: 0, computeMs: 600 } });
  await setImmediate();
  return { ...bench, take: () => context.handed(second) };
};

t.test(
  'a listener who takes its audio slower than at half the pace of playback leaves the load',
  async (t) => {
    for (const [everyMs, stays] of [
      [1_000, true],
      [2_000, true],
      [3_000, false],
      [9_000, false],
    ] as const) {
      const { context, take, time } = await withMuchToTake();
      let isCounted = true;
      for (let taken = 0; taken < 30; taken++) {
        take();
        time.nowMs += everyMs;
        isCounted = context.demandNow() !== null;
      }
      t.equal(context.schedule.running.length, 0, 'the gate is shut');
      t.equal(isCounted, stays, `a second in ${everyMs} ms`);
      context.release();
    }
  },
);

t.test('held words of a listener who takes nothing leave the load', async (t) => {
  const { context, finish, time } = createContext();
  context.append('This is a whole sentence of some length. And');
  context.deliver(audio);
  finish({ type: 'done', samples: 1_500, effort: { startedMs: 0, computeMs: 15 } });
  await setImmediate();
  for (const [nowMs, isCounted] of [
    [500, true],
    [19_000, true],
    [21_000, false],
    [60_000, false],
  ] as const) {
    time.nowMs = nowMs;
    context.append(' a');
    t.equal(context.demandNow() !== null, isCounted, `after ${nowMs} ms`);
  }
  context.release();
});

/** Speech of the voice costs five times its playing time: one thread makes none in time. */
const slowMachine = async (t: Test, overload: 'refuse' | 'late') => {
  const lines: Record<string, unknown>[] = [];
  const costs = new Costs();
  costs.voices.measured('scripted', { cpu: 5, beginMs: 600 });
  const log = { ...createLog('silent', limits), warn: (fields: object) => lines.push({ ...fields }) };
  const dispatcher = await startPlayed({ threads: 1, overload, costs, log: log as unknown as Log });
  t.teardown(() => dispatcher.close(1_000));
  const admits = (framing: Framing, text = 'a '.repeat(20)) =>
    dispatcher.admits({ ...optionsOf(lease().granted), framing, pieces: [{ text }] });
  return { admits, lines, dispatcher };
};

/** An utterance that never begins counts for 10 ms: what took longer, on a busy machine, is done again with another dispatcher. */
const atOnce = async <T>(t: Test, run: (machine: Awaited<ReturnType<typeof slowMachine>>) => T) => {
  for (let tries = 1; ; tries++) {
    const machine = await slowMachine(t, 'refuse');
    // Cold code would take longer.
    machine.admits('stream');
    await sleep(50);
    const startMs = performance.now();
    const result = run(machine);
    if (performance.now() - startMs < 8 || tries === 20) return { ...machine, result };
  }
};

t.test('what the machine cannot make is refused, whole files never; the log says why, once', async (t) => {
  const { admits, lines, dispatcher, result } = await atOnce(t, ({ admits }) =>
    (['stream', 'stream', 'socket'] as const).map((framing) => admits(framing)),
  );
  t.strictSame(result, [true, false, false]);
  for (let file = 0; file < 20; file++) t.equal(admits('whole'), true);
  t.equal(admits('elevenlabs-whole'), true);
  t.equal(lines.length, 1);
  const [line] = lines;
  t.match(line, { refusals: 1, supply: /cores|synthesis threads/, listeners: 1, waiting: 1 });
  const figures = line as Record<string, number>;
  const { ratio, askedMs, promisedMs, speechMs, withinSeconds, cores } = figures;
  t.ok(ratio! > 1 && Math.abs(ratio! - askedMs! / promisedMs!) < 1e-9, 'the ratio by hand');
  const supply = (figures['supply'] as unknown) === 'cores' ? cores! : 1;
  // A burst, which begins with the first utterance that is too much, is promised less at first.
  const part = withinSeconds! > 2 ? 0.9 : 0.7;
  t.ok(Math.abs(promisedMs! - withinSeconds! * 1_000 * supply * part) < 1e-6, 'what is promised, by hand');
  // Two of them wait for first audio: one that was admitted, and the one that is refused.
  t.ok(askedMs! - speechMs! * 5 >= 2 * 600 - 1e-6, 'what is asked for, by hand');
  t.ok(dispatcher.figures.freeCores > 0);
});

t.test('text that is long to say counts so before it begins', async (t) => {
  const speechMsOf = async (text: string) => {
    const { lines, result } = await atOnce(t, ({ admits }) => [
      admits('stream', text),
      admits('stream', text),
    ]);
    t.strictSame(result, [true, false], text);
    return lines[0]!['speechMs'] as number;
  };
  const writtenMs = await speechMsOf('a');
  const digitsMs = await speechMsOf('12345');
  t.ok(digitsMs > 2 * writtenMs, `${digitsMs} ms of digits, ${writtenMs} ms of letters`);
  const form = { spelling: 'nine hundred '.repeat(15).trim() };
  const markedMs = aheadMs(
    [{ text: 'qq', form }, { text: ' '.repeat(5_000) }],
    optionsOf(lease().granted).settings,
    'en-US',
    [],
  );
  t.ok(markedMs > 10_000 + 5_000 * 60, 'its spoken form, and of a long text the rest as it is written');
});

t.test('the pauses of a text count before it is cut, and once', (t) => {
  const { settings } = optionsOf(lease().granted);
  const pieces = Array.from({ length: 10 }, () => ({ text: 'One. ', pauseMs: 3_000 }));
  const written = pieces.map(({ text }) => ({ text }));
  t.equal(aheadMs(pieces, settings, 'en-US', []), 30_000 + aheadMs(written, settings, 'en-US', []));
  const utterances = new Utterances(limits, { framing: 'socket', settings }, 'en-US', () => []);
  for (const piece of pieces) utterances.append(piece.text, piece);
  t.ok(utterances.uncutMs > 30_000);
  let cutMs = 0;
  for (let cut = utterances.cut(); cutMs < 9_000; cut = utterances.cut())
    for (const { pauseMs = 0 } of (cut ?? []).map(({ request }) => request)) cutMs += pauseMs;
  t.ok(
    utterances.uncutMs > 30_000 - cutMs && utterances.uncutMs < 40_000 - cutMs,
    `${utterances.uncutMs} ms`,
  );
  utterances.drop(100, () => undefined);
  t.equal(utterances.uncutMs, 0);
  t.end();
});

t.test('held words of one listener leave the machine to others, and to its own next words', async (t) => {
  const { result } = await atOnce(t, ({ admits, dispatcher }) => {
    const context = opened(
      dispatcher.open({ ...optionsOf(lease().granted), framing: 'socket' }, () => undefined),
    );
    const held = ['a', ' ', 'few', ' '].map((text) => {
      const isAdmitted = context.admits(text);
      context.append(text);
      return isAdmitted;
    });
    return [...held, admits('stream'), context.admits('a')];
  });
  t.strictSame(result, [true, true, true, true, true, false], 'the first to speak has the machine');
});

t.test('an account whose part of the audio budget is used up is refused, and others are not', async (t) => {
  // Less than the first segment makes.
  const bounds = { unsentAudioBytesMax: 32_000 };
  for (const overload of ['refuse', 'late'] as const) {
    const dispatcher = await startPlayed({ threads: 1, overload, bounds });
    const open = (account: string, framing: Framing = 'stream') =>
      dispatcher.open({ ...optionsOf({ ...lease().granted, account }), framing }, () => undefined);
    // Nothing is handed over.
    const slow = opened(open('greedy'));
    slow.append('one two three four five six.');
    slow.end();
    await untilIdle(dispatcher);
    t.ok(dispatcher.scheduler.unsentAudioMs * 48 > 32_000);
    const isRefused = overload === 'refuse';
    t.equal(typeof open('greedy') === 'string', isRefused, overload);
    t.equal(typeof open('greedy', 'socket') === 'string', isRefused);
    t.not(typeof open('greedy', 'whole'), 'string', 'files wait');
    t.not(typeof open('honest'), 'string');
    slow.release();
    t.not(typeof open('greedy'), 'string', 'room again');
    await dispatcher.close(1_000);
  }
});

t.test('an account whose part is used up by what is being made is not refused', async (t) => {
  // Less than any segment makes.
  const dispatcher = await startPlayed({ overload: 'refuse', bounds: { unsentAudioBytesMax: 1_000 } });
  t.teardown(() => dispatcher.close(1_000));
  const open = () => dispatcher.open(optionsOf(lease().granted), () => undefined);
  const running = opened(open());
  running.append('one two three four five six.');
  running.end();
  t.equal(dispatcher.scheduler.runningSegments, 1);
  t.not(typeof open(), 'string');
  t.end();
});

t.test('a service that is to be late refuses nobody', async (t) => {
  const { admits, lines } = await slowMachine(t, 'late');
  for (let listener = 0; listener < 20; listener++) t.equal(admits('stream'), true);
  t.same(lines, []);
});
