/** Tokens of sessions and one-time links. The store has only their hashes, as it has of keys. */
import { hash, randomBytes } from 'node:crypto';

/** 256 random bits in 43 characters that need no escaping in a URL or a cookie. */
export const newToken = (): string => randomBytes(32).toString('base64url');

/** Begins a token that a user makes for a program, so that people and scanners of secrets know what it is. */
const PROGRAM_START = 'svc_op_';

export const newProgramToken = (): string => PROGRAM_START + newToken();

export const isProgramToken = (token: string): boolean => token.startsWith(PROGRAM_START);

/** SHA-256, in base64url. */
export const hashToken = (token: string): string => hash('sha256', token, 'base64url');
