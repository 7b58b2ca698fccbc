/** Voices that load while others speak. */
import t from 'tap';
import type { Dispatcher } from '../../src/speech/dispatcher.js';
import type { Frame } from '../../src/threads/messages.js';
import {
  lease,
  lettersOf,
  long,
  optionsOf,
  sentence,
  speak,
  startPlayed,
} from '../support/dispatch-bench.js';
import { tornPack, voicesByPack, voicesOf } from '../support/scripted-voices.js';
import { SteppedWatchdog, steppedBounds } from '../support/stepped-watchdog.js';
import { eventually } from '../support/waiting.js';
import { opened } from '../support/fake-speech.js';

t.jobs = 3;

const endMs = 30_000;

/** Lets the watchdog's time pass until the promise settles. @param hanging threads that hang; one that loads is not watched */
const passUntilSettled = async (
  watchdog: SteppedWatchdog,
  promise: Promise<unknown>,
  hanging = 1,
): Promise<void> => {
  let isSettled = false;
  const settle = () => (isSettled = true);
  void promise.then(settle, settle);
  await watchdog.passUntil(() => isSettled, hanging);
};

/** A context of a WebSocket. It hands on its audio at once. */
const openSocket = (dispatcher: Dispatcher, voiceId: string) => {
  const { granted } = lease();
  const frames: Frame[] = [];
  const options = optionsOf(granted);
  const settings = { ...options.settings, voiceId };
  const context = opened(
    dispatcher.open({ ...options, settings, framing: 'socket' }, (frame) => {
      frames.push(frame);
      if (frame.type === 'audio') context.handed(frame);
    }),
  );
  const speakUtterance = async (text: string, flushId: string) => {
    context.append(text);
    context.flush(flushId);
    await eventually(() => frames.some((frame) => frame.type === 'flushed' && frame.flushId === flushId));
    await eventually(() => context.activity === 'idle');
  };
  return { context, frames, speakUtterance };
};

const older = (dispatcher: Dispatcher) => dispatcher.threads.generations.status().contextsOfOlderVoices;

t.test('a running utterance keeps its voices through a reload; new ones use the new voices', async (t) => {
  const dispatcher = await startPlayed({ voices: voicesOf(['ada', 'scripted']) });
  const before = dispatcher.voices;
  const spoken = Array.from({ length: 4 }, () => speak(dispatcher, long.repeat(2)));
  t.ok(await dispatcher.threads.generations.load(voicesOf(['scripted', 'zoe'])));
  t.not(dispatcher.voices, before);
  t.same(dispatcher.voices.speakerIds, ['scripted', 'zoe']);
  t.same(before.speakerIds, ['ada', 'scripted']);
  t.equal(dispatcher.threads.generations.status().generation, 2);
  t.equal(older(dispatcher), 4);
  t.match(await speak(dispatcher, 'Meanwhile.'), { ending: 'closed', letters: 'Meanwhile.' });
  for (const outcome of await Promise.all(spoken))
    t.match(outcome, { ending: 'closed', letters: long.repeat(2) });
  await dispatcher.threads.generations.settled();
  t.equal(older(dispatcher), 0);
  t.equal(dispatcher.threads.restarts.synthesis, 0, 'a closed thread does not count as dead');
  t.ok(dispatcher.threads.isWhole);
  t.ok(await dispatcher.close(endMs));
});

t.test('an idle context moves to the new voices if they have its voice at the same rate', async (t) => {
  const dispatcher = await startPlayed({ voices: voicesOf(['ada', 'wren']) });
  const idle = openSocket(dispatcher, 'wren');
  const holding = openSocket(dispatcher, 'wren');
  holding.context.append('No end is in sight');
  const midUtterance = openSocket(dispatcher, 'wren');
  midUtterance.context.append('This is said. But this is');
  await eventually(() => midUtterance.context.activity === 'holding');
  const vanished = openSocket(dispatcher, 'ada');
  await vanished.speakUtterance('As ever.', '1');
  await eventually(() => holding.context.activity === 'holding');
  await dispatcher.threads.generations.load(voicesOf(['wren']));
  await eventually(() => older(dispatcher) === 2);
  t.equal(older(dispatcher), 2, 'one in the middle of its utterance, one whose voice is gone');
  midUtterance.context.append(' said too.');
  await midUtterance.speakUtterance('', '1');
  await eventually(() => older(dispatcher) === 1);
  t.equal(older(dispatcher), 1, 'the utterance is over');
  for (const { speakUtterance, frames } of [idle, holding, midUtterance, vanished]) {
    await speakUtterance(' And on.', '2');
    t.ok(frames.some(({ type }) => type === 'audio'));
    t.notOk(frames.some(({ type }) => type === 'failed'));
  }
  t.equal(older(dispatcher), 1);
  vanished.context.release();
  await dispatcher.threads.generations.settled();
  const other = openSocket(dispatcher, 'wren');
  await dispatcher.threads.generations.load(voicesOf(['wren'], 'at once', 48_000));
  t.equal(older(dispatcher), 4, 'the rate is another');
  for (const { context } of [idle, holding, midUtterance, other]) context.release();
  await dispatcher.threads.generations.settled();
  t.ok(await dispatcher.close(endMs));
});

t.test('an utterance moves to reloaded voices if the files of its voice are the same', async (t) => {
  const voices = voicesByPack(['ada', 'wren']);
  const dispatcher = await startPlayed({ voices, watchdog: new SteppedWatchdog(), bounds: steppedBounds });
  const { generations } = dispatcher.threads;
  const line = sentence.repeat(2).trim();
  const endless = openSocket(dispatcher, 'ada');
  const left = openSocket(dispatcher, 'ada');
  const changed = openSocket(dispatcher, 'wren');
  let written = '';
  const write = (text: string) => {
    written += text;
    endless.context.append(text);
  };
  const heard = (text: string) => eventually(() => lettersOf(endless.frames).includes(text));
  changed.context.append(`${line} This is not`);
  await eventually(() => changed.context.activity === 'holding');
  write(`${line} This one !inside waits. ${line} One more.`);
  await voices.hung();
  left.context.append(`This one !inside waits, too. ${line}`);
  await voices.hung(2);
  const reloaded = voicesByPack(['ada', 'wren']);
  const [, other] = voicesByPack(['ada', 'wren'], 'other files').packs;
  t.ok(await generations.load({ ...reloaded, packs: [reloaded.packs[0]!, other!] }));
  t.equal(older(dispatcher), 3, 'segments that run end where they began');
  left.context.release();
  changed.context.release();
  voices.letGo();
  await generations.settled();
  t.equal(endless.context.activity, 'speaking');
  write(` Second !inside waits. ${line} Two more.`);
  await reloaded.hung();
  t.ok(await generations.load(voicesByPack(['ada', 'wren'])), 'and once more');
  reloaded.letGo();
  await generations.settled();
  write(` ${line} Three more.`);
  await heard('Two more.');
  t.ok(await generations.load(voicesByPack(['ada', 'wren'], 'other files')));
  write(` ${line} Four more.`);
  await heard('Three more.');
  t.equal(older(dispatcher), 1, 'its voice is another one');
  endless.context.flush('1');
  await generations.settled();
  t.equal(lettersOf(endless.frames), written);
  t.equal(dispatcher.threads.restarts.synthesis, 0);
  t.notOk(endless.frames.some(({ type }) => type === 'failed'));
  endless.context.release();
  t.ok(await dispatcher.close(endMs));
});

for (const [load, reason] of [
  ['broken', /scripted fault of a pack/],
  ['exit', /ended while it loaded/],
  ['exit inside', /ended while it loaded/],
] as const)
  t.test(`voices that cannot be loaded change nothing: ${load}`, async (t) => {
    const dispatcher = await startPlayed();
    const spoken = speak(dispatcher, long);
    await t.rejects(dispatcher.threads.generations.load(voicesOf(['other'], load)), reason);
    t.same(dispatcher.voices.speakerIds, ['scripted']);
    t.match(dispatcher.threads.generations.status(), {
      generation: 1,
      voicesAreLoading: false,
      contextsOfOlderVoices: 0,
    });
    t.match(await spoken, { ending: 'closed', letters: long });
    t.ok(await dispatcher.threads.generations.load(voicesOf(['scripted', 'other'])), 'the next reload works');
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.ok(await dispatcher.close(endMs));
  });

t.test('a drain waits for voices that are loading inside native code', async (t) => {
  const dispatcher = await startPlayed();
  const slow = voicesOf(['other'], 'slow');
  const loaded = dispatcher.threads.generations.load(slow);
  await eventually(() => dispatcher.threads.generations.status().voicesAreLoading);
  await slow.hung(2);
  const closed = dispatcher.close(endMs);
  slow.letGo();
  t.ok(await closed);
  t.notOk(await loaded);
  t.same(dispatcher.voices.speakerIds, ['scripted']);
});

t.test('a thread of older voices that dies is replaced by one with the same voices', async (t) => {
  const dispatcher = await startPlayed({ threads: 1 });
  const victim = openSocket(dispatcher, 'scripted');
  victim.context.append(`${long} Then !exit it breaks.`);
  victim.context.end();
  const bystander = speak(dispatcher, long.repeat(3));
  await dispatcher.threads.generations.load(voicesOf(['scripted']));
  t.match(await bystander, { ending: 'closed', letters: long.repeat(3) });
  await eventually(() => victim.frames.some(({ type }) => type === 'failed'));
  t.ok(victim.frames.some(({ type }) => type === 'failed'));
  victim.context.release();
  await dispatcher.threads.generations.settled();
  t.ok(dispatcher.threads.isWhole);
  t.ok(await dispatcher.close(endMs));
});

t.test('a thread of older voices that hangs inside native code does not keep them', async (t) => {
  const voices = voicesOf(['scripted']);
  const watchdog = new SteppedWatchdog();
  const dispatcher = await startPlayed({ voices, watchdog, bounds: steppedBounds });
  const victim = speak(dispatcher, 'Now !inside it hangs.');
  await voices.hung();
  await dispatcher.threads.generations.load(voicesOf(['scripted']));
  await passUntilSettled(watchdog, victim);
  t.match(await victim, { ending: 'failed', reason: 'its synthesis thread hangs' });
  await dispatcher.threads.generations.settled();
  t.equal(dispatcher.threads.generations.status().hungThreads, 1);
  t.same(dispatcher.threads.faults(), []);
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  voices.letGo();
  await eventually(() => dispatcher.threads.generations.status().hungThreads === 0);
  t.ok(await dispatcher.close(endMs));
});

for (const load of ['slow', 'stuck'] as const)
  t.test(`a reload gives up voices whose load does not end: ${load}`, async (t) => {
    const watchdog = new SteppedWatchdog();
    const dispatcher = await startPlayed({
      watchdog,
      bounds: { ...steppedBounds, hungThreadsReplacedMax: 1 },
    });
    const stuck = voicesOf(['other'], load);
    const loaded = dispatcher.threads.generations.load(stuck);
    loaded.catch(() => undefined);
    await stuck.hung(2);
    await passUntilSettled(watchdog, loaded, 0);
    await t.rejects(loaded, {
      name: 'VoicesHangError',
      message: 'the voices were not loaded in time: use fewer or smaller ones',
    });
    t.match(dispatcher.threads.generations.status(), { generation: 1, voicesAreLoading: false });
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    t.equal(dispatcher.threads.restarts.synthesis, 0);
    if (load === 'slow') {
      t.equal(dispatcher.threads.generations.status().hungThreads, 2);
      await t.rejects(dispatcher.threads.generations.load(voicesOf(['other'])), /^2 synthesis threads hang/);
      stuck.letGo();
      await eventually(() => dispatcher.threads.generations.status().hungThreads === 0);
    }
    t.ok(await dispatcher.threads.generations.load(voicesOf(['scripted'])), 'the next reload works');
    t.ok(await dispatcher.close(endMs));
  });

t.test('a start gives up voices whose load does not end', async (t) => {
  const stuck = voicesOf(['scripted'], 'stuck');
  const watchdog = new SteppedWatchdog();
  const started = startPlayed({ voices: stuck, watchdog, bounds: steppedBounds });
  started.catch(() => undefined);
  await stuck.hung(2);
  await passUntilSettled(watchdog, started, 0);
  await t.rejects(started, { name: 'VoicesHangError' });
});

t.test('after a time only contexts that idle with older voices end', async (t) => {
  const voices = voicesOf(['ada', 'wren']);
  const bounds = { ...steppedBounds, olderVoicesMsMax: 50 };
  const dispatcher = await startPlayed({ voices, watchdog: new SteppedWatchdog(), bounds });
  const idle = openSocket(dispatcher, 'ada');
  await idle.speakUtterance('As ever.', '1');
  const holding = openSocket(dispatcher, 'wren');
  holding.context.append('This is said. But this is');
  await eventually(() => holding.context.activity === 'holding');
  const speaking = openSocket(dispatcher, 'ada');
  const moved = openSocket(dispatcher, 'wren');
  speaking.context.append(`${long} !inside and more`);
  speaking.context.flush('1');
  // It speaks as long as the test wants.
  await voices.hung();
  await dispatcher.threads.generations.load(voicesOf(['wren']));
  // The context that moves may do so a moment later.
  t.match(dispatcher.threads.generations.warnings(), [/^[34] contexts keep the voices from before a reload/]);
  await eventually(() => older(dispatcher) === 1);
  for (const { frames } of [idle, holding])
    t.match(frames.at(-1), { type: 'failed', code: 'voiceRetired', reason: /taken away by a reload/ });
  t.notOk(speaking.frames.some(({ type }) => type === 'failed'));
  voices.letGo();
  await eventually(() => older(dispatcher) === 0);
  t.match(speaking.frames.at(-1), { type: 'failed', code: 'voiceRetired' });
  t.ok(
    speaking.frames.some((frame) => frame.type === 'flushed' && frame.flushId === '1'),
    'its utterance was spoken',
  );
  t.same(dispatcher.threads.generations.warnings(), []);
  await moved.speakUtterance('And on.', '1');
  for (const { context } of [idle, holding, speaking, moved]) context.release();
  await dispatcher.threads.generations.settled();
  t.ok(await dispatcher.close(endMs));
});

t.test('a reload that waits ends contexts that speak with older voices, after a time', async (t) => {
  const voices = voicesOf(['ada', 'wren']);
  const bounds = { ...steppedBounds, olderVoicesMsMax: 50 };
  const dispatcher = await startPlayed({ voices, watchdog: new SteppedWatchdog(), bounds });
  const speaking = openSocket(dispatcher, 'ada');
  speaking.context.append(`${long} !inside and more`);
  speaking.context.flush('1');
  await voices.hung();
  await dispatcher.threads.generations.load(voicesOf(['wren']));
  const settled = dispatcher.threads.generations.settled();
  await eventually(() => speaking.frames.at(-1)?.type === 'failed');
  t.match(speaking.frames.at(-1), { code: 'voiceRetired', reason: /taken away by a reload/ });
  voices.letGo();
  speaking.context.release();
  await settled;
  t.ok(await dispatcher.threads.generations.load(voicesOf(['zoe'])));
  t.ok(await dispatcher.close(endMs));
});

t.test('a reload that would move the voices off the GPU is refused', async (t) => {
  const dispatcher = await startPlayed({ voices: voicesOf(['scripted'], 'cuda') });
  t.same(dispatcher.threads.generations.status().executionProviders, ['cuda']);
  await t.rejects(
    dispatcher.threads.generations.load(voicesOf(['scripted'])),
    /^CUDA cannot be used for them/,
  );
  t.match(dispatcher.threads.generations.status(), { generation: 1, executionProviders: ['cuda'] });
  t.ok(await dispatcher.threads.generations.load(voicesOf(['scripted'], 'cuda')));
  t.ok(await dispatcher.close(endMs));
});

t.test('if all threads of older voices hang, the contexts that wait for them fail', async (t) => {
  const voices = voicesOf(['scripted']);
  const watchdog = new SteppedWatchdog();
  const bounds = { ...steppedBounds, hungThreadsReplacedMax: 0 };
  const dispatcher = await startPlayed({ threads: 1, voices, watchdog, bounds });
  const victim = speak(dispatcher, 'Now !inside it hangs.');
  const neighbour = speak(dispatcher, long);
  await voices.hung();
  await dispatcher.threads.generations.load(voicesOf(['scripted']));
  await passUntilSettled(watchdog, victim);
  t.match(await victim, { ending: 'failed', reason: 'its synthesis thread hangs' });
  t.match(await neighbour, { ending: 'failed', reason: 'the threads of its voices hang' });
  await dispatcher.threads.generations.settled();
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  voices.letGo();
  await eventually(() => dispatcher.threads.generations.status().hungThreads === 0);
  t.ok(await dispatcher.close(endMs));
});

/** The default pack, and one of a stranger. */
const withStranger = (stamp?: string) => voicesByPack(['scripted', 'stranger'], stamp);

/** A context with a voice says this. @returns why it failed, once it did */
const failing = (dispatcher: Dispatcher, voiceId: string, text: string) => {
  const { context, frames } = openSocket(dispatcher, voiceId);
  context.append(text);
  context.end();
  return eventually(() => frames.some(({ type }) => type === 'failed')).then(() => {
    context.release();
    return frames.at(-1);
  });
};

const isOut = { type: 'failed', reason: 'its voice pack is out: see the log' };

for (const [marker, hungThreads] of [
  ['!inside', 1],
  ['!stuck', 0],
] as const)
  t.test(`a pack that makes a thread hang is out, and costs one thread: ${marker}`, async (t) => {
    const voices = withStranger();
    const watchdog = new SteppedWatchdog();
    const dispatcher = await startPlayed({ voices, watchdog, bounds: steppedBounds });
    const { generations } = dispatcher.threads;
    const kept: (readonly string[])[] = [];
    generations.on('pack-hung', (...stampAndFault) => kept.push(stampAndFault));
    const idle = openSocket(dispatcher, 'stranger');
    const neighbour = failing(dispatcher, 'stranger', long.repeat(1_000));
    const bystander = speak(dispatcher, long);
    const victim = failing(dispatcher, 'stranger', `Now ${marker} it hangs.`);
    await voices.hung();
    await passUntilSettled(watchdog, victim);
    t.match(await victim, { type: 'failed', reason: 'its synthesis thread hangs' });
    t.match(await neighbour, isOut, 'another thread may hang in it, too');
    t.match(await bystander, { ending: 'closed', letters: long });
    t.same(dispatcher.voices.speakerIds, ['scripted']);
    t.same(
      generations.current.packs.map(({ name }) => name),
      ['scripted'],
    );
    t.throws(() => openSocket(dispatcher, 'stranger'), { name: 'RangeError' });
    t.match(generations.warnings().at(-1), /^voices: stranger: it hung a thread/);
    t.match(kept, [['files of stranger', /^it hung a thread/]]);
    idle.context.append(`Now ${marker} it hangs.`);
    idle.context.end();
    await eventually(() => idle.frames.some(({ type }) => type === 'failed'));
    idle.context.release();
    t.equal(generations.status().hungThreads, hungThreads);
    t.equal(dispatcher.threads.restarts.synthesis, 1);
    t.ok(await generations.load(withStranger('other files')), 'its files are others');
    t.same(dispatcher.voices.speakerIds, ['scripted', 'stranger']);
    voices.letGo();
    await eventually(() => generations.status().hungThreads === 0);
    t.ok(await dispatcher.close(endMs));
  });

t.test('a pack that threads cannot load is out; a reload with one changes nothing', async (t) => {
  const dispatcher = await startPlayed({ voices: voicesByPack(['scripted', tornPack]) });
  const { generations } = dispatcher.threads;
  t.same(dispatcher.voices.speakerIds, ['scripted']);
  const fault = 'torn: a thread could not load it: scripted fault of a pack';
  t.equal(generations.warnings().at(-1), `voices: ${fault}`);
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  generations.on('pack-hung', () => t.fail('it is read again'));
  t.ok(await generations.load(voicesByPack(['scripted', 'stranger'])));
  await generations.settled();
  let released = 0;
  const torn = { ...voicesByPack(['scripted', tornPack]), release: () => void released++ };
  await t.rejects(generations.load(torn), { message: fault });
  t.equal(released, 1, 'its threads have ended');
  t.same(dispatcher.voices.speakerIds, ['scripted', 'stranger']);
  t.ok(await dispatcher.close(endMs));
});

t.test('a pack in whose steps three threads die is out, and the default one stays', async (t) => {
  const dispatcher = await startPlayed({ voices: withStranger() });
  const dies = { type: 'failed', reason: /^its synthesis thread ended/ };
  for (let i = 0; i < 3; i++) {
    t.match(await failing(dispatcher, 'scripted', 'Just !exit now.'), dies);
    t.same(dispatcher.voices.speakerIds, ['scripted', 'stranger']);
    t.match(await failing(dispatcher, 'stranger', 'Just !exit now.'), dies);
  }
  await eventually(() => dispatcher.voices.speakerIds.length === 1);
  t.same(dispatcher.voices.speakerIds, ['scripted']);
  t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
  t.ok(await dispatcher.close(endMs));
});

t.test('a pack that is out is out of the voices of a reload, too, unless its files changed', async (t) => {
  for (const stamp of ['files', 'other files']) {
    const voices = withStranger();
    const watchdog = new SteppedWatchdog();
    const dispatcher = await startPlayed({ voices, watchdog, bounds: steppedBounds });
    const victim = failing(dispatcher, 'stranger', 'Now !inside it hangs.');
    await voices.hung();
    t.ok(await dispatcher.threads.generations.load(withStranger(stamp)));
    await passUntilSettled(watchdog, victim);
    t.same(dispatcher.voices.speakerIds, stamp === 'files' ? ['scripted'] : ['scripted', 'stranger']);
    voices.letGo();
    await eventually(() => dispatcher.threads.generations.status().hungThreads === 0);
    t.ok(await dispatcher.close(endMs));
  }
});

t.test('the default pack stays when it hangs', async (t) => {
  for (const marker of ['!inside', '!stuck']) {
    const voices = withStranger();
    const watchdog = new SteppedWatchdog();
    const dispatcher = await startPlayed({ voices, watchdog, bounds: steppedBounds });
    const victim = failing(dispatcher, 'scripted', `Now ${marker} it hangs.`);
    await voices.hung();
    await passUntilSettled(watchdog, victim);
    t.match(await victim, { reason: 'its synthesis thread hangs' });
    t.same(dispatcher.voices.speakerIds, ['scripted', 'stranger']);
    t.match(await speak(dispatcher, long), { ending: 'closed', letters: long });
    voices.letGo();
    await eventually(() => dispatcher.threads.generations.status().hungThreads === 0);
    t.ok(await dispatcher.close(endMs));
  }
});
