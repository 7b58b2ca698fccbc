import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { packCommands, packFrames, unpackCommands, unpackFrames } from '../../src/threads/mail.js';
import type { ActorCommand, Frame } from '../../src/threads/messages.js';
import { TickBatch } from '../../src/tick.js';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));

t.test('frames come out as they went in, in order, whatever their words hold', async (t) => {
  const timings = {
    words: ['a', '\ud800', 'ü🎉'],
    start_seconds: [0, 0.1, 0.2],
    end_seconds: [0.1, 0.2, 0.3],
  };
  const frames: Frame[] = [
    { type: 'audio', contextId: 2 ** 40, segment: 0, durationMs: 12.5, bytes: bytes('one') },
    { type: 'timestamps', contextId: 1, timings, bytes: bytes('two') },
    { type: 'flushed', contextId: 1, flushId: 'f' },
    { type: 'audio', contextId: 1, segment: 7, durationMs: 0, bytes: bytes('') },
    { type: 'head', contextId: 1, bytes: bytes('three') },
    { type: 'closed', contextId: 1 },
    { type: 'failed', contextId: 3, reason: 'why' },
  ];
  const mail = packFrames(frames);
  t.equal(mail.body.byteLength, 'onetwothree'.length, 'one buffer for all bytes');
  t.same(unpackFrames(structuredClone(mail)), frames);
});

t.test('a mail after a large one carries its own bytes and no others', async (t) => {
  const large = 'x'.repeat(1_000_000);
  packCommands([{ type: 'flush', contextId: 1, flushId: large }]);
  const commands = packCommands([{ type: 'cancel', contextId: 1 }]);
  t.equal(commands.buffer.byteLength, commands.byteLength);
  packFrames([{ type: 'flushed', contextId: 1, flushId: large }]);
  const { heads } = packFrames([{ type: 'closed', contextId: 1 }]);
  t.equal(heads.buffer.byteLength, heads.byteLength);
});

t.test('commands come out as they went in', async (t) => {
  const format = { encoding: 'pcm', sampleRateHz: 8_000 } as const;
  const commands: ActorCommand[] = [
    {
      ...{ type: 'open', contextId: 5, format, framing: 'whole', timestamps: true },
      ...{ engineSampleRateHz: 24_000, clock: 7 },
    },
    { type: 'segment', contextId: 5, segment: 0, words: ['x', '\udc00y'], tokenContinues: true },
    { type: 'close', contextId: 5 },
    { type: 'cancel', contextId: 6 },
  ];
  t.same(unpackCommands(packCommands(commands)), commands);
});

t.test('what is added within a tick leaves together at its end', async (t) => {
  const sent: number[][] = [];
  const batch = new TickBatch<number>((items) => sent.push(items));
  batch.add(1);
  batch.add(2);
  t.same(sent, []);
  await Promise.resolve();
  batch.add(3);
  t.same(sent, [], 'a microtask is not the end of it');
  await setImmediate();
  t.same(sent, [[1, 2, 3]]);
  batch.add(4);
  await setImmediate();
  t.same(sent, [[1, 2, 3], [4]]);
});
