/** Random changes to bytes, whatever they mean. */
import type { Dice } from '../../rig/random.js';

type Mutation = (bytes: Buffer, dice: Dice) => Buffer;

const splice = (bytes: Buffer, at: number, removed: number, inserted: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(Math.min(at + removed, bytes.length))]);

const range = (bytes: Buffer, dice: Dice): readonly [at: number, length: number] => {
  const at = dice.below(bytes.length + 1);
  return [at, dice.below(Math.min(64, bytes.length - at + 1))];
};

/** Bytes that often break parsers. */
const nasty = [
  '\0',
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\n\n',
  '\r\n ',
  '\t',
  ':',
  ' ',
  '0\r\n\r\n',
  '\xff',
  '\xc3',
  '\xed\xa0\x80',
  '\xf4\x90\x80\x80',
  '-1',
  '18446744073709551615',
  '99999999999999999999999',
  '1e999',
  '%00',
  '../',
  '"',
  '\\u0000',
  '{',
  '[[[[[[[[',
  'GET / HTTP/1.1\r\n',
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  '\x16\x03\x01',
].map((text) => Buffer.from(text, 'latin1'));

const lineEnds = ['\n', '\r', '\n\r', '\r\r\n', '\r\n\r\n', '\r\n\t', ' \r\n', '\0\r\n'];

const mutations: readonly Mutation[] = [
  (bytes, dice) => {
    const copy = Buffer.from(bytes);
    for (let left = dice.between(1, 4); left > 0 && copy.length > 0; left--)
      copy[dice.below(copy.length)]! ^= 1 << dice.below(8);
    return copy;
  },
  (bytes, dice) => bytes.subarray(0, dice.below(bytes.length + 1)),
  (bytes, dice) => splice(bytes, ...range(bytes, dice), Buffer.alloc(0)),
  (bytes, dice) => {
    const [at, length] = range(bytes, dice);
    return splice(bytes, at, 0, Buffer.from(bytes.subarray(at, at + length)));
  },
  (bytes, dice) => splice(bytes, dice.below(bytes.length + 1), 0, dice.bytes(dice.between(1, 12))),
  (bytes, dice) => splice(bytes, dice.below(bytes.length + 1), dice.below(3), dice.pick(nasty)),
  (bytes, dice) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[dice.below(copy.length)] = dice.pick([0, 9, 10, 13, 32, 34, 58, 127, 128, 255]);
    return copy;
  },
  (bytes, dice) => {
    // One of its line ends becomes another.
    const ends: number[] = [];
    for (let at = bytes.indexOf('\r\n'); at >= 0 && ends.length < 40; at = bytes.indexOf('\r\n', at + 2))
      ends.push(at);
    return ends.length === 0 ? bytes : splice(bytes, dice.pick(ends), 2, Buffer.from(dice.pick(lineEnds)));
  },
  (bytes, dice) => {
    // A number becomes another.
    const match = [...bytes.toString('latin1').slice(0, 2_000).matchAll(/\d+/g)];
    if (match.length === 0) return bytes;
    const { 0: digits, index } = dice.pick(match);
    const other = dice.pick([
      '0',
      '-1',
      '1',
      '65536',
      '4294967296',
      '9007199254740993',
      '1'.repeat(400),
      '0x1',
      '1e9',
    ]);
    return splice(bytes, index, digits.length, Buffer.from(other));
  },
];

export const mutate = (bytes: Buffer, dice: Dice, times: number): Buffer => {
  let mutated = bytes;
  for (let left = times; left > 0; left--) mutated = dice.pick(mutations)(mutated, dice);
  return mutated;
};
