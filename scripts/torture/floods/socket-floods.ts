/** Floods over WebSockets: control frames, tiny frames, contexts, flushes, oversized messages. */
import { limits } from '../../../src/limits.js';
import { encodeFrame, encodeMessage, encodeStart, opcodes } from '../../rig/socket.js';
import { Tally } from '../../rig/tally.js';
import { openSockets, type CountingSocket, type Flood, type FloodParts, type FloodResult } from './flood.js';

const socketCount = 20;
/** Frames in one write. */
const burst = 500;

const sumOf = (sockets: readonly CountingSocket[], part: 'counts' | 'errors'): Tally => {
  const sum = new Tally();
  for (const socket of sockets) sum.merge(socket[part]);
  return sum;
};

interface Flooding {
  readonly sockets: readonly CountingSocket[];
  /** Sockets that answered everything. */
  readonly caughtUp: number;
  readonly frames: number;
}

/** Sends the same frames to each socket in bursts, each burst after the answers to the one before. */
const floodSockets = async (
  { service, keys, progress }: FloodParts,
  frames: number,
  frameAt: (index: number) => Uint8Array,
  prepare: (socket: CountingSocket) => void = () => undefined,
): Promise<Flooding> => {
  const sockets = await openSockets(service.port, await keys(4), socketCount);
  for (const socket of sockets) prepare(socket);
  let caughtUp = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      for (let at = 0; at < frames; at += burst) {
        const length = Math.min(burst, frames - at);
        socket.write(Buffer.concat(Array.from({ length }, (_, i) => frameAt(at + i))));
        if (!(await socket.caughtUp())) return;
        progress(`${at} of ${frames} frames on each of ${socketCount} sockets`);
      }
      caughtUp++;
    }),
  );
  return { sockets, caughtUp, frames: frames * sockets.length };
};

const ended = ({ sockets, caughtUp, frames }: Flooding, isRight: boolean): FloodResult => {
  for (const socket of sockets) socket.close();
  const answers = sumOf(sockets, 'counts').toString();
  const stayed = `${caughtUp} of ${sockets.length} sockets answered it all`;
  return { count: frames, outcome: `${stayed}; ${answers}`, held: isRight && caughtUp === sockets.length };
};

export const pings: Flood = {
  fault: 'pings and pongs',
  injected: 'control frames of 0 to 125 bytes over 20 WebSockets',
  async run(parts) {
    const flooding = await floodSockets(parts, parts.count * 10, (i) =>
      encodeFrame(Buffer.alloc(i % 126), { opcode: i % 4 === 3 ? opcodes.pong : opcodes.ping }),
    );
    return ended(flooding, true);
  },
};

export const tinyFrames: Flood = {
  fault: 'tiny frames',
  injected: 'empty, binary, broken and unknown messages, empty texts, over 20 WebSockets',
  async run(parts) {
    const messages = [
      encodeFrame(Buffer.alloc(0), { opcode: opcodes.text }),
      encodeFrame(Buffer.from('{}'), { opcode: opcodes.text }),
      encodeFrame(Buffer.from('['), { opcode: opcodes.binary }),
      encodeMessage({ send_text: '', context_id: 'a' }),
      encodeMessage({ send_text: ' ', context_id: 'nobody' }),
    ];
    const frames = parts.count * 5;
    const flooding = await floodSockets(
      parts,
      frames,
      (i) => messages[i % messages.length]!,
      (socket) => socket.start(parts.voice, 'a'),
    );
    const errors = flooding.sockets.every((socket) => socket.of('error') >= Math.floor(frames / 5) * 4);
    return ended(flooding, errors);
  },
};

/** Errors of a refused start. */
const isRefusal = (error: string): boolean => /^(?:Too many contexts|Service unavailable)/.test(error);

export const startedAndClosed: Flood = {
  fault: 'contexts started and closed',
  injected: 'start_context, then close_context or cancel_context at once, over 20 WebSockets',
  async run(parts) {
    const { voice, count } = parts;
    const frames = count * 2;
    const frameAt = (i: number): Buffer => {
      const context_id = String(i >> 1);
      if (i % 2 === 0) return encodeStart({ voice }, context_id);
      return encodeMessage(
        i % 4 === 1 ? { close_context: true, context_id } : { cancel_context: true, context_id },
      );
    };
    const flooding = await floodSockets(parts, frames, frameAt);
    // A closing context counts as open, so some starts are refused; then the end of that context is unknown.
    const refused = (socket: CountingSocket): number =>
      socket.errors.names.reduce((sum, error) => sum + (isRefusal(error) ? socket.errors.of(error) : 0), 0);
    const accepted = (socket: CountingSocket): number => Math.ceil(frames / 2) - refused(socket);
    await Promise.all(flooding.sockets.map((socket) => socket.until('context_closed', accepted(socket))));
    const isRight = flooding.sockets.every(
      (socket) =>
        accepted(socket) > 0 &&
        socket.of('context_closed') === accepted(socket) &&
        socket.of('error') === 2 * refused(socket),
    );
    return ended(flooding, isRight);
  },
};

export const flushes: Flood = {
  fault: 'flushes',
  injected: 'flushes of nothing, over 20 WebSockets',
  async run(parts) {
    const frames = parts.count * 5;
    const flush = encodeMessage({ flush: true, context_id: 'a' });
    const flooding = await floodSockets(
      parts,
      frames,
      () => flush,
      (socket) => socket.start(parts.voice, 'a'),
    );
    // Flushes above the number that may be pending are answered at once, with an error.
    const answered = (socket: CountingSocket): number => socket.of('flush_completed') + socket.of('error');
    const endMs = performance.now() + 20_000;
    while (performance.now() < endMs && flooding.sockets.some((socket) => answered(socket) < frames))
      await flooding.sockets[0]!.until('other', 1, 50);
    return ended(
      flooding,
      flooding.sockets.every((socket) => answered(socket) >= frames),
    );
  },
};

/** Half of what the others leave. */
const contextsOfOneMax = limits.contextsMax / 2;

/** Starts more contexts than a socket and an account may have. @returns figures while they are open */
const openContextsOf = async (
  { service, keys, voice, progress }: FloodParts,
  accountCount: number,
): Promise<{ asked: number; started: number; openContexts: number; refused: Tally }> => {
  const perSocket = limits.contextsPerSocketMax + 6;
  // Each key has an account of its own.
  const socketsEach = Math.ceil(contextsOfOneMax / limits.contextsPerSocketMax) + 2;
  const sockets = await openSockets(service.port, await keys(accountCount), socketsEach * accountCount);
  for (const [i, socket] of sockets.entries()) {
    for (let context = 0; context < perSocket; context++) socket.start(voice, String(context));
    await socket.caughtUp();
    progress(`${i} of ${sockets.length} sockets`);
  }
  const started = sumOf(sockets, 'counts').of('context_started');
  const { openContexts } = await service.status();
  const refused = sumOf(sockets, 'errors');
  for (const socket of sockets) socket.close();
  return { asked: sockets.length * perSocket, started, openContexts, refused };
};

const describeContexts = ({
  started,
  openContexts,
  refused,
}: Awaited<ReturnType<typeof openContextsOf>>): string =>
  `${started.toLocaleString('en')} started, ${openContexts.toLocaleString('en')} open at once; ` +
  `refused: ${refused.toString()}`;

export const contextsOfOne: Flood = {
  fault: 'contexts up to the caps of socket and account',
  injected: `endless start_context of one account: ${limits.contextsPerSocketMax} a socket, ${contextsOfOneMax} in all`,
  async run(parts) {
    const opened = await openContextsOf(parts, 1);
    // Neighbours have contexts, too: half of what they leave is a little less.
    const held = opened.started > 0.9 * contextsOfOneMax && opened.started <= contextsOfOneMax;
    return { count: opened.asked, outcome: describeContexts(opened), held };
  },
};

export const contextsOfAll: Flood = {
  fault: 'contexts of six accounts',
  injected: `endless start_context of six accounts: each has at most half of what the others leave`,
  async run(parts) {
    const opened = await openContextsOf(parts, 6);
    const held = opened.openContexts < limits.contextsMax;
    return { count: opened.asked, outcome: describeContexts(opened), held };
  },
};

export const oversizedMessages: Flood = {
  fault: 'messages too large',
  injected: 'frames that claim one byte too many up to 2^63 bytes, and messages of that length in fragments',
  async run({ service, keys, count, progress }) {
    const [key = ''] = await keys(1);
    const ends = new Tally();
    const most = BigInt(limits.socketMessageBytesMax);
    const claims = [most + 1n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];
    const fragment = encodeFrame(Buffer.alloc(1_000_000, 'x'), {
      opcode: opcodes.continuation,
      isFinal: false,
    });
    const total = Math.ceil(count / 5);
    for (let index = 0; index < total; index++) {
      const [socket] = await openSockets(service.port, [key], 1);
      if (index % 10 === 9) {
        socket!.write(encodeFrame(Buffer.from('{'), { opcode: opcodes.text, isFinal: false }));
        for (let part = 0; part < 5; part++) socket!.write(fragment);
      } else {
        const claimedLength = claims[index % claims.length]!;
        socket!.write(
          encodeFrame(Buffer.alloc(1_000), { opcode: opcodes.text, lengthBytes: 8, claimedLength }),
        );
      }
      await socket!.until('other', 1, 5_000);
      ends.add(socket!.end ?? 'kept');
      socket!.close();
      progress(`${index} of ${total} sockets`);
    }
    return {
      count: total,
      outcome: `the service drops the socket: ${ends.toString()}`,
      held: ends.of('kept') === 0,
    };
  },
};
