/**
 * The messages that the client of one socket must get, and in what order: a lane for each context, and one for answers that
 * concern no context. Each message must be the first that its lane waits for, to the byte.
 */
export interface Expected {
  readonly message: string;
  readonly isAnswer: boolean;
  /** Charged when the message is sent. */
  readonly characters: number;
}

export class ExpectedLane {
  readonly id: string | null;
  readonly waiting: Expected[] = [];
  /** Its terminal frame is expected. Nothing may follow. */
  isComplete = false;
  /** Its context was cancelled: its last messages are sent together. */
  isFinishing = false;
  /** How many messages of other lanes went before its first. */
  readonly overtaken = new Map<ExpectedLane, number>();
  /** The lane with the lowest turn is the next. */
  turn = 0;

  constructor(id: string | null) {
    this.id = id;
  }
}

export class Wire {
  readonly control = new ExpectedLane(null);
  readonly #lanes = new Set<ExpectedLane>();
  /** The only message that may be sent, instead of all others. */
  onlyMessage: string | null = null;
  isOrderly = true;
  sentCharacters = 0;
  /** The lane whose last messages are partly sent. */
  #finishing: ExpectedLane | null = null;
  #turns = 0;
  sent = 0;
  bytes = 0;
  answerBytes = 0;

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  expect(lane: ExpectedLane, message: string, isAnswer = true, characters = 0): void {
    if (lane.isComplete) throw new Error(`${message} after the terminal frame`);
    this.#lanes.add(lane);
    if (lane.waiting.length === 0) lane.turn = ++this.#turns;
    lane.waiting.push({ message, isAnswer, characters });
    this.#count(message, isAnswer, 1);
  }

  /** The messages that wait in the lane must not be sent any more. */
  forget(lane: ExpectedLane): void {
    for (const { message, isAnswer } of lane.waiting.splice(0)) this.#count(message, isAnswer, -1);
    lane.overtaken.clear();
    this.#lanes.delete(lane);
  }

  send(message: string): void {
    this.sent += 1;
    if (this.onlyMessage !== null) {
      if (message !== this.onlyMessage) throw new Error(`${message} instead of ${this.onlyMessage}`);
      return;
    }
    const lane = this.#laneOf(message);
    const entry = lane.waiting.shift();
    this.#count(message, entry?.isAnswer ?? false, -1);
    this.sentCharacters += entry?.characters ?? 0;
    lane.overtaken.clear();
    lane.turn = ++this.#turns;
    if (lane.waiting.length === 0) this.#lanes.delete(lane);
    if (this.#finishing !== null && this.#finishing !== lane)
      throw new Error(`${message} amid the last answers of ${this.#finishing.id}`);
    const isFirst = this.#finishing === null;
    this.#finishing = lane.isFinishing && lane.waiting.length > 0 ? lane : null;
    if (this.isOrderly && isFirst) this.#checkOvertaking(lane);
  }

  /**
   * The lane whose message this is. Two lanes may wait for equal messages: then it is the next one's. Of two contexts
   * with the same id the older must be over.
   */
  #laneOf(message: string): ExpectedLane {
    const ids = new Set<string | null>();
    const heads: string[] = [];
    let next: ExpectedLane | null = null;
    for (const lane of this.#lanes) {
      const head = lane.waiting[0]?.message ?? '';
      const isFirst = lane === this.control || !ids.has(lane.id);
      if (isFirst && head === message && (next === null || lane.turn < next.turn)) next = lane;
      if (lane !== this.control) ids.add(lane.id);
      heads.push(head);
    }
    if (next !== null) return next;
    throw new Error(`sent ${message}; expected one of ${heads.join(' | ') || 'nothing'}`);
  }

  /** A lane is not overtaken twice by the same other lane. */
  #checkOvertaking(sender: ExpectedLane): void {
    for (const lane of this.#lanes) {
      if (lane === sender) continue;
      const times = (lane.overtaken.get(sender) ?? 0) + 1;
      if (times > 1) throw new Error(`${lane.id} was overtaken twice by ${sender.id}`);
      lane.overtaken.set(sender, times);
    }
  }

  #count(message: string, isAnswer: boolean, sign: 1 | -1): void {
    this.bytes += sign * message.length;
    if (isAnswer) this.answerBytes += sign * message.length;
  }
}
