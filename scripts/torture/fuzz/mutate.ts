/** Random changes: to bytes, whatever they mean, and to the parts of a text that mean something. */
import type { Dice } from '../../rig/random.js';

/** Longer texts are changed near their beginning. */
const changedMax = 2_000;

/** Puts one of the values in the place of one of the parts. @param part a global pattern */
export const replaceOne = (text: string, part: RegExp, values: readonly string[], dice: Dice): string => {
  const found = [...text.slice(0, changedMax).matchAll(part)];
  if (found.length === 0) return text;
  const { 0: old, index } = dice.pick(found);
  return text.slice(0, index) + dice.pick(values) + text.slice(index + old.length);
};

/** What often breaks parsers. */
const nasty = [
  ...['\0', '\r', '\n', '\r\n', '\r\n\r\n', '\n\n', '\r\n ', '\t', ':', ' ', '0\r\n\r\n', '\xff', '\xc3'],
  ...['\xed\xa0\x80', '\xf4\x90\x80\x80', '-1', '18446744073709551615', '99999999999999999999999', '1e999'],
  ...[
    '%00',
    '../',
    '"',
    '\\u0000',
    '{',
    '[[[[[[[[',
    'GET / HTTP/1.1\r\n',
    'Content-Length: 5\r\n',
    '\x16\x03',
  ],
].map((text) => Buffer.from(text, 'latin1'));
const lineEnds = ['\n', '\r', '\n\r', '\r\r\n', '\r\n\r\n', '\r\n\t', ' \r\n', '\0\r\n'];
const digits = ['0', '-1', '1', '65536', '4294967296', '9007199254740993', '1'.repeat(400), '0x1', '1e9'];

const splice = (bytes: Buffer, at: number, removed: number, inserted: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(Math.min(at + removed, bytes.length))]);

const replaced =
  (part: RegExp, values: readonly string[]) =>
  (bytes: Buffer, dice: Dice): Buffer =>
    Buffer.from(replaceOne(bytes.toString('latin1'), part, values, dice), 'latin1');

const placeIn = (bytes: Buffer, dice: Dice): number => dice.below(bytes.length + 1);

const mutations: readonly ((bytes: Buffer, dice: Dice) => Buffer)[] = [
  (bytes, dice) => {
    const copy = Buffer.from(bytes);
    for (let left = dice.between(1, 4); left > 0 && copy.length > 0; left--)
      copy[dice.below(copy.length)]! ^= 1 << dice.below(8);
    return copy;
  },
  (bytes, dice) => bytes.subarray(0, placeIn(bytes, dice)),
  (bytes, dice) => splice(bytes, placeIn(bytes, dice), dice.below(64), Buffer.alloc(0)),
  (bytes, dice) => {
    const at = placeIn(bytes, dice);
    return splice(bytes, at, 0, bytes.subarray(at, at + dice.below(64)));
  },
  (bytes, dice) => splice(bytes, placeIn(bytes, dice), 0, dice.bytes(dice.between(1, 12))),
  (bytes, dice) => splice(bytes, placeIn(bytes, dice), dice.below(3), dice.pick(nasty)),
  replaced(/\r\n/g, lineEnds),
  replaced(/\d+/g, digits),
];

export const mutate = (bytes: Buffer, dice: Dice): Buffer => {
  let mutated = bytes;
  for (let left = dice.between(1, 4); left > 0; left--) mutated = dice.pick(mutations)(mutated, dice);
  return mutated;
};

/** Of any type, sometimes deep or huge. */
const oddValues = [
  ...['null', 'true', 'false', '0', '-1', '1.5', '1e308', '-0', '1e400', '9007199254740993', '""', '"x"'],
  ...['"\\u0000"', '[]', '{}', '[[[[[[]]]]]]', '{"a":{"a":{"a":1}}}', `"${'x'.repeat(5_000)}"`, '[1,2,3]'],
];
const oddNames = ['constructor', '', '\\u0000', 'a'.repeat(300), 'toString', '__proto__', 'seed', 'TEXT'];

/** A member of an object is dropped, renamed or added, or gets an odd value. */
const distortions: readonly (readonly [part: RegExp, values: readonly string[]])[] = [
  [/"\w+":(?:"[^"]*"|[\w.-]+),?/g, ['']],
  [/(?<=")\w+(?=":)/g, oddNames],
  [/(?<=":)(?:"[^"]*"|[\w.-]+)/g, oddValues],
  [/(?<=\{)(?=")/g, oddNames.map((name, i) => `"${name}":${oddValues[i]!},`)],
];

export const distort = (json: string, dice: Dice): string =>
  replaceOne(json, ...dice.pick(distortions), dice);
