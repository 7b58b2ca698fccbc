/** A session without a network: the test decides what the socket takes, and the clock stands still. */
import type { Admission, Admittance } from '../../src/accounts/admission.js';
import type { GrowingLease } from '../../src/accounts/lease.js';
import { limits, type Bounds } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { Session } from '../../src/front/ws/session.js';
import type { SocketHandle } from '../../src/front/ws/outbox.js';
import { specificationProtocol, type SocketProtocol } from '../../src/front/ws/protocol.js';
import { SocketLease } from '../../src/front/ws/socket-lease.js';
import { FakeSpeech } from './fake-speech.js';
import { activeKey, recordingLog, type LogLine } from './front-server.js';
import type { ServerFrame } from './socket-client.js';
import { wholeSocketBudgets } from './whole-budget.js';
import { Turns } from '../../src/front/turns.js';

/** Takes everything, or buffers it while `stalled`. */
export class FakeSocket implements SocketHandle {
  readonly sent: string[] = [];
  pings = 0;
  stalled = false;
  bufferedBytes = 0;
  closed: { code: number; reason: string } | null = null;
  onClosed: (code: number) => void = () => undefined;

  send(message: string | Uint8Array): number {
    if (this.closed !== null) throw new Error('sent on a closed socket');
    const text = typeof message === 'string' ? message : Buffer.from(message).toString();
    this.sent.push(text);
    if (this.stalled) this.bufferedBytes += text.length;
    return this.stalled ? 0 : 1;
  }

  ping(_mark: string): number {
    this.pings += 1;
    return 1;
  }

  getBufferedAmount(): number {
    return this.bufferedBytes;
  }

  cork(write: () => void): void {
    write();
  }

  end(code: number, reason: string): void {
    this.#close(code, reason);
  }

  close(): void {
    this.#close(1006, '');
  }

  #close(code: number, reason: string): void {
    if (this.closed !== null) throw new Error('closed twice');
    this.closed = { code, reason };
    this.onClosed(code);
  }
}

/** Slots and credit of one key, as admission counts them. */
export class Books {
  slotsMax = 9;
  slots = 0;
  credit = Infinity;
  reserved = 0;
  charged = 0;

  admit(characters: number): Admittance {
    if (!this.#reserve(characters)) return { ok: false, code: 'creditExhausted' };
    if (this.slots >= this.slotsMax) {
      this.reserved -= characters;
      return { ok: false, code: 'slotsExhausted' };
    }
    this.slots += 1;
    return { ok: true, lease: this.#lease(characters) };
  }

  #lease(characters: number): GrowingLease {
    let left = characters;
    let open = true;
    const take = (amount: number): number => {
      const taken = open ? Math.min(amount, left) : 0;
      left -= taken;
      this.reserved -= taken;
      return taken;
    };
    const close = (): void => {
      if (!open) return;
      take(left);
      open = false;
      this.slots -= 1;
    };
    return {
      account: 'default',
      settle: (amount) => {
        const taken = take(amount);
        this.charged += taken;
        this.credit -= taken;
      },
      delivered: () => undefined,
      reserve: (amount) => {
        if (!this.#reserve(amount)) return 'creditExhausted';
        left += amount;
        return null;
      },
      refund: (amount) => void take(amount),
      close,
      void: close,
    };
  }

  #reserve(characters: number): boolean {
    if (characters > this.credit - this.reserved) return false;
    this.reserved += characters;
    return true;
  }
}

export const createSession = (
  options: {
    readonly bounds?: Partial<Bounds>;
    readonly books?: Books;
    readonly speech?: FakeSpeech;
    readonly protocol?: SocketProtocol;
    readonly waitForCredit?: Admission['waitForCredit'];
  } = {},
) => {
  const { books = new Books(), speech = new FakeSpeech() } = options;
  const socket = new FakeSocket();
  const lines: LogLine[] = [];
  const metrics = new Metrics();
  const due: (() => void)[] = [];
  const state = { nowMs: 1_000_000, draining: false, over: 0, key: activeKey(7) };
  const bounds = { ...limits, ...options.bounds };
  const clock = () => state.nowMs;
  const budgets = wholeSocketBudgets(bounds);
  const turns = new Turns({ clock, bounds, after: () => undefined });
  const use = {
    get key() {
      return state.key;
    },
  };
  const session = new Session({
    id: 'request-1',
    trace: null,
    route: '/v1/tts/ws',
    use,
    socket,
    protocol: options.protocol ?? specificationProtocol(bounds),
    lease: new SocketLease({
      admission: {
        admit: (_key, characters) => books.admit(characters),
        ...(options.waitForCredit !== undefined && { waitForCredit: options.waitForCredit }),
      },
      use,
      requestId: 'request-1',
      charactersMax: limits.socketCharactersMax,
      textBudget: budgets.text,
      onHeld: () => undefined,
    }),
    budgets,
    reading: { pause: () => undefined, resume: () => undefined },
    turn: turns.of(state.key.accountId),
    shared: {
      ...{ bounds, clock, metrics, speech, seenClock: clock, queued: { bytes: 0 } },
      tick: { add: (action) => due.push(action) },
      log: recordingLog(lines),
      isDraining: () => state.draining,
    },
    onOver: () => (state.over += 1),
  });
  socket.onClosed = (code) => session.closed(code);
  /** Ends the tick: hands on what was queued. */
  const tick = (): void => {
    while (due.length > 0) due.shift()?.();
  };
  return {
    session,
    socket,
    speech,
    books,
    lines,
    metrics,
    state,
    tick,
    /** Frames of a client, all in one tick. */
    say: (...frames: readonly object[]): void => {
      for (const frame of frames) session.guard(() => session.message(Buffer.from(JSON.stringify(frame))));
      tick();
    },
    /** Time passes in beats. */
    pass: (ms: number): void => {
      for (let left = ms; left > 0; left -= 200) {
        state.nowMs += Math.min(200, left);
        session.guard(() => session.beat(state.nowMs));
        tick();
      }
    },
    /** Frames since the last call. */
    heard: (): ServerFrame[] => socket.sent.splice(0).map((text) => JSON.parse(text) as ServerFrame),
  };
};

export const start = (contextId: string | null = 'a', more: object = {}) => ({
  start_context: { voice_id: 'ada', model_id: 'default', ...more },
  ...(contextId !== null && { context_id: contextId }),
});
export const text = (send_text: string, context_id = 'a') => ({ send_text, context_id });
export const flush = (flush_id: string, context_id = 'a') => ({ flush: true, flush_id, context_id });
export const close = (context_id = 'a') => ({ close_context: true, context_id });
export const cancel = (context_id = 'a') => ({ cancel_context: true, context_id });
