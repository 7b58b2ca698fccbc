import { MessageChannel, Worker } from 'node:worker_threads';
import t from 'tap';
import { packCommands, unpackFrames, type FrameMail } from '../../../src/threads/mail.js';
import { ACTOR_READY } from '../../../src/threads/messages.js';
import type {
  ActorCommand,
  ActorThreadData,
  ActorThreadMessage,
  ChunkMail,
  Frame,
} from '../../../src/threads/messages.js';
import { limits } from '../../../src/limits.js';
import { Vitals } from '../../../src/threads/vitals.js';
import type { AudioFormat } from '../../../src/api/formats.js';

const RATE_HZ = 24_000;
const CHUNKS = 40;

const commandsFor = (contextId: number, format: AudioFormat): ActorCommand[] => [
  { type: 'open', contextId, format, framing: 'stream', timestamps: false, engineSampleRateHz: RATE_HZ },
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

t.test('a first sound does not wait until what came before it is encoded', async (t) => {
  const workerData: ActorThreadData = { bounds: limits, vitals: new Vitals().buffer };
  const worker = new Worker(new URL('../../../workers/actors.js', import.meta.url), { workerData });
  t.teardown(() => worker.terminate());
  const mails: Frame[][] = [];
  const bothClosed = new Promise<void>((resolve) => {
    let closed = 0;
    worker.on('message', (mail: FrameMail | typeof ACTOR_READY) => {
      if (mail === ACTOR_READY) return;
      const frames = unpackFrames(mail);
      mails.push(frames);
      closed += frames.filter(({ type }) => type === 'closed').length;
      if (closed === 2) resolve();
    });
  });
  const { port1, port2 } = new MessageChannel();
  t.teardown(() => port1.close());
  // All of it is there when the thread first looks.
  const opus = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 } as const;
  const pcm = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
  const commands = packCommands([...commandsFor(1, opus), ...commandsFor(2, pcm)]);
  for (const mail of [...chunksFor(1, CHUNKS), ...chunksFor(2, 1)]) port1.postMessage(mail);
  worker.postMessage({ type: 'commands', mail: commands } satisfies ActorThreadMessage);
  worker.postMessage({ type: 'synthesis', port: port2 } satisfies ActorThreadMessage, [port2]);
  await bothClosed;
  const audio = mails.flat().filter(({ type }) => type === 'audio');
  const long = audio.filter(({ contextId }) => contextId === 1).length;
  t.ok(long >= CHUNKS * 5, 'a frame each 200 ms at most');
  const before = audio.findIndex(({ contextId }) => contextId === 2);
  t.ok(before < long / 2, `${before} of ${long} frames went before the first of the other`);
  t.ok(mails.length > 10, 'frames go when they are made');
});
