/** What a disk, a person or another program can do to a file. The details are random. */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import type { Dice } from '../rig/random.js';

export type FileDamage = (path: string, dice: Dice) => void;

/** Changes bytes within the same file. */
export const change =
  (work: (bytes: Buffer, dice: Dice) => void): FileDamage =>
  (path, dice) => {
    const bytes = readFileSync(path);
    work(bytes, dice);
    writeFileSync(path, bytes, { flag: 'r+' });
  };

export const flipSome = (bytes: Buffer, dice: Dice, from = 0, to = bytes.length): void => {
  for (let count = dice.between(1, 6); count > 0; count -= 1) {
    const at = from + dice.below(to - from);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
  }
};

export const flipBits = change((bytes, dice) => flipSome(bytes, dice));

export const cut: FileDamage = (path, dice) => truncateSync(path, dice.below(readFileSync(path).length));

export const empty: FileDamage = (path) => truncateSync(path, 0);

export const garbageBehind: FileDamage = (path, dice) =>
  appendFileSync(path, dice.bytes(dice.between(1, 10_000)));

export const garbageWithin = change((bytes, dice) => {
  dice.bytes(Math.min(4_096, bytes.length)).copy(bytes, dice.below(bytes.length));
});

export const garbageInPlace: FileDamage = (path, dice) =>
  writeFileSync(path, dice.bytes(dice.between(1, 20_000)));

export const gone: FileDamage = (path) => rmSync(path);

/** Nothing may have the name any more. */
export const linkToItself: FileDamage = (path) => symlinkSync(path, path);

/** Likewise. */
export const folder: FileDamage = (path) => mkdirSync(path);
