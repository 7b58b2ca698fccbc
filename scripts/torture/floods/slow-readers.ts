/** Clients who have much spoken and read little of it, or nothing, over HTTP and WebSockets. */
import { setTimeout as sleep } from 'node:timers/promises';
import { heldBytesPerMs } from '../../../src/speech/audio-budget.js';
import { limits } from '../../../src/limits.js';
import { unitBytes } from '../../../src/worst-case.js';
import { encodeMessage } from '../../rig-old/socket-connection.js';
import { ByteClient, handshakeRequest, speechRequest } from './clients.js';
import type { Flood } from './flood.js';

/**
 * Bytes a second; speech that is heard as it plays is 64 kB/s here. Whoever reads at the last of them is never dropped.
 * Below it, the system may open the window so rarely, once a sixteenth of its buffer is read, that a minute passes
 * between two signs of life: the buffers of the loopback grow to as much as 32 MB.
 */
const rates = [0, 0, 1_000, 20_000, 50_000];
const tickMs = 250;
const statusEveryS = 5;
/** Longer than a reader may stall. */
const runMs = 75_000;
/** A reader stalls when the system's buffers are full, which a busy machine fills late. */
const droppedMsMax = 240_000;
const readersPerKey = 9;
/** Each has as much made at once as the system and the service keep for it: not all shall ask for that together. */
const newEveryMs = 500;

/** Of the voices; and what a WebSocket gets that asks for none, which is the more of both halves. */
const engineSampleRateHz = 24_000;
const sampleRateHz = 32_000;
/** A segment begins as long as less than `unsentAudioMsMax` is unsent, and is then made whole; slow speech. */
const segmentMsMax = limits.segmentCharactersMax * 100;
/** What the documented bounds let one of them take (scripts/deploy/limits.md), kernel's buffers not included. */
const readerMiBMax =
  ((limits.unsentAudioMsMax + segmentMsMax) *
    heldBytesPerMs({ encoding: 'pcm', sampleRateHz }, engineSampleRateHz) +
    limits.socketBufferedBytesMax +
    unitBytes.context) /
  2 ** 20;
/** Neighbours, and garbage of two kinds of threads that is not collected yet. */
const slackMiB = 128;

const text = 'Nobody is in a hurry to hear this, and still it has to be kept until somebody is. '.repeat(60);

interface SlowReader {
  readonly client: ByteClient;
  readonly rate: number;
  allowance: number;
}

export const slowReaders: Flood = {
  fault: 'slow readers',
  injected: 'five minutes of speech each, read at 0, 1, 20 and 50 kB/s, half over HTTP, half over WebSockets',
  async run({ service, voice, count, keys, progress }) {
    const readerCount = Math.ceil(count / 10);
    const all = await keys(Math.ceil(readerCount / readersPerKey));
    const rssMiBBefore = (await service.status()).rssMiB;
    const readers: SlowReader[] = [];
    const reading = setInterval(() => {
      for (const reader of readers) {
        if (reader.rate === 0 || reader.client.isClosed) continue;
        reader.allowance += (reader.rate * tickMs) / 1000;
        if (reader.allowance > 0) reader.client.socket.resume();
      }
    }, tickMs);
    for (let i = 0; i < readerCount; i++) {
      progress(`${String(i)} of ${String(readerCount)} slow readers have begun`);
      await sleep(newEveryMs);
      const key = all[Math.floor(i / readersPerKey)]!;
      const client = new ByteClient(service.port);
      readers.push({ client, rate: rates[Math.floor(i / 2) % rates.length]!, allowance: 0 });
      if (i % 2 === 0) client.socket.write(speechRequest(key, voice, text));
      else {
        client.socket.write(handshakeRequest(key));
        await client.status();
        client.socket.write(
          Buffer.concat([
            encodeMessage({ start_context: { voice_id: voice, model_id: 'default' } }),
            encodeMessage({ send_text: text }),
            encodeMessage({ close_context: true }),
          ]),
        );
      }
      client.socket.pause();
      // What it reads when it is resumed for a moment.
      client.socket.on('data', (bytes) => {
        const reader = readers[i]!;
        reader.allowance -= bytes.length;
        if (reader.allowance <= 0) client.socket.pause();
      });
    }
    const startedMs = performance.now();
    let rssMiBMax = 0;
    let secondsBefore = 0;
    const silent = readers.filter(({ rate }) => rate === 0).length;
    // The neighbours' two sockets and two streams are among those in flight.
    const leftMax = readerCount - silent + 4;
    let requestsInFlight = Number.POSITIVE_INFINITY;
    let waitedMs = 0;
    while (waitedMs < runMs || (requestsInFlight > leftMax && waitedMs < droppedMsMax)) {
      await sleep(tickMs);
      waitedMs = performance.now() - startedMs;
      const seconds = Math.round(waitedMs / 1000);
      progress(`${String(seconds)} s with ${String(readerCount)} slow readers`);
      if (seconds - secondsBefore < statusEveryS) continue;
      secondsBefore = seconds;
      const status = await service.status();
      requestsInFlight = status.requestsInFlight;
      rssMiBMax = Math.max(rssMiBMax, status.rssMiB);
    }
    clearInterval(reading);
    const closedEarly = readers.filter(({ client, rate }) => client.isClosed && rate === rates.at(-1)).length;
    for (const { client } of readers) client.reset();
    const rssMiBAllowed = Math.round(rssMiBBefore + readerCount * readerMiBMax + slackMiB);
    const outcome =
      `those who read nothing (${String(silent)}) are dropped: after ${String(Math.round(waitedMs / 1000))} s ${String(requestsInFlight)} of all are still served; ` +
      `${String(closedEarly)} of those at 50 kB/s were cut; ` +
      `memory ${String(rssMiBBefore)} to ${String(rssMiBMax)} MiB at most, by the limits ${String(rssMiBAllowed)}`;
    const held = closedEarly === 0 && requestsInFlight <= leftMax && rssMiBMax <= rssMiBAllowed;
    return { count: readerCount, outcome, held };
  },
};
