/** The service against RFC 6455, case by case. It prints what the server library cannot meet. */
import t from 'tap';
import { SOCKET_PATH } from '../../src/front/ws/sockets.js';
import { GOOD_KEY, eventually, startFront } from '../support/front-server.js';
import { NO_CODE, websocketCases, type Case } from '../support/websocket-cases.js';
import { opcodes, RawSocket } from '../support/websocket-frames.js';

const ALIVE = 'alive';

interface Ending {
  readonly messages: number;
  readonly pongs: readonly string[];
  /** `null`: the connection stays open. 0: it ended without a close frame. */
  readonly code: number | null;
}

/** Sends a case and then a ping: either its pong comes, or the connection ends. */
const play = async (port: number, { messages, pieces }: Case): Promise<Ending> => {
  const socket = await RawSocket.open(port, SOCKET_PATH, GOOD_KEY);
  for (const piece of pieces) {
    socket.client.send(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.ping(ALIVE);
  const pongsOf = (): string[] =>
    socket.frames
      .filter(({ opcode }) => opcode === opcodes.pong)
      .map(({ payload }) => payload.toString('latin1'));
  const answersOf = (): number => socket.frames.filter(({ opcode }) => opcode === opcodes.text).length;
  // An answer may come after the pong, which is the library's.
  await socket.client.until(() => pongsOf().includes(ALIVE) && answersOf() >= messages);
  const { frames } = socket;
  const pongs = pongsOf();
  socket.client.destroy();
  const close = frames.find(({ opcode }) => opcode === opcodes.close)?.payload;
  const closeCode = close === undefined ? 0 : close.length < 2 ? NO_CODE : close.readUInt16BE();
  return {
    messages: answersOf(),
    pongs: pongs.filter((payload) => payload !== ALIVE),
    code: pongs.includes(ALIVE) ? null : closeCode,
  };
};

/**
 * What the library takes although it is wrong: it does not look at the form of a length, nor for binary inside a message, nor
 * whether a frame has a mask.
 */
const takenByLibrary =
  /^[\d,]+ bytes with a length of \d+ bits$|^(?:a fragment of )?binary inside a fragmented |without a mask$/;

/** @returns how the library falls short of a case; `null`: the case is met; `undefined`: no known way */
const shortfall = ({ codes, messages, name, pongs }: Case, ending: Ending): string | null | undefined => {
  const isAsMany = ending.messages === messages && ending.pongs.join() === pongs.join();
  const isMet = ending.code === null ? codes === null : codes?.includes(ending.code) === true;
  if (isAsMany && isMet) return null;
  if (codes !== null && ending.code === null && takenByLibrary.test(name)) return 'takes it';
  if (codes === null || !isAsMany) return undefined;
  if (ending.code === 0) return `ends the connection without a close frame (${codes.join()})`;
  return ending.code === NO_CODE ? `answers a close frame without a code (${codes.join()})` : undefined;
};

t.test('a wrong frame ends its socket, nothing after it is read, and right ones are served', async (t) => {
  const front = await startFront(t);
  t.ok(websocketCases.length >= 120);
  t.equal(new Set(websocketCases.map(({ name }) => name)).size, websocketCases.length);
  const short = new Map<string, string[]>();
  for (const each of websocketCases) {
    const ending = await play(front.port, each);
    const how = shortfall(each, ending);
    t.not(how, undefined, `${each.name}: ${JSON.stringify(ending)}`);
    if (typeof how === 'string') short.set(how, [...(short.get(how) ?? []), each.name]);
  }
  t.comment(`${websocketCases.length} cases. The library falls short of these:`);
  for (const [how, names] of short) t.comment(`${names.length}: it ${how}: ${names.join('; ')}`);
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.admission.slotsTaken, 0);
  const lines = front.lines.filter(({ message }) => message === 'socket');
  t.ok(
    lines.some(({ fields }) => /UTF-8/.test(String(fields['cause']))),
    'the log says what was wrong where no close frame could',
  );
});
