import { MessageChannel, Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { Changes } from '../../../scripts/rig/changes.js';
import { unpackFrames, type FrameMail } from '../../../src/threads/mail.js';
import type {
  ActorCommand,
  ActorError,
  ActorReady,
  ActorThreadData,
  ActorThreadMessage,
  ChunkMail,
  Frame,
} from '../../../src/threads/messages.js';
import { limits } from '../../../src/limits.js';
import { encodingNames } from '../../../src/api/formats.js';
import { EffortTable } from '../../../src/threads/effort.js';
import { ClockTable } from '../../../src/threads/playback-clock.js';
import { Vitals } from '../../../src/threads/vitals.js';
import type { AudioFormat } from '../../../src/api/formats.js';

const RATE_HZ = 24_000;
const CHUNKS = 40;

const commandsFor = (contextId: number, format: AudioFormat): ActorCommand[] => [
  {
    ...{ type: 'open', contextId, format, framing: 'stream', timestamps: false },
    ...{ engineSampleRateHz: RATE_HZ, clock: contextId },
  },
  { type: 'segment', contextId, segment: 0, words: [], tokenContinues: false },
  { type: 'close', contextId },
];

const chunksFor = (contextId: number, chunks: number): ChunkMail[] => {
  const tone = (start: number) =>
    Int16Array.from({ length: RATE_HZ }, (_, i) => 9_000 * Math.sin((start + i) / 11));
  return [
    ...Array.from({ length: chunks }, (_, i): ChunkMail => {
      const startSample = i * RATE_HZ;
      return { type: 'chunk', contextId, segment: 0, startSample, pcm: tone(startSample), words: [] };
    }),
    { type: 'segment-done', contextId, segment: 0, samples: chunks * RATE_HZ },
  ];
};

/** An actor thread, with a port on which audio comes. */
const startThread = async (t: Test) => {
  const clocks = new ClockTable(10);
  const workerData: ActorThreadData = {
    actor: 0,
    bounds: limits,
    vitals: new Vitals().buffer,
    effort: new EffortTable(encodingNames.length).buffer,
    clocks: clocks.buffer,
  };
  const worker = new Worker(new URL('../../../workers/actors.js', import.meta.url), { workerData });
  t.teardown(() => worker.terminate());
  const { port1: synthesis, port2 } = new MessageChannel();
  t.teardown(() => synthesis.close());
  const mails: Frame[][] = [];
  const errors: string[] = [];
  const changes = new Changes();
  worker.on('message', (mail: FrameMail | ActorError | ActorReady) => {
    if ('encodingCosts' in mail) return;
    if ('reason' in mail) errors.push(mail.reason);
    else mails.push(unpackFrames(mail));
    changes.notify();
  });
  const until = (condition: () => boolean): Promise<void> => changes.until(condition);
  const command = (...commands: ActorCommand[]) =>
    worker.postMessage({ type: 'commands', commands } satisfies ActorThreadMessage);
  const link = () =>
    worker.postMessage({ type: 'synthesis', port: port2 } satisfies ActorThreadMessage, [port2]);
  const framesOf = (contextId: number) => mails.flat().filter((frame) => frame.contextId === contextId);
  return { synthesis, mails, errors, until, command, link, framesOf };
};

const pcm = { encoding: 'pcm', sampleRateHz: 24_000 } as const;

t.test('first audio does not wait until all that came before is encoded', async (t) => {
  const { synthesis, mails, until, command, link, framesOf } = await startThread(t);
  // All of it is there when the thread first looks.
  const opus = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 } as const;
  for (const mail of [...chunksFor(1, CHUNKS), ...chunksFor(2, 1)]) synthesis.postMessage(mail);
  command(...commandsFor(1, opus), ...commandsFor(2, pcm));
  link();
  await until(() => mails.flat().filter(({ type }) => type === 'closed').length === 2);
  const audio = mails.flat().filter(({ type }) => type === 'audio');
  const long = framesOf(1).filter(({ type }) => type === 'audio').length;
  t.ok(long >= CHUNKS * 5, 'a frame each 200 ms at most');
  const before = audio.findIndex(({ contextId }) => contextId === 2);
  t.ok(before < long / 2, `${before} of ${long} frames went before the first of the other`);
  t.ok(mails.length > 10, 'frames go when they are made');
});

t.test('a lost chunk fails its context with the reason, and no other', async (t) => {
  const { synthesis, errors, until, command, link, framesOf } = await startThread(t);
  command(...commandsFor(1, pcm), ...commandsFor(2, pcm));
  link();
  const lost = chunksFor(1, 3);
  lost.splice(1, 1);
  for (const mail of [...lost, ...chunksFor(2, 3)]) synthesis.postMessage(mail);
  await until(() => framesOf(2).at(-1)?.type === 'closed' && framesOf(1).at(-1)?.type === 'failed');
  t.match(framesOf(1).at(-1), { reason: 'segment 0: samples 48000 to 72000 came after the first 24000' });
  t.notOk(framesOf(1).some(({ type }) => type === 'closed'));
  t.strictSame(errors, [], 'its other mail is of a context that is over');
});

t.test('mail for a context that never was is reported; mail for one that is over is not', async (t) => {
  const { synthesis, errors, until, command, link, framesOf } = await startThread(t);
  link();
  command({ type: 'flush', contextId: 5, flushId: 'f' }, ...commandsFor(6, pcm));
  for (const mail of [...chunksFor(6, 1), ...chunksFor(2 ** 40, 1)]) synthesis.postMessage(mail);
  await until(() => framesOf(6).at(-1)?.type === 'closed' && errors.length === 2);
  command({ type: 'cancel', contextId: 6 }, { type: 'cancel', contextId: 3 }, ...commandsFor(7, pcm));
  for (const mail of [...chunksFor(6, 1), ...chunksFor(7, 1)]) synthesis.postMessage(mail);
  await until(() => framesOf(7).at(-1)?.type === 'closed');
  t.strictSame(errors, [
    '"flush" came for a context that was never opened: 5',
    'audio came for a context of another thread: 1099511627776',
  ]);
});
