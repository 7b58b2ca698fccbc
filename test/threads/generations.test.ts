/** Voices that are loaded beside those that speak. */
import t from 'tap';
import type { Dispatcher } from '../../src/speech/dispatcher.js';
import type { Frame } from '../../src/threads/messages.js';
import { lease, long, optionsOf, speak, start, until } from '../support/dispatch-bench.js';
import { voicesOf } from '../support/scripted-voices.js';

const endMs = 5_000;

/** A context of a WebSocket, whose audio is handed on as it comes. */
const openSocket = (dispatcher: Dispatcher, voiceId: string) => {
  const { granted } = lease();
  const frames: Frame[] = [];
  const options = optionsOf(granted);
  const settings = { ...options.settings, voiceId };
  const context = dispatcher.open({ ...options, settings, framing: 'socket' }, (frame) => {
    frames.push(frame);
    if (frame.type === 'audio') context?.handed(frame);
  });
  if (context === null) throw new Error('not taken');
  const speakTurn = async (text: string, flushId: string) => {
    context.append(text);
    context.flush(flushId);
    await until(() => frames.some((frame) => frame.type === 'flushed' && frame.flushId === flushId));
    await until(() => context.activity === 'idle');
  };
  return { context, frames, speakTurn };
};

const older = (dispatcher: Dispatcher) => dispatcher.generations.status().contextsOfOlderVoices;

t.test('utterances under way end with the voices that they began with; new ones have the new', async (t) => {
  const dispatcher = await start({ voices: voicesOf(['ada', 'wren']) });
  const before = dispatcher.voices;
  const spoken = Array.from({ length: 4 }, () => speak(dispatcher, long.repeat(4)));
  t.ok(await dispatcher.generations.load(voicesOf(['wren', 'zoe'])));
  t.not(dispatcher.voices, before);
  t.same(dispatcher.voices.speakerIds, ['wren', 'zoe']);
  t.same(before.speakerIds, ['ada', 'wren']);
  t.equal(dispatcher.generations.status().generation, 2);
  t.equal(older(dispatcher), 4);
  t.match(await speak(dispatcher, 'Meanwhile.'), { ending: 'closed', letters: 'Meanwhile.' });
  for (const outcome of await Promise.all(spoken))
    t.match(outcome, { ending: 'closed', letters: long.repeat(4) });
  await dispatcher.generations.settled();
  t.equal(older(dispatcher), 0);
  t.equal(dispatcher.restarts.synthesis, 0, 'threads that are closed did not die');
  t.ok(dispatcher.isWhole);
  t.ok(await dispatcher.close(endMs));
});

t.test('a context moves when it idles, if its voice is there at the same rate', async (t) => {
  const dispatcher = await start({ voices: voicesOf(['ada', 'wren']) });
  const idle = openSocket(dispatcher, 'wren');
  const holding = openSocket(dispatcher, 'wren');
  holding.context.append('No end is in sight');
  const midTurn = openSocket(dispatcher, 'wren');
  midTurn.context.append('This is said. But this is');
  await until(() => midTurn.context.activity === 'holding');
  const vanished = openSocket(dispatcher, 'ada');
  await vanished.speakTurn('As ever.', '1');
  await dispatcher.generations.load(voicesOf(['wren']));
  t.equal(older(dispatcher), 2, 'one in the middle of its turn, one whose voice is gone');
  midTurn.context.append(' said too.');
  await midTurn.speakTurn('', '1');
  await until(() => older(dispatcher) === 1);
  t.equal(older(dispatcher), 1, 'the turn is over');
  for (const { speakTurn, frames } of [idle, holding, midTurn, vanished]) {
    await speakTurn(' And on.', '2');
    t.ok(frames.some(({ type }) => type === 'audio'));
    t.notOk(frames.some(({ type }) => type === 'failed'));
  }
  t.equal(older(dispatcher), 1);
  vanished.context.release();
  await dispatcher.generations.settled();
  const other = openSocket(dispatcher, 'wren');
  await dispatcher.generations.load(voicesOf(['wren'], 'at once', 48_000));
  t.equal(older(dispatcher), 4, 'the rate is another');
  for (const { context } of [idle, holding, midTurn, other]) context.release();
  await dispatcher.generations.settled();
  t.ok(await dispatcher.close(endMs));
});

for (const [load, reason] of [
  ['broken', /scripted fault of a pack/],
  ['exit', /ended while it loaded/],
  ['exit inside', /ended while it loaded/],
] as const)
  t.test(`voices that cannot be loaded change nothing: ${load}`, async (t) => {
    const dispatcher = await start();
    const spoken = speak(dispatcher, long);
    await t.rejects(dispatcher.generations.load(voicesOf(['other'], load)), reason);
    t.same(dispatcher.voices.speakerIds, ['scripted']);
    t.match(dispatcher.generations.status(), {
      generation: 1,
      voicesAreLoading: false,
      contextsOfOlderVoices: 0,
    });
    t.match(await spoken, { ending: 'closed', letters: long });
    t.ok(await dispatcher.generations.load(voicesOf(['scripted', 'other'])), 'the next may');
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.ok(await dispatcher.close(endMs));
  });

t.test('a drain meets voices that are loading inside native code', async (t) => {
  const dispatcher = await start();
  const slow = voicesOf(['other'], 'slow');
  const loaded = dispatcher.generations.load(slow);
  await until(() => dispatcher.generations.status().voicesAreLoading);
  // Both threads have come to where they wait.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const closed = dispatcher.close(endMs);
  slow.letGo();
  t.ok(await closed);
  t.notOk(await loaded);
  t.same(dispatcher.voices.speakerIds, ['scripted']);
});

t.test('a thread of older voices that dies is replaced by one of theirs', async (t) => {
  const dispatcher = await start({ threads: 1 });
  const victim = openSocket(dispatcher, 'scripted');
  victim.context.append(`${long} Then !exit it breaks.`);
  victim.context.end();
  const bystander = speak(dispatcher, long.repeat(3));
  await dispatcher.generations.load(voicesOf(['scripted']));
  t.match(await bystander, { ending: 'closed', letters: long.repeat(3) });
  await until(() => victim.frames.some(({ type }) => type === 'failed'));
  t.ok(victim.frames.some(({ type }) => type === 'failed'));
  victim.context.release();
  await dispatcher.generations.settled();
  t.ok(dispatcher.isWhole);
  t.ok(await dispatcher.close(endMs));
});

t.test('a thread of older voices that hangs inside native code does not keep them', async (t) => {
  const voices = voicesOf(['scripted']);
  const bounds = { threadHangMsMax: 2_500, watchdogBeatMs: 100 };
  const dispatcher = await start({ voices, bounds });
  const victim = speak(dispatcher, 'Now !inside it hangs.');
  await dispatcher.generations.load(voicesOf(['scripted']));
  t.match(await victim, { ending: 'failed', reason: 'its synthesis thread hangs' });
  await dispatcher.generations.settled();
  t.equal(dispatcher.generations.status().hungThreads, 1);
  t.same(dispatcher.faults(), []);
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  voices.letGo();
  await until(() => dispatcher.generations.status().hungThreads === 0);
  t.ok(await dispatcher.close(endMs));
});

for (const load of ['slow', 'stuck'] as const)
  t.test(`voices whose load does not end are given up: ${load}`, async (t) => {
    const dispatcher = await start({
      // More than threads that do load take on a machine that is busy.
      bounds: { voicesLoadMsMax: 6_000, watchdogBeatMs: 50, hungThreadsReplacedMax: 1 },
    });
    const stuck = voicesOf(['other'], load);
    await t.rejects(dispatcher.generations.load(stuck), {
      name: 'VoicesHangError',
      message: 'the voices were not loaded within 6 s',
    });
    t.match(dispatcher.generations.status(), { generation: 1, voicesAreLoading: false });
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.equal(dispatcher.restarts.synthesis, 0);
    if (load === 'slow') {
      t.equal(dispatcher.generations.status().hungThreads, 2);
      await t.rejects(dispatcher.generations.load(voicesOf(['other'])), /^2 synthesis threads hang/);
      stuck.letGo();
      await until(() => dispatcher.generations.status().hungThreads === 0);
    }
    t.ok(await dispatcher.generations.load(voicesOf(['scripted'])), 'the next may');
    t.ok(await dispatcher.close(endMs));
  });

t.test('a start whose load does not end is given up', async (t) => {
  const stuck = voicesOf(['scripted'], 'stuck');
  await t.rejects(start({ voices: stuck, bounds: { voicesLoadMsMax: 500, watchdogBeatMs: 50 } }), {
    name: 'VoicesHangError',
  });
});

t.test('who idles with a voice that is gone is told to end after a time, and nobody else', async (t) => {
  const dispatcher = await start({ voices: voicesOf(['ada', 'wren']), bounds: { olderVoicesMsMax: 50 } });
  const idle = openSocket(dispatcher, 'ada');
  await idle.speakTurn('As ever.', '1');
  const holding = openSocket(dispatcher, 'wren');
  holding.context.append('This is said. But this is');
  await until(() => holding.context.activity === 'holding');
  const speaking = openSocket(dispatcher, 'ada');
  const moved = openSocket(dispatcher, 'wren');
  speaking.context.append(`${long} !slow and more`);
  speaking.context.flush('1');
  await dispatcher.generations.load(voicesOf(['wren']));
  t.match(dispatcher.generations.warnings(), [/^3 contexts keep the voices from before a reload/]);
  await until(() => older(dispatcher) === 1);
  for (const { frames } of [idle, holding])
    t.match(frames.at(-1), { type: 'failed', code: 'voiceRetired', reason: /taken away by a reload/ });
  t.notOk(speaking.frames.some(({ type }) => type === 'failed'));
  await until(() => older(dispatcher) === 0);
  t.match(speaking.frames.at(-1), { type: 'failed', code: 'voiceRetired' });
  t.ok(
    speaking.frames.some((frame) => frame.type === 'flushed' && frame.flushId === '1'),
    'its turn was spoken',
  );
  t.same(dispatcher.generations.warnings(), []);
  await moved.speakTurn('And on.', '1');
  for (const { context } of [idle, holding, speaking, moved]) context.release();
  await dispatcher.generations.settled();
  t.ok(await dispatcher.close(endMs));
});

t.test('voices that would leave the GPU are not taken', async (t) => {
  const dispatcher = await start({ voices: voicesOf(['scripted'], 'cuda') });
  t.same(dispatcher.generations.status().executionProviders, ['cuda']);
  await t.rejects(dispatcher.generations.load(voicesOf(['scripted'])), /^CUDA cannot be used for them/);
  t.match(dispatcher.generations.status(), { generation: 1, executionProviders: ['cuda'] });
  t.ok(await dispatcher.generations.load(voicesOf(['scripted'], 'cuda')));
  t.ok(await dispatcher.close(endMs));
});

t.test('older voices whose threads all hang fail who waits for them', async (t) => {
  const voices = voicesOf(['scripted']);
  const bounds = { threadHangMsMax: 5_000, watchdogBeatMs: 100, hungThreadsReplacedMax: 0 };
  const dispatcher = await start({ threads: 1, voices, bounds });
  const victim = speak(dispatcher, 'Now !inside it hangs.');
  const neighbour = speak(dispatcher, long);
  await dispatcher.generations.load(voicesOf(['scripted']));
  t.match(await victim, { ending: 'failed', reason: 'its synthesis thread hangs' });
  t.match(await neighbour, { ending: 'failed', reason: 'the threads of its voices hang' });
  await dispatcher.generations.settled();
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  voices.letGo();
  await until(() => dispatcher.generations.status().hungThreads === 0);
  t.ok(await dispatcher.close(endMs));
});
