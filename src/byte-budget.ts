import { InvariantError } from './fault.js';

/** A holder may have this fraction of what is free. */
const FRACTION_OF_FREE = 16;

/** Holds a part of a budget: an account, or a group of requests without a key, by its name. */
export type Member = number | string;

/** Which bound refuses: that of all members together, or the part of one. */
export type KeyedRefusal = 'pool' | 'account';

/** A `KeyedBudget` for one member: for holders that take a known amount, and for those that grow. */
export type PartOfAccount = Pick<PartOfMember, 'taken' | 'take' | 'giveBack'>;
export type GrowingPart = Pick<PartOfMember, 'change' | 'giveBack' | 'allowance'>;

interface Held {
  readonly bytes: number;
  /** Of them, what others are without. */
  readonly counted: number;
}

const nothing: Held = { bytes: 0, counted: 0 };

/**
 * A shared bound on bytes (or characters, contexts, files). Holders take from it and give back. They belong to members, mostly
 * accounts. A member may hold half of what the others leave (or another part of it), and at least `leastBytes` while there is
 * room: of N members that take half, each has 1 / (N + 1), and as much is free for a newcomer.
 *
 * Most holders take a known amount, or nothing: `take`. Holders that grow step by step ask for their `allowance` first
 * and then report every `change`. The allowance shrinks as the budget fills: large holders are stopped first, and a
 * holder of nothing has room until the budget is exhausted. Of N holders of one member that take all they may, and give back as
 * they go, none has more than 1 / (N + 16) of its part in the long run. A holder that grows may overdraw the part of its member:
 * for other members only the part counts.
 */
export class KeyedBudget {
  readonly #bytesMax: number;
  readonly #leastBytes: number;
  readonly #part: number;
  /** Of all members. */
  #taken = 0;
  #counted = 0;
  /** Without members that hold nothing. */
  readonly #held = new Map<Member, Held>();

  constructor(bytesMax: number, leastBytes: number, part = 1 / 2) {
    this.#bytesMax = bytesMax;
    this.#leastBytes = leastBytes;
    this.#part = part;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Bytes of one member. */
  takenBy(member: Member): number {
    return this.#heldBy(member).bytes;
  }

  /** Of the member's part; negative if it is overdrawn. */
  left(member: Member): number {
    return this.#partOf(member) - this.takenBy(member);
  }

  /** @returns what would refuse so many bytes more; `null`: nothing would */
  refusal(member: Member, bytes: number): KeyedRefusal | null {
    if (bytes > this.#bytesMax - this.#taken) return 'pool';
    return bytes > this.left(member) ? 'account' : null;
  }

  /** What one holder of the member may have now: a sixteenth of what the member may still take. @param mostBytes its own bound */
  allowance(member: Member, mostBytes: number): number {
    const left = Math.min(this.#bytesMax - this.#counted, this.left(member));
    return Math.max(0, Math.min(mostBytes, left / FRACTION_OF_FREE));
  }

  /**
   * A holder has so many bytes more, or fewer. It asked for its allowance before.
   *
   * @throws {InvariantError} more bytes are given back than were taken: an accounting error, and the budget stays as it is
   */
  change(member: Member, bytes: number): void {
    const { bytes: before, counted } = this.#heldBy(member);
    const own = before + bytes;
    if (own < 0) throw new InvariantError(`a member gives back ${-bytes} of a budget and holds ${before}`);
    this.#taken += bytes;
    const held = { bytes: own, counted: Math.min(own, Math.max(counted, this.#partOf(member))) };
    this.#counted += held.counted - counted;
    if (own === 0) this.#held.delete(member);
    else this.#held.set(member, held);
  }

  /** @returns `null`, or what refuses: then nothing is taken */
  take(member: Member, bytes: number): KeyedRefusal | null {
    const refusal = this.refusal(member, bytes);
    if (refusal !== null) return refusal;
    this.change(member, bytes);
    return null;
  }

  /** @throws {InvariantError} the member gives back more than it took */
  giveBack(member: Member, bytes: number): void {
    this.change(member, -bytes);
  }

  /** The budget as a holder of one member sees it. */
  of(member: Member): PartOfMember {
    return new PartOfMember(this, member);
  }

  #heldBy(member: Member): Held {
    return this.#held.get(member) ?? nothing;
  }

  /** What the member may hold, of what the others leave. */
  #partOf(member: Member): number {
    const left = this.#bytesMax - (this.#counted - this.#heldBy(member).counted);
    return Math.max(this.#leastBytes, left * this.#part);
  }
}

/** Without closures, because each open WebSocket has several. */
class PartOfMember {
  readonly #budget: KeyedBudget;
  readonly #member: Member;

  constructor(budget: KeyedBudget, member: Member) {
    this.#budget = budget;
    this.#member = member;
  }

  get taken(): number {
    return this.#budget.takenBy(this.#member);
  }

  take(bytes: number): boolean {
    return this.#budget.take(this.#member, bytes) === null;
  }

  giveBack(bytes: number): void {
    this.#budget.giveBack(this.#member, bytes);
  }

  change(bytes: number): void {
    this.#budget.change(this.#member, bytes);
  }

  allowance(mostBytes: number): number {
    return this.#budget.allowance(this.#member, mostBytes);
  }
}
