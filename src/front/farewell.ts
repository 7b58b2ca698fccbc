/**
 * When refusals begin, once the port is closed. A client that had just connected has its request still on the way, and
 * a proxy that is answered 503 asks nobody else: so where connections are without a request, all goes on for a moment.
 *
 *   serving --begin--> lingering --(time over, or hurry)--> refusing
 */
export class Farewell {
  readonly #lingerMs: number;
  readonly #onRefusing: () => void;
  readonly #refusing: Promise<void>;
  #resolve: () => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #hasBegun = false;
  #isRefusing = false;

  /** @param onRefusing called once, when refusals begin */
  constructor(lingerMs: number, onRefusing: () => void) {
    this.#lingerMs = lingerMs;
    this.#onRefusing = onRefusing;
    this.#refusing = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** The port is closed. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isRefusing(): boolean {
    return this.#isRefusing;
  }

  /** Resolves when refusals begin. */
  get whenRefusing(): Promise<void> {
    return this.#refusing;
  }

  /** Idempotent. @param silentConnections that have no request in flight */
  begin(silentConnections: number): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (silentConnections <= 0) this.hurry();
    else this.#timer = setTimeout(() => this.hurry(), this.#lingerMs);
  }

  /** Refusals begin now. Idempotent. */
  hurry(): void {
    this.#hasBegun = true;
    if (this.#isRefusing) return;
    this.#isRefusing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#onRefusing();
    this.#resolve();
  }
}
