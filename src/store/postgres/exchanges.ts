/** Sends the exchanges of a process to the database, and hears the calls of others. */
import { performance } from 'node:perf_hooks';
import type { Log } from '../../log.js';
import type { Allotment } from '../allotments.js';
import { StoreError, type LedgerEntry, type StoreFault } from '../store.js';
import { PostgresConnection, SERVICE_NAME, type PostgresBounds, type Session } from './connection.js';
import { HostCredit, type CreditBounds } from './host-credit.js';
import { CREDIT_CHANNEL, type Exchange, type Exchanged } from './host-schema.js';

/** Milliseconds between two beats while a request waits, and otherwise. */
const WAITING_BEAT_MS = 20;
const BEAT_MS = 250;

const exchangeText = `SELECT exchange_credit(${Array.from({ length: 13 }, (_, index) => `$${index + 1}`).join(', ')}) AS answers`;

/** @returns the answers in the order of their accounts; `null`: the writer was declared dead */
export const exchange = async (
  session: Session,
  writer: number,
  freeMs: number,
  acknowledged: number,
  asked: readonly Exchange[],
): Promise<readonly (Exchanged | null)[] | null> => {
  const column = (name: keyof Exchange) => asked.map((each) => each[name]);
  const columns = (
    ['turn', 'accountId', 'used', 'needed', 'ahead', 'free', 'keep', 'mayCall', 'answers', 'settled'] as const
  ).map(column);
  const [row] = await session.query<{ answers: (Exchanged | null)[] | null }>(exchangeText, [
    ...[writer, freeMs, acknowledged],
    ...columns,
  ]);
  return row?.answers ?? null;
};

export class Exchanges {
  readonly credit: HostCredit;
  readonly #writer: number;
  readonly #bounds: CreditBounds;
  readonly #connection: PostgresConnection;
  readonly #log: Log;
  #fault: StoreFault | null = null;
  #acknowledged = 0;
  #isSending = false;
  #isScheduled = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(url: string, bounds: PostgresBounds & CreditBounds, writer: number, log: Log) {
    this.#writer = writer;
    this.#log = log;
    this.#bounds = bounds;
    this.credit = new HostCredit(
      bounds,
      () => performance.now(),
      () => this.#schedule(),
    );
    this.#connection = new PostgresConnection(url, {
      bounds,
      name: SERVICE_NAME,
      channel: CREDIT_CHANNEL,
      onNotification: (payload) => this.#onNotification(payload),
    });
    this.#beat();
  }

  /** Connects, so that the first request does not have to wait for that. @throws {StoreError} */
  async open(): Promise<void> {
    await this.#connection.session();
  }

  /** A batch is in the database. */
  committed(batch: readonly LedgerEntry[], allotments: readonly Allotment[]): void {
    const last = batch.at(-1);
    if (last === undefined) return;
    this.#acknowledged = last.entry;
    this.credit.committed(last.entry, new Set(batch.map(({ accountId }) => accountId)), allotments);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.credit.close();
    await this.#connection.close();
  }

  #onNotification(payload: string): void {
    const [accountId = NaN, call = NaN, writer] = payload.split(':').map(Number);
    if (writer === this.#writer) return;
    if (call > 0) this.credit.called(accountId, call);
    else this.credit.changed(accountId);
  }

  #beat(): void {
    this.credit.beat();
    // Without a connection no call of others is heard. While a request waits, its exchange connects.
    if (this.credit.waiting === 0) this.#connection.session().catch(() => undefined);
    this.#rearm();
  }

  #rearm(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.#beat(), this.credit.waiting > 0 ? WAITING_BEAT_MS : BEAT_MS);
  }

  /** At the end of this tick: its requests share one statement. */
  #schedule(): void {
    if (this.#isScheduled || this.#isSending || this.#isClosed) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send();
      if (this.credit.waiting > 0) this.#rearm();
    });
  }

  async #send(): Promise<void> {
    if (this.#isClosed) return;
    const asked = this.credit.exchanges();
    if (asked.length === 0) return;
    this.#isSending = true;
    let answers: readonly (Exchanged | null)[] | null = null;
    const sentAtMs = performance.now();
    try {
      const session = await this.#connection.session();
      answers = await exchange(session, this.#writer, this.#bounds.creditFreeMs, this.#acknowledged, asked);
      this.#fault = null;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#report(error);
    }
    this.#isSending = false;
    const byTurn = new Map(answers?.flatMap((answer) => (answer === null ? [] : [[answer.turn, answer]])));
    for (const sent of asked) {
      const answer = byTurn.get(sent.turn);
      if (answer === undefined) this.credit.failed(sent);
      else this.credit.answered(answer, sent, sentAtMs);
    }
    // What became due meanwhile. After a failure, the beat repeats.
    if (answers !== null) this.#schedule();
  }

  /** Logs a line for each fault, not for each attempt. `close` cuts off the exchange that is under way: that is no fault. */
  #report({ fault, message }: StoreError): void {
    if (this.#fault !== fault && !this.#isClosed)
      this.#log.error({ reason: message }, 'credit cannot be exchanged with the database');
    this.#fault = fault;
  }
}
