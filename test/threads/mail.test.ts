import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { packFrames, unpackFrames } from '../../src/threads/mail.js';
import type { Frame } from '../../src/threads/messages.js';
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
    { type: 'flushed', contextId: 1, flushId: '\udc00f' },
    { type: 'audio', contextId: 1, segment: 7, durationMs: 0, bytes: bytes('') },
    { type: 'head', contextId: 1, bytes: bytes('three') },
    { type: 'closed', contextId: 1 },
    { type: 'failed', contextId: 3, reason: 'why' },
  ];
  const mail = packFrames(frames);
  t.equal(mail.body.byteLength, 'onetwothree'.length, 'one buffer for all bytes');
  t.same(unpackFrames(structuredClone(mail)), frames);
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
