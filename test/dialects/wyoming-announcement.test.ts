/** What is read of the questions that anybody in the network may send. */
import type { Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import t from 'tap';
import { Buckets } from '../../src/buckets.js';
import { guard } from '../../src/dialects/wyoming/announcement.js';
import { limits } from '../../src/limits.js';

t.test('questions that take long use up the time for reading, and long ones are dropped', (t) => {
  const socket = new EventEmitter() as Socket;
  const readMs = limits.discoveryMsAtOnceMax * 0.6;
  const read: number[] = [];
  let nowMs = 0;
  const clock = () => nowMs;
  socket.on('message', ({ length }: Buffer) => {
    read.push(length);
    nowMs += readMs;
  });
  // So slow that no time comes back during the test.
  const everyMs = 1_000_000;
  const times = new Buckets({
    ...{ atOnceMax: limits.discoveryMsAtOnceMax, everyMs, countedMax: 1, clock },
  });
  guard(socket, times, limits, clock);
  const lengths = [limits.discoveryBytesMax + 1, limits.discoveryBytesMax, 12, 13];
  for (const length of lengths) socket.emit('message', Buffer.alloc(length), {});
  t.strictSame(read, [limits.discoveryBytesMax, 12]);
  t.end();
});
