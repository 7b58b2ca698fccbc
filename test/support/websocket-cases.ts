/**
 * What RFC 6455 demands of a server, as bytes of a client and what must follow. Each text or binary message here is one that
 * the service answers with one error frame, so messages can be counted.
 */
import { limits } from '../../src/limits.js';
import { closeFrame, frame, opcodes, type FrameOptions } from './websocket-frames.js';

/** Stands for a close frame without a code. */
export const NO_CODE = 1005;

export interface Case {
  readonly name: string;
  /** Each is sent by itself. */
  readonly pieces: readonly Buffer[];
  /** How many messages are answered. */
  readonly messages: number;
  /** Payloads of pongs, in order. */
  readonly pongs: readonly string[];
  /** The close codes that may come. `null`: the connection stays open. */
  readonly codes: readonly number[] | null;
}

const { binary, close, continuation, ping, pong, text } = opcodes;

const part = (opcode: number, payload: FrameOptions['payload'], more: FrameOptions = {}): Buffer =>
  frame(opcode, { payload: payload ?? '', ...more });
const first = (opcode: number, payload: FrameOptions['payload']): Buffer =>
  part(opcode, payload, { isLast: false });
const hex = (digits: string): Buffer => Buffer.from(digits, 'hex');
const bytesOf = (whole: Buffer): Buffer[] => [...whole].map((byte) => Buffer.of(byte));

const taken = (
  name: string,
  pieces: readonly Buffer[],
  messages: number,
  pongs: readonly string[] = [],
): Case => ({
  ...{ name, pieces, messages, pongs, codes: null },
});
const fails = (name: string, code: number, ...pieces: readonly Buffer[]): Case => ({
  ...{ name, pieces, messages: 0, pongs: [], codes: [code] },
});
const wrong = (name: string, ...pieces: readonly Buffer[]): Case => fails(name, 1002, ...pieces);
const closes = (name: string, codes: readonly number[], ...pieces: readonly Buffer[]): Case => ({
  ...{ name, pieces, messages: 0, pongs: [], codes },
});

const two = Buffer.concat([part(text, 'a'), part(text, 'bcdefgh')]);
const lengths = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 100_000];

const frames: readonly Case[] = [
  ...lengths.map((length) => taken(`text of ${length} bytes`, [part(text, 'a'.repeat(length))], 1)),
  ...lengths.map((length) =>
    taken(`binary of ${length} bytes`, [part(binary, Buffer.alloc(length, 255))], 1),
  ),
  ...[5, 126, 65_536].map((length) => {
    const whole = part(text, 'a'.repeat(length));
    return taken(
      `text of ${length} bytes, byte by byte in its head`,
      [...bytesOf(whole.subarray(0, 16)), whole.subarray(16)],
      1,
    );
  }),
  taken('text byte by byte', bytesOf(part(text, 'abcdefgh')), 1),
  taken(
    'a hundred messages in one piece',
    [Buffer.concat(Array.from({ length: 100 }, () => part(text, 'a')))],
    100,
  ),
  taken('a message, and half of the next', [two.subarray(0, -4), two.subarray(-4)], 2),
  // The library reads the next four bytes as a mask: so they are here, and do not belong to the frame that follows.
  wrong('text without a mask', part(text, 'a', { isMasked: false }), Buffer.alloc(4)),
  wrong('ping without a mask', part(ping, 'a', { isMasked: false }), Buffer.alloc(4)),
  wrong('pong without a mask', part(pong, 'a', { isMasked: false }), Buffer.alloc(4)),
  wrong('close without a mask', part(close, hex('03e8'), { isMasked: false }), hex('000003e8')),
  wrong('5 bytes with a length of 16 bits', part(text, 'abcde', { lengthBits: 16 })),
  wrong('5 bytes with a length of 64 bits', part(text, 'abcde', { lengthBits: 64 })),
  wrong('125 bytes with a length of 16 bits', part(text, 'a'.repeat(125), { lengthBits: 16 })),
  wrong('200 bytes with a length of 64 bits', part(text, 'a'.repeat(200), { lengthBits: 64 })),
  wrong('65,535 bytes with a length of 64 bits', part(text, 'a'.repeat(65_535), { lengthBits: 64 })),
  wrong('a length with its highest bit set', part(text, 'a', { length: 2n ** 63n + 1n })),
  ...[1, 2, 3, 4, 5, 6, 7].map((reserved) =>
    wrong(`text with reserved bits ${reserved}`, part(text, 'a', { reserved })),
  ),
  ...(
    [
      ['binary', binary],
      ['ping', ping],
      ['pong', pong],
      ['close', close],
    ] as const
  ).map(([name, opcode]) => wrong(`${name} with reserved bits 4`, part(opcode, '', { reserved: 4 }))),
  wrong('a continuation with reserved bits 4', first(text, 'a'), part(continuation, 'b', { reserved: 4 })),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => wrong(`opcode ${opcode}`, part(opcode, 'a'))),
  ...[3, 11].map((opcode) => wrong(`opcode ${opcode} without a payload`, part(opcode, ''))),
];

const controls: readonly Case[] = [
  ...['', 'a', 'b'.repeat(125), '\0\x01'].map((payload) =>
    taken(`ping of ${payload.length} bytes`, [part(ping, payload)], 0, [payload]),
  ),
  taken(
    'ten pings in one piece',
    [Buffer.concat(Array.from('0123456789').map((digit) => part(ping, digit)))],
    0,
    Array.from('0123456789'),
  ),
  taken('ping byte by byte', bytesOf(part(ping, 'slow')), 0, ['slow']),
  taken('pongs that nobody asked for', [part(pong, ''), part(pong, 'x'), part(pong, 'y'.repeat(125))], 0),
  taken('a pong of bytes that are not UTF-8', [part(pong, hex('c328'))], 0),
  wrong('ping of 126 bytes', part(ping, 'a'.repeat(126))),
  wrong('pong of 126 bytes', part(pong, 'a'.repeat(126))),
  wrong('close of 126 bytes', part(close, Buffer.concat([hex('03e8'), Buffer.alloc(124, 97)]))),
  wrong('a fragment of a ping', first(ping, 'a')),
  wrong('a fragment of a pong', first(pong, 'a')),
  wrong('a fragment of a close', first(close, hex('03e8'))),
  wrong('a ping in two fragments', first(ping, 'a'), part(continuation, 'b')),
];

const fragments: readonly Case[] = [
  taken('two fragments', [first(text, 'ab'), part(continuation, 'cd')], 1),
  taken('two fragments of binary', [first(binary, 'ab'), part(continuation, 'cd')], 1),
  taken('empty fragments', [first(text, ''), first(continuation, ''), part(continuation, '')], 1),
  taken(
    'an empty fragment in front, between and behind',
    [
      first(text, ''),
      first(continuation, 'a'),
      first(continuation, ''),
      first(continuation, 'b'),
      part(continuation, ''),
    ],
    1,
  ),
  taken(
    'a thousand fragments',
    [
      Buffer.concat([
        first(text, 'a'),
        ...Array.from({ length: 998 }, () => first(continuation, 'b')),
        part(continuation, 'c'),
      ]),
    ],
    1,
  ),
  taken(
    'fragments of 64 KiB',
    [
      first(text, 'a'.repeat(65_536)),
      first(continuation, 'b'.repeat(65_536)),
      part(continuation, 'c'.repeat(65_536)),
    ],
    1,
  ),
  taken('fragments byte by byte', bytesOf(Buffer.concat([first(text, 'ab'), part(continuation, 'cd')])), 1),
  taken(
    'two fragmented messages',
    [first(text, 'a'), part(continuation, 'b'), first(binary, 'c'), part(continuation, 'd')],
    2,
  ),
  taken('a ping between fragments', [first(text, 'a'), part(ping, 'p'), part(continuation, 'b')], 1, ['p']),
  taken(
    'pings between three fragments',
    [first(text, 'a'), part(ping, 'p'), first(continuation, 'b'), part(ping, 'q'), part(continuation, 'c')],
    1,
    ['p', 'q'],
  ),
  taken('a pong between fragments', [first(text, 'a'), part(pong, 'p'), part(continuation, 'b')], 1),
  closes('a close between fragments', [1000], first(text, 'a'), closeFrame(1000)),
  wrong('a continuation of nothing', part(continuation, 'a')),
  wrong('a continuation of nothing that is not the last', first(continuation, 'a')),
  wrong('an empty continuation of nothing', part(continuation, '')),
  ...(
    [
      ['text', text, 'text', text],
      ['binary', binary, 'text', text],
      ['text', text, 'binary', binary],
      ['binary', binary, 'binary', binary],
    ] as const
  ).flatMap(([inner, innerCode, outer, outerCode]) => [
    wrong(
      `${inner} inside a fragmented ${outer}`,
      first(outerCode, 'a'),
      part(innerCode, 'b'),
      part(continuation, 'c'),
    ),
    wrong(
      `a fragment of ${inner} inside a fragmented ${outer}`,
      first(outerCode, 'a'),
      first(innerCode, 'b'),
      part(continuation, 'c'),
    ),
  ]),
];

const validUtf8 =
  '24|c2a2|efbfbd|e282ac|f09f9280|00|7f|c280|dfbf|e0a080|ed9fbf|ee8080|efbfbe|efbfbf|f0908080|f48fbfbf|efbbbf|cebae1bdb9cf83cebcceb5'.split(
    '|',
  );
const invalidUtf8 =
  '80|bf|8080|c080|c1bf|c0af|c2|c228|e08080|e09fbf|e282|e28228|eda080|edadbf|edb080|edbfbf|eda080edb080|f0808080|f08fbfbf|f09f92|f09f9228|f4908080|f5808080|f888808080|fc8480808080|fe|ff|fefeffff|6162c3|cebae1bdb9cf83cebcceb5eda080'.split(
    '|',
  );

const utf8: readonly Case[] = [
  ...validUtf8.map((digits) => taken(`UTF-8 ${digits}`, [part(text, hex(digits))], 1)),
  ...invalidUtf8.map((digits) => fails(`not UTF-8: ${digits}`, 1007, part(text, hex(digits)))),
  ...['e282ac', 'f09f9280'].map((digits) =>
    taken(
      `UTF-8 ${digits} with a fragment for each byte`,
      [
        first(text, ''),
        ...bytesOf(hex(digits)).map((byte) => first(continuation, byte)),
        part(continuation, ''),
      ],
      1,
    ),
  ),
  fails('not UTF-8 in the second fragment', 1007, first(text, 'a'), part(continuation, hex('c328'))),
  fails('a character that no fragment completes', 1007, first(text, hex('e282')), part(continuation, '')),
  fails('a character that the next fragment breaks', 1007, first(text, hex('e282')), part(continuation, 'a')),
  taken('binary that is not UTF-8', [part(binary, hex('c328'))], 1),
];

const goodCodes = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
const badCodes = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535];

const closing: readonly Case[] = [
  closes('a close without a code', [NO_CODE, 1000], closeFrame(null)),
  ...goodCodes.map((code) => closes(`close code ${code}`, [code, 1000, NO_CODE], closeFrame(code))),
  closes('a close with a reason of 123 bytes', [1000], closeFrame(1000, 'a'.repeat(123))),
  closes('a close with a reason beyond ASCII', [1000], closeFrame(1000, 'grüße 🦊')),
  closes('a close byte by byte', [1000], ...bytesOf(closeFrame(1000, 'bye'))),
  closes('a message after a close', [1000], Buffer.concat([closeFrame(1000), part(text, 'a')])),
  closes('a ping after a close', [1000], Buffer.concat([closeFrame(1000), part(ping, 'a')])),
  closes('two closes', [1000], Buffer.concat([closeFrame(1000), closeFrame(1001)])),
  wrong('a close of one byte', part(close, hex('03'))),
  ...badCodes.map((code) => wrong(`close code ${code}`, closeFrame(code))),
  ...['c328', 'eda080', 'ff'].map((digits) =>
    fails(`a close whose reason is not UTF-8: ${digits}`, 1007, closeFrame(1000, hex(digits))),
  ),
];

const most = limits.socketMessageBytesMax;
const bounds: readonly Case[] = [
  taken('the longest message', [part(text, 'a'.repeat(most))], 1),
  taken(
    'the longest message, in fragments',
    [first(text, 'a'.repeat(most / 2)), part(continuation, 'b'.repeat(most / 2))],
    1,
  ),
  fails('a message that is one byte too long', 1009, part(text, 'a'.repeat(most + 1))),
  fails('fragments that are one byte too long', 1009, first(text, 'a'.repeat(most)), part(continuation, 'b')),
  ...[2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n].map((length) =>
    fails(`a length of ${length} bytes`, 1009, part(text, 'a', { length })),
  ),
];

export const websocketCases: readonly Case[] = [
  ...frames,
  ...controls,
  ...fragments,
  ...utf8,
  ...closing,
  ...bounds,
];
