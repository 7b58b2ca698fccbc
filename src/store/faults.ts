/** Why a store, or an act on it, fails: fault kinds, not error codes of a database. */

export type StoreFault =
  | 'unwritable'
  | 'damaged'
  /** A database of another program. */
  | 'foreign'
  /** Written by a newer version of this program. */
  | 'newer'
  | 'busy'
  | 'full'
  /** The store is not where it was. */
  | 'missing'
  /** Another store has taken its place, in a way that cannot be used. */
  | 'replaced'
  /** It lacks entries that were committed to it. */
  | 'short'
  /** Another process is replacing the store, or has it open and must not lose it. */
  | 'held'
  /** The database cannot be reached, or does not answer in time. */
  | 'unreachable'
  /** The database did not answer a commit: the act may be done. */
  | 'uncertain'
  /** This process was declared dead: others may spend its credit. */
  | 'barred'
  /** A value of the act is none that the database takes. The store itself can be used. */
  | 'unfit'
  | 'unusable';

/** What a caller reads when it is not known whether the act was done. */
export const CHECK_FIRST = 'Check whether the change was made before you try again.';

/** The store cannot be used. The message is one line that names the store and the remedy. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly fault: StoreFault;
  constructor(fault: StoreFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Why an act is refused. */
export type Objection =
  /** A value is not allowed. */
  | 'badRequest'
  | 'notFound'
  /** Not as things are now. */
  | 'conflict'
  | 'forbidden'
  /** Who asks is not a user any more. */
  | 'signedOut'
  /** Too much is asked at once. */
  | 'unavailable'
  /** Too often. */
  | 'tooManyAttempts';

/** An act that the contents of the store, or of a backup, do not allow. The message is for whoever asked for it. */
export class AdministrationError extends Error {
  override readonly name: string = 'AdministrationError';
  readonly objection: Objection;
  /** The value that is not allowed, where one is. */
  readonly field: string | null;
  constructor(message: string, objection: Objection = 'badRequest', field: string | null = null) {
    super(message);
    this.objection = objection;
    this.field = field;
  }
}

/** A value is not allowed. */
export const invalid = (field: string, message: string): AdministrationError =>
  new AdministrationError(message, 'badRequest', field);

/** The present state does not allow the act. */
export const conflict = (message: string, field: string | null = null): AdministrationError =>
  new AdministrationError(message, 'conflict', field);

/** The thing does not exist, or the caller may not know of it. */
export const notFound = (message: string, field: string | null = null): AdministrationError =>
  new AdministrationError(message, 'notFound', field);
