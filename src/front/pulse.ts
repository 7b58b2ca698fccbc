/**
 * One timer for all connections that something is being sent to or received from: deadlines are checked and the
 * library's own timer is re-armed from here.
 */
import type { Clock } from '../monotonic.js';

export interface Pulsed {
  /** Must not throw. May add and delete members, itself included. */
  beat(nowMs: number): void;
}

export class Pulse {
  readonly clock: Clock;
  readonly #periodMs: number;
  readonly #members = new Set<Pulsed>();
  #timer: NodeJS.Timeout | null = null;

  constructor(periodMs: number, clock: Clock) {
    this.#periodMs = periodMs;
    this.clock = clock;
  }

  add(member: Pulsed): void {
    this.#members.add(member);
    this.#timer ??= setInterval(() => this.#beat(), this.#periodMs);
  }

  delete(member: Pulsed): void {
    this.#members.delete(member);
    if (this.#members.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #beat(): void {
    const nowMs = this.clock();
    for (const member of this.#members) member.beat(nowMs);
  }
}
