/** API keys: their shape, their generation, their hash, the only form in which the store has them, and their voices. */
import { hash, randomBytes } from 'node:crypto';
import type { ActiveKey } from '../store/store.js';

const KEY_START = 'svc_sk_';
/** 43 characters out of 62 carry 256 bits. */
const SECRET_CHARACTERS = 43;
/** Characters of the secret that listings show: enough to distinguish keys, and 220 bits stay secret. */
const SHOWN_CHARACTERS = 6;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Bytes from here on are drawn again, so that every character is equally likely. */
const FAIR_BYTE_END = 256 - (256 % alphabet.length);

/** In place of the prefix of an account's hidden key. */
export const PLAYGROUND = 'Playground';

/** Letters and digits only, so that a double click selects the whole key. */
export const generateKey = (): string => {
  let secret = '';
  while (secret.length < SECRET_CHARACTERS)
    for (const byte of randomBytes(SECRET_CHARACTERS - secret.length))
      if (byte < FAIR_BYTE_END) secret += alphabet.charAt(byte % alphabet.length);
  return KEY_START + secret;
};

/** Whether a value is meant as a key. Only the store knows whether it is one. */
export const looksLikeKey = (value: string): boolean => value.startsWith(KEY_START);

/** SHA-256: a key has 256 random bits, so a slower hash would not make it safer. */
export const hashKey = (key: string): Uint8Array => hash('sha256', key, 'buffer');

/** The part of a key that may be shown. */
export const prefixOf = (key: string): string => key.slice(0, KEY_START.length + SHOWN_CHARACTERS);

/** What a list shows of a key, as it is pasted: `svc_sk_1dEUx2...`, or less. */
export const pastedPrefix = (text: string): string => text.replace(/(?:\.{3}|…)$/u, '');

/** Whether a prefix says anything: `svc_sk_...` stands for every key. */
export const isPrefix = (text: string): boolean => looksLikeKey(text) && text.length > KEY_START.length;

/** The voices that exist for a key, in the order of the catalogue. */
export const voicesOf = (
  { voices }: Pick<ActiveKey, 'voices'>,
  speakerIds: readonly string[],
): readonly string[] => (voices === null ? speakerIds : speakerIds.filter((id) => voices.includes(id)));
