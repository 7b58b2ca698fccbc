/**
 * The keys for which something is open: WebSockets, and texts on HTTP. Each key is read again once in `keyRecheckMsMax`, or
 * at once where the store says that it has ended. So what is open for it ends with it, on every transport.
 */
import type { Admission } from '../accounts/admission.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import { inSlices, repeatedly } from '../slices.js';
import type { ActiveKey } from '../store/store.js';

export interface KeysInUseParts {
  readonly admission: Pick<Admission, 'renew' | 'watchKeys'>;
  readonly clock: Clock;
  readonly bounds: Pick<Bounds, 'keyRecheckMsMax' | 'sliceMsMax'>;
}

/** Must not throw. @param key as it is now; `null`: it is not valid any more */
export type OnKeyRead = (key: ActiveKey | null) => void;

interface KeyInUse {
  key: ActiveKey;
  readonly listeners: Set<OnKeyRead>;
}

/** Beats in `keyRecheckMsMax`. Each beat reads a part of the keys. */
const BEATS_A_RECHECK = 4;

export class KeysInUse {
  readonly #parts: KeysInUseParts;
  /** The key that was read last is the last one. */
  readonly #keys = new Map<number, KeyInUse>();
  #timer: NodeJS.Timeout | undefined;
  readonly #beat: () => void;

  constructor(parts: KeysInUseParts) {
    this.#parts = parts;
    const { bounds, clock } = parts;
    const slices = { clock, sliceMsMax: bounds.sliceMsMax };
    this.#beat = repeatedly(() => this.#beats(), slices);
    parts.admission.watchKeys?.((keyIds) => inSlices(this.#readNow(keyIds), slices));
  }

  /** @param onRead called each time that the key was read, until the use ends */
  use(key: ActiveKey, onRead: OnKeyRead): KeyUse {
    const { keyId } = key;
    const inUse = this.#keys.get(keyId) ?? { key, listeners: new Set() };
    inUse.key = key;
    inUse.listeners.add(onRead);
    this.#keys.set(keyId, inUse);
    this.#timer ??= setInterval(this.#beat, this.#parts.bounds.keyRecheckMsMax / BEATS_A_RECHECK);
    return new KeyUse(this, inUse, onRead);
  }

  /** For `KeyUse.end`. Idempotent. */
  end(inUse: KeyInUse, onRead: OnKeyRead): void {
    const { keyId } = inUse.key;
    inUse.listeners.delete(onRead);
    if (inUse.listeners.size > 0 || this.#keys.get(keyId) !== inUse) return;
    this.#keys.delete(keyId);
    if (this.#keys.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  *#beats(): Generator<void> {
    let left = Math.ceil(this.#keys.size / BEATS_A_RECHECK);
    for (const [keyId, inUse] of this.#keys) {
      if (left-- === 0) return;
      this.#keys.delete(keyId);
      this.#keys.set(keyId, inUse);
      yield* this.#read(inUse);
      yield;
    }
  }

  *#readNow(keyIds: readonly number[]): Generator<void> {
    for (const keyId of keyIds) {
      const inUse = this.#keys.get(keyId);
      if (inUse !== undefined) yield* this.#read(inUse);
      yield;
    }
  }

  *#read(inUse: KeyInUse): Generator<void> {
    const key = this.#parts.admission.renew(inUse.key);
    if (key !== null) inUse.key = key;
    // Nothing of these changes what is open.
    if (key !== null && key.voices === null) return;
    for (const onRead of inUse.listeners) {
      onRead(key);
      yield;
    }
  }
}

/** Something that is open for a key. */
export class KeyUse {
  readonly #keys: KeysInUse;
  readonly #inUse: KeyInUse;
  readonly #onRead: OnKeyRead;

  constructor(keys: KeysInUse, inUse: KeyInUse, onRead: OnKeyRead) {
    this.#keys = keys;
    this.#inUse = inUse;
    this.#onRead = onRead;
  }

  /** It is not open any more. Idempotent. */
  end(): void {
    this.#keys.end(this.#inUse, this.#onRead);
  }

  /** As it was read last. */
  get key(): ActiveKey {
    return this.#inUse.key;
  }
}
