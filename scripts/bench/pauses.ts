/** How long the front thread stops for what one caller, or the operator, can do to a service that many listen to. */
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { operate } from '../operator.js';
import { encodeRequest, exchange } from '../rig/http.js';
import { LoadProcess } from '../rig/load-process.js';
import { inScratch } from '../rig/machine.js';
import { RawConnection } from '../rig/raw-connection.js';
import { type Service, type ServiceOptions, withService } from '../rig/service.js';
import { percentile } from '../rig/statistics.js';
import { SocketConnection, encodeMessage, encodeStart, opcodes, encodeFrame } from '../rig/socket.js';
import { longText, throughputText } from '../rig/texts.js';
import type { Load } from './load.js';
import { type Pauses, trimPathOf } from './pause-probe.js';
import { count, ms, row, type Row } from './report.js';
import type { Spoken, Target } from './streams.js';

const pauseMsMax = 15;
const listeners = 48;
const spreadMs = 3_000;
const calmMs = 5_000;
/** After each thing that is done: what it leaves behind is part of it. */
const settleMs = 500;
const repetitions = 5;
const probeEveryMs = 4;

/** Idle WebSockets of one key: of N accounts that take all they may, each has 1 / (N + 1) of them. */
const socketsPerKey = 900;

/** The first key does the harm; a key has nine slots. */
const listenerKeys = [1, 9] as const;
const idleKeys = [9, 25] as const;

const loadEntry = new URL('./load.js', import.meta.url);
const probeEntry = new URL('./pause-probe.js', import.meta.url);

/** Fills a message or body up to a size. */
const filled = (head: string, piece: string, tail: string, bytes: number): Buffer =>
  Buffer.from(head + piece.repeat(Math.floor((bytes - head.length - tail.length) / piece.length)) + tail);

const keysObject = (keys: number): Buffer =>
  Buffer.from(`{${Array.from({ length: keys }, (_, i) => `"${i.toString(36)}":0`).join(',')}}`);

/**
 * Microseconds until a new page of memory can be used: usually under 1. A virtual machine whose host takes free memory
 * back needs 20, and large messages then stop the front thread longer than their parsing does.
 */
const firstTouchUs = (): number => {
  const pageBytes = 4096;
  const memory = Buffer.allocUnsafeSlow(64 * 1024 * 1024);
  const startMs = performance.now();
  for (let at = 0; at < memory.length; at += pageBytes) memory[at] = 1;
  return (1_000 * (performance.now() - startMs)) / (memory.length / pageBytes);
};

/** A WebSocket of the bench. @returns `ask`, which resolves with the answer to a message */
const openSocket = async (target: Target, key: string) => {
  let onAnswer: (json: string) => void = () => undefined;
  const connection = new SocketConnection(
    { port: target.port, key },
    {
      onAudio: () => undefined,
      onMessage: (json) => onAnswer(json),
      onError: (error) => onAnswer(String(error)),
    },
  );
  await connection.opened();
  return {
    connection,
    ask: (frame: Buffer): Promise<string> =>
      new Promise((resolve) => {
        onAnswer = resolve;
        connection.write(frame);
      }),
  };
};

const until = async (condition: () => boolean | Promise<boolean>, otherwise: string): Promise<void> => {
  const endMs = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(otherwise);
    await sleep(50);
  }
};

type Cases = readonly (readonly [what: string, payload: Buffer])[];

const frameBytes = limits.socketMessageBytesMax;

/** Frames that the service refuses. */
const refusedFrames: Cases = [
  ['A frame of 1 MiB, nested: `{"x":[[[[...`', filled('{"x":', '[', '', frameBytes)],
  ['A frame of 1 MiB of objects: `{"x":[{},{},...`', filled('{"x":[', '{},', '{}]}', frameBytes)],
  ['A frame of 90,000 keys', keysObject(90_000)],
  ['A frame of 1 MiB, one string', filled('{"x":"', 'a', '"}', frameBytes)],
  ['A frame of 1 MiB, a text that is too long', filled('{"send_text":"', 'a', '"}', frameBytes)],
];

const spokenTexts = (): Cases => {
  const around = ['{"send_text":"', '"}'] as const;
  const bytes = limits.socketTextBytesMax + around.join('').length;
  const spoken = (piece: string, bytesMax: number): Buffer => filled(around[0], piece, around[1], bytesMax);
  return [
    ['A text of 256 KiB in a frame', spoken(longText.replaceAll('"', ''), bytes)],
    ['The same in Chinese', spoken('你好，世界。', bytes / 3)],
    ['A text of 256 KiB of white space in a frame', spoken(' ', bytes)],
    ['A text of 175,000 characters, all escaped, in a frame of 1 MiB', spoken('\\u0061', frameBytes)],
  ];
};

const bodiesFor = (voice: string): Cases => {
  const bytes = limits.bodyBytesMax;
  const speech = (text: string, size: number) => filled('{"text":"', text, `","voice":"${voice}"}`, size);
  return [
    ['A body of 1 MiB of objects', filled('{"x":[', '{},', '{}]}', bytes)],
    ['A body of 1 MiB of keys', keysObject(100_000)],
    ['A body of as many keys as it may have', keysObject(limits.bodyTokensMax / 2 - 1)],
    ['A body of 1 MiB of unclosed brackets', filled('', '[', '', bytes)],
    ['A body of 1 MiB, one string without an end', filled('{"x":"', '\\u0061', '', bytes)],
    ['A body of 1 MiB, one wrong value', filled('{"text":{"x":"', '\\u0001', '"}}', bytes)],
    ['A text of 1 MiB in a body', speech('The tide is in. ', bytes)],
    ['The same in Chinese', speech('你好，世界。', bytes / 3)],
  ];
};

const expect = (answer: string, part: string): void => {
  if (!answer.includes(part)) throw new Error(`the service sent ${answer}`);
};

class PauseBench {
  readonly rows: Row[] = [];
  readonly #load: Load;
  readonly #prober: Load = new LoadProcess(loadEntry);
  readonly #service: Service;
  readonly #target: Target;
  readonly #probePath: string;

  constructor(load: Load, service: Service, target: Target, probePath: string) {
    this.#load = load;
    this.#service = service;
    this.#target = target;
    this.#probePath = probePath;
  }

  async run(): Promise<void> {
    try {
      const heard = this.#load.call('listen', {
        ...{ target: this.#of(listenerKeys), text: throughputText, transport: 'http', listeners, spreadMs },
        durationMs: Infinity,
      });
      heard.catch(() => undefined);
      await sleep(spreadMs + settleMs);
      await this.#doAll();
      await this.#load.call('endListening');
      const { dry, dryMsMax, firstAudioMs } = await heard;
      this.rows.push(
        row(
          `Of the ${listeners} listeners meanwhile`,
          `p99 of first audio ${ms(percentile(firstAudioMs, 0.99))}; ${dry} ran dry, ${ms(dryMsMax)} at most`,
        ),
      );
    } finally {
      this.#prober.close();
    }
  }

  async #doAll(): Promise<void> {
    this.rows.push(row('First touch of a page of memory on this machine', `${firstTouchUs().toFixed(1)} µs`));
    await this.#measure('Nothing', () => sleep(calmMs), false);
    await this.#measure('Three trims of the heaps, five seconds apart', () => this.#trims());
    await this.#measure('Unread log, 4,000 refusals', () => this.#unreadLog());
    await this.#frames();
    await this.#texts();
    await this.#bodies();
    await this.#manySockets();
  }

  async #trims(): Promise<void> {
    for (let i = 0; i < 3; i++) {
      await sleep(5_000);
      await textOf(connect(trimPathOf(this.#probePath)));
    }
  }

  #linesWith(message: string): string[] {
    return this.#service.lines.filter((line) => line.includes(`"msg":"${message}"`));
  }

  /** Does something, and adds a row with the longest pause meanwhile. */
  async #measure(what: string, work: () => Promise<unknown>, hasBar = true): Promise<void> {
    process.stderr.write(`  ${what}\n`);
    await this.#readPauses();
    const probed = this.#prober.call('probe', { target: this.#of(listenerKeys), everyMs: probeEveryMs });
    probed.catch(() => undefined);
    await work();
    await sleep(settleMs);
    const { ownMs, wallMs } = await this.#readPauses();
    await this.#prober.call('endProbe');
    const answeredMs = await probed;
    const longestMs = ownMs ?? wallMs;
    const cores = ownMs === null ? '' : `; with waits for a core ${ms(wallMs)}`;
    const figure = `${ms(longestMs)}${cores}; slowest answer meanwhile ${ms(answeredMs)}`;
    const bar = `at most ${pauseMsMax} ms`;
    this.rows.push(hasBar ? row(what, figure, bar, longestMs <= pauseMsMax) : row(what, figure));
  }

  #of([begin, end]: readonly [number, number]): Target {
    return { ...this.#target, keys: this.#target.keys.slice(begin, end) };
  }

  async #readPauses(): Promise<Pauses> {
    return JSON.parse(await textOf(connect(this.#probePath))) as Pauses;
  }

  /** Each of them writes a line of the log. */
  async #unreadLog(): Promise<void> {
    this.#service.stopReading();
    const bytes = encodeRequest({ path: '/v1/tts/speakers', key: 'svc_sk_of_nobody' });
    const statuses = await this.#load.call('repeat', { target: this.#target, bytes, times: 4_000 });
    if (statuses.join() !== '401') throw new Error(`the service answered ${statuses.join()}`);
    this.#service.goOnReading();
  }

  async #frames(): Promise<void> {
    const key = this.#target.keys[0]!;
    const tooLong = encodeFrame(filled('{"x":', '[', '', 4 * frameBytes), { opcode: opcodes.text });
    await this.#measure('A frame of 4 MiB: the library drops its WebSocket', async () => {
      for (let i = 0; i < repetitions; i++) {
        const { ask, connection } = await openSocket(this.#target, key);
        expect(await ask(tooLong), 'Error: ');
        connection.close();
        await sleep(100);
      }
    });
    for (const [what, payload] of refusedFrames) {
      const frame = encodeFrame(payload, { opcode: opcodes.text });
      await this.#measure(what, async () => {
        const { ask, connection } = await openSocket(this.#target, key);
        for (let i = 0; i < repetitions; i++) {
          expect(await ask(frame), 'invalid frame: ');
          await sleep(100);
        }
        connection.close();
      });
    }
  }

  async #texts(): Promise<void> {
    for (const [what, payload] of spokenTexts())
      await this.#measure(what, async () => {
        for (let i = 0; i < 3; i++) {
          const { ask, connection } = await openSocket(this.#target, this.#target.keys[0]!);
          expect(await ask(encodeStart(this.#target)), 'context_started');
          connection.write(encodeFrame(payload, { opcode: opcodes.text }));
          await sleep(settleMs);
          expect(await ask(encodeMessage({ cancel_context: true })), 'context_closed');
          connection.close();
        }
      });
  }

  async #bodies(): Promise<void> {
    for (const [what, body] of bodiesFor(this.#target.voice))
      await this.#measure(what, async () => {
        for (let i = 0; i < repetitions; i++) await this.#post(body);
      });
  }

  /** Leaves soon after the answer has begun. */
  async #post(body: Buffer): Promise<void> {
    const connection = new RawConnection(this.#target);
    const head = [
      'POST /v1/tts/stream HTTP/1.1',
      'Host: rig',
      `X-Api-Key: ${this.#target.keys[0]!}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    connection.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
    await connection.answered();
    await sleep(100);
    connection.reset();
    await connection.closed;
  }

  async #manySockets(): Promise<void> {
    const [plan] = this.#linesWith('worst case');
    const { socketsMax } = JSON.parse(plan ?? '{"socketsMax":0}') as { socketsMax: number };
    // Some are for others, and an account may have only so many.
    const target = this.#of(idleKeys);
    const { keys } = target;
    const sockets = Math.min(socketsMax - 200, keys.length * socketsPerKey);
    await this.#load.call('openIdle', { target, sockets });
    await sleep(settleMs);
    const with_ = `${count(sockets)} idle WebSockets`;
    await this.#measure(`Beats of ${with_}`, () => sleep(5_000));
    await this.#measure(`Scrapes of the metrics, with ${with_}`, async () => {
      for (let i = 0; i < repetitions; i++) {
        const { status } = await exchange(this.#service.opsPort, { path: '/metrics' });
        if (status !== 200) throw new Error(`the scrape was answered ${status}`);
        await sleep(200);
      }
    });
    await this.#measure(`A reload of the voices, with ${with_}`, async () => {
      this.#service.signal('SIGHUP');
      await until(() => this.#linesWith('voices reloaded').length > 0, 'the voices are not reloaded');
    });
    const ofKey = Math.floor(sockets / keys.length);
    await this.#measure(`A revoked key with ${count(ofKey)} of them`, async () => {
      const before = await this.#load.call('idleLeft');
      await operate(this.#service.dataDir, async (administration) => administration.revoke(keys[0]!));
      await until(
        async () => (await this.#load.call('idleLeft')) <= before - ofKey,
        'the WebSockets of the key stay open',
      );
    });
    // Mostly the library's and the system's work, which cannot be done in slices.
    await this.#measure(
      `${count(sockets - ofKey)} WebSockets that leave at once`,
      async () => {
        await this.#load.call('closeIdle');
        await sleep(2_000);
      },
      false,
    );
  }
}

export const measurePauses = (load: Load, spoken: Spoken, options: ServiceOptions): Promise<Row[]> =>
  inScratch((folder) => {
    const probePath = join(folder, 'probe');
    const nodeOptions = ['--import', probeEntry.href];
    const env = { PAUSE_PROBE: probePath };
    return withService({ ...options, keepsLines: true, nodeOptions, env }, async (service) => {
      const target = { ...spoken, port: service.port, keys: await service.makeKeys(idleKeys[1]) };
      const bench = new PauseBench(load, service, target, probePath);
      await bench.run();
      return bench.rows;
    });
  });
