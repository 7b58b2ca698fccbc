/** Clients that ask for much speech and read little or nothing of it, through each endpoint. */
import { setTimeout as sleep } from 'node:timers/promises';
import { heldBytesPerMs } from '../../../src/speech/audio-budget.js';
import { limits } from '../../../src/limits.js';
import { unitBytes } from '../../../src/worst-case.js';
import { endpointsOf, EndpointClient } from '../../rig/endpoints.js';
import { freeDialectPorts } from '../../rig/service.js';
import { scenarioOf, type Fault } from '../beside.js';
import { unmet } from '../scenario.js';

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
const format = { encoding: 'pcm', sampleRateHz } as const;
/** A segment begins while less than `unsentAudioMsMax` is unsent, and is then made whole; for slow speech. */
const segmentMsMax = limits.segmentCharactersMax * 100;
/** The memory of one reader by the documented bounds (scripts/deploy/limits.md), without buffers of the kernel. */
const readerMiBMax =
  ((limits.unsentAudioMsMax + segmentMsMax) * heldBytesPerMs(format, engineSampleRateHz) +
    limits.socketBufferedBytesMax +
    unitBytes.context) /
  2 ** 20;
/** Neighbours, and garbage that the front and actor threads have not collected yet. */
const slackMiB = 128;

const text = 'The client is in no hurry to hear this, so the service has to keep it for now. '.repeat(60);

interface SlowReader {
  readonly client: EndpointClient;
  readonly rate: number;
  allowance: number;
}

/** Nine readers share a key and an address, because Wyoming counts slots by address. */
const localAddressOf = (group: number): string => `127.0.0.${2 + group}`;

const slow: Fault = {
  fault: 'slow readers',
  injected: 'five minutes of speech each, read at 0, 1, 20 and 50 kB/s, through each endpoint',
  async inject({ service, voice, count, keys, progress }) {
    const all = await keys(Math.ceil(count / readersPerKey));
    const rssMiBBefore = (await service.status()).rssMiB;
    const readers: SlowReader[] = [];
    const reading = setInterval(() => {
      for (const reader of readers) {
        if (reader.rate === 0 || reader.client.socket.destroyed) continue;
        reader.allowance += (reader.rate * tickMs) / 1000;
        if (reader.allowance > 0) reader.client.socket.resume();
      }
    }, tickMs);
    for (let i = 0; i < count; i++) {
      progress(`${i} of ${count} slow readers have begun`);
      await sleep(newEveryMs);
      const group = Math.floor(i / readersPerKey);
      const { dialectPorts, port } = service;
      const parts = { port, dialectPorts, key: all[group]!, voice, text, format };
      const { requests, sockets } = endpointsOf(parts);
      const endpoints = [...requests, ...sockets];
      const client = new EndpointClient(endpoints[i % endpoints.length]!, {
        localAddress: localAddressOf(group),
      });
      readers.push({ client, rate: rates[Math.floor(i / endpoints.length) % rates.length]!, allowance: 0 });
      await client.asked();
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
    const leftMax = count - silent + 4;
    let requestsInFlight = Number.POSITIVE_INFINITY;
    let waitedMs = 0;
    while (waitedMs < runMs || (requestsInFlight > leftMax && waitedMs < droppedMsMax)) {
      await sleep(tickMs);
      waitedMs = performance.now() - startedMs;
      const seconds = Math.round(waitedMs / 1000);
      progress(`${seconds} s with ${count} slow readers`);
      if (seconds - secondsBefore < statusEveryS) continue;
      secondsBefore = seconds;
      const status = await service.status();
      requestsInFlight = status.requestsInFlight;
      rssMiBMax = Math.max(rssMiBMax, status.rssMiB);
    }
    clearInterval(reading);
    const closedEarly = readers.filter(
      ({ client, rate }) => client.socket.destroyed && rate === rates.at(-1),
    ).length;
    for (const { client } of readers) client.reset();
    const rssMiBAllowed = Math.round(rssMiBBefore + count * readerMiBMax + slackMiB);
    const saw =
      `${silent} read nothing: the service serves ${requestsInFlight} of all after ${Math.round(waitedMs / 1000)} s; ` +
      `memory ${rssMiBBefore} to at most ${rssMiBMax} MiB, allowed by the limits ${rssMiBAllowed}`;
    const conditions = {
      'those at 50 kB/s are served on': closedEarly === 0,
      'those that read nothing are dropped': requestsInFlight <= leftMax,
      'memory is below the limits': rssMiBMax <= rssMiBAllowed,
    };
    return { count, saw, wrong: unmet(conditions) };
  },
};

export const slowReaders = scenarioOf(
  {
    name: 'slow-readers',
    about: 'clients that ask for much speech and read little of it',
    defaultCount: 100,
  },
  [slow],
  { env: freeDialectPorts },
);
