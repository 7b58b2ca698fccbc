/** Clients that ask for much speech and read little or nothing of it, over HTTP and WebSockets. */
import { setTimeout as sleep } from 'node:timers/promises';
import { heldBytesPerMs } from '../../../src/speech/audio-budget.js';
import { limits } from '../../../src/limits.js';
import { unitBytes } from '../../../src/worst-case.js';
import { encodeRequest, speechRequest } from '../../rig/http.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { encodeHandshake, encodeMessage, encodeStart } from '../../rig/socket.js';
import type { Flood } from './flood.js';

/**
 * Bytes a second; playback would take 64 kB/s. A reader at the last rate is never dropped. Below it, the system may open
 * the TCP window so rarely (when a sixteenth of its buffer is read) that the service sees no progress for a minute: the
 * buffers of the loopback grow to 32 MB.
 */
const rates = [0, 0, 1_000, 20_000, 50_000];
const tickMs = 250;
const statusEveryS = 5;
/** More than a reader may stall. */
const runMs = 75_000;
/** A reader stalls when the system's buffers are full, which takes longer on a busy machine. */
const droppedMsMax = 240_000;
const readersPerKey = 9;
/** Each reader makes the service fill all buffers at once, so they begin one after the other. */
const newEveryMs = 500;

/** Of the voices; and the default rate of a WebSocket, which takes more memory. */
const engineSampleRateHz = 24_000;
const sampleRateHz = 32_000;
/** A segment begins while less than `unsentAudioMsMax` is unsent, and is then made whole; for slow speech. */
const segmentMsMax = limits.segmentCharactersMax * 100;
/** The memory of one reader by the documented bounds (scripts/deploy/limits.md), without buffers of the kernel. */
const readerMiBMax =
  ((limits.unsentAudioMsMax + segmentMsMax) *
    heldBytesPerMs({ encoding: 'pcm', sampleRateHz }, engineSampleRateHz) +
    limits.socketBufferedBytesMax +
    unitBytes.context) /
  2 ** 20;
/** Neighbours, and garbage that the front and actor threads have not collected yet. */
const slackMiB = 128;

const text = 'The client is in no hurry to hear this, so the service has to keep it for now. '.repeat(60);

interface SlowReader {
  readonly client: RawConnection;
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
      progress(`${i} of ${readerCount} slow readers have begun`);
      await sleep(newEveryMs);
      const key = all[Math.floor(i / readersPerKey)]!;
      const client = new RawConnection(service);
      readers.push({ client, rate: rates[Math.floor(i / 2) % rates.length]!, allowance: 0 });
      if (i % 2 === 0) client.write(encodeRequest(speechRequest({ key, voice, text })));
      else {
        client.write(encodeHandshake(key));
        await client.answered();
        client.write(
          Buffer.concat([
            encodeStart({ voice }),
            encodeMessage({ send_text: text }),
            encodeMessage({ close_context: true }),
          ]),
        );
      }
      client.socket.pause();
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
    // The requests in flight include the neighbours' two sockets and two streams.
    const leftMax = readerCount - silent + 4;
    let requestsInFlight = Number.POSITIVE_INFINITY;
    let waitedMs = 0;
    while (waitedMs < runMs || (requestsInFlight > leftMax && waitedMs < droppedMsMax)) {
      await sleep(tickMs);
      waitedMs = performance.now() - startedMs;
      const seconds = Math.round(waitedMs / 1000);
      progress(`${seconds} s with ${readerCount} slow readers`);
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
      `the service drops those that read nothing (${silent}): after ${Math.round(waitedMs / 1000)} s it serves ${requestsInFlight} of all; ` +
      `it cut ${closedEarly} of those at 50 kB/s; ` +
      `memory ${rssMiBBefore} to at most ${rssMiBMax} MiB, allowed by the limits ${rssMiBAllowed}`;
    const held = closedEarly === 0 && requestsInFlight <= leftMax && rssMiBMax <= rssMiBAllowed;
    return { count: readerCount, outcome, held };
  },
};
