/** API keys: their shape, their making, and the hash that is all the store knows of them. */
import { hash, randomBytes } from 'node:crypto';

const KEY_START = 'svc_sk_';
/** 43 characters of 62 carry 256 bits. */
const SECRET_CHARACTERS = 43;
/** Characters of the secret that listings show: enough to tell keys apart, 220 bits are left. */
const SHOWN_CHARACTERS = 6;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Bytes from here on are drawn again, so that every character is equally likely. */
const FAIR_BYTE_END = 256 - (256 % alphabet.length);

/** Letters and digits only: a double click selects the whole key. */
export const generateKey = (): string => {
  let secret = '';
  while (secret.length < SECRET_CHARACTERS)
    for (const byte of randomBytes(SECRET_CHARACTERS - secret.length))
      if (byte < FAIR_BYTE_END) secret += alphabet.charAt(byte % alphabet.length);
  return KEY_START + secret;
};

/** Whether a header's value, or an argument, is meant as a key; whether it is one, the store tells. */
export const looksLikeKey = (value: string): boolean => value.startsWith(KEY_START);

/** SHA-256. A key has 256 random bits: nothing slower is needed to keep it from being guessed back. */
export const hashKey = (key: string): Uint8Array => hash('sha256', key, 'buffer');

/** The part of a key that may be shown. */
export const prefixOf = (key: string): string => key.slice(0, KEY_START.length + SHOWN_CHARACTERS);
