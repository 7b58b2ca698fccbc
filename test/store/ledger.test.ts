/** The queue of the ledger, over a writer that answers when the test says so, and with a fake clock. */
import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import type { Log } from '../../src/log.js';
import { Ledger, type LedgerBounds } from '../../src/store/ledger.js';
import type { CommitResult, EntryJournal, LedgerEntry, LedgerWriter } from '../../src/store/store.js';
import { usageOf } from './usage.js';

const failed = (fault: 'busy' | 'full' | 'restarting'): CommitResult => ({
  ok: false,
  fault,
  message: fault,
});

class ScriptedWriter implements LedgerWriter {
  readonly batches: (readonly LedgerEntry[])[] = [];
  hasEnded = false;
  #answer: ((result: CommitResult) => void) | null = null;

  commit(entries: readonly LedgerEntry[]): Promise<CommitResult> {
    if (this.#answer !== null) throw new Error('one batch at a time');
    this.batches.push(entries);
    return new Promise((resolve) => (this.#answer = resolve));
  }

  /** Answers the running commit, and lets the ledger act on it. */
  async answer(result: CommitResult = { ok: true, givenUp: 0 }): Promise<void> {
    const answer = this.#answer;
    if (answer === null) throw new Error('no commit is running');
    this.#answer = null;
    answer(result);
    for (let count = 0; count < 5; count += 1) await Promise.resolve();
  }

  get isAsked(): boolean {
    return this.#answer !== null;
  }

  async end(): Promise<void> {
    this.hasEnded = true;
  }
}

const setUp = (t: Test, bounds: Partial<LedgerBounds> = {}, journal?: EntryJournal) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const writers: ScriptedWriter[] = [];
  const lines: string[] = [];
  const fields: unknown[] = [];
  const log = {
    info: (line: string) => lines.push(line),
    error: (of: unknown, line: string) => {
      fields.push(of);
      lines.push(line);
    },
  } as unknown as Log;
  const ledger = new Ledger({
    writer: 7,
    startWriter: () => {
      writers.push(new ScriptedWriter());
      return writers.at(-1)!;
    },
    bounds: { ...limits, ...bounds },
    log,
    journal,
  });
  return { ledger, writers, lines, fields, writer: writers[0]! };
};

const numbers = (batch: readonly LedgerEntry[] | undefined) => batch?.map(({ entry }) => entry);

t.test('entries go to the writer in order and in batches; the next batch gathers meanwhile', async (t) => {
  /** The journal need not keep the entries up to these. */
  const settled: number[] = [];
  const journal: EntryJournal = {
    ...{ fault: null, refusedFolder: '', append: () => undefined },
    settled: (last) => void settled.push(last),
  };
  const { ledger, writer } = setUp(t, { ledgerBatchMax: 2 }, journal);
  for (let count = 0; count < 4; count += 1) ledger.append(usageOf(1));
  t.strictSame(numbers(writer.batches[0]), [1], 'the first one does not wait');
  await writer.answer();
  t.equal(ledger.acknowledged, 1);
  t.strictSame(numbers(writer.batches[1]), [2, 3]);
  let isDrained = false;
  void ledger.drain().then(() => (isDrained = true));
  await writer.answer();
  t.strictSame(numbers(writer.batches[2]), [4]);
  t.notOk(isDrained);
  await writer.answer();
  t.ok(isDrained);
  t.strictSame([ledger.acknowledged, ledger.queued], [4, 0]);
  t.strictSame(settled, [1, 3, 4]);
  t.ok(writer.batches.flat().every((entry) => entry.writer === 7));
});

t.test(
  'a reader of balances waits for what is queued now, but not while the store takes no writes',
  async (t) => {
    const { ledger, writer } = setUp(t, { ledgerBatchMax: 1 });
    const settled = () => {
      const waiting = { isOver: false };
      void ledger.settled().then(() => (waiting.isOver = true));
      return waiting;
    };
    await ledger.settled();
    ledger.append(usageOf(1));
    ledger.append(usageOf(1));
    const second = settled();
    ledger.append(usageOf(1));
    await writer.answer();
    t.notOk(second.isOver);
    await writer.answer();
    t.ok(second.isOver, 'what came later is not waited for');
    const third = settled();
    await writer.answer(failed('full'));
    t.ok(third.isOver);
    await ledger.settled();
  },
);

t.test(
  'while commits fail nothing is accepted, one line is logged, and the same batch is retried',
  async (t) => {
    const { ledger, writer, writers, lines } = setUp(t);
    ledger.append(usageOf(1));
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await writer.answer(failed('full'));
      t.equal(ledger.fault, 'full');
      t.notOk(ledger.accepting);
      ledger.append(usageOf(1));
      t.equal(writer.batches.length, attempt, 'no attempt before its time');
      mock.timers.tick(limits.ledgerRetryMs - 1);
      t.notOk(writer.isAsked);
      mock.timers.tick(1);
      t.strictSame(numbers(writer.batches.at(-1)), [1, 2, 3, 4].slice(0, attempt + 1));
    }
    await writer.answer(failed('busy'));
    t.equal(ledger.fault, 'busy');
    mock.timers.tick(limits.ledgerRetryMs);
    await writer.answer();
    t.ok(ledger.accepting);
    t.equal(ledger.acknowledged, 4);
    t.equal(writers.length, 1, 'a writer that answers is kept');
    const refused = 'the ledger cannot be written: nothing is admitted';
    t.strictSame(lines, [refused, refused, 'the ledger can be written again']);
  },
);

t.test('an idle writer is probed, so that a fault shows before a request', async (t) => {
  const { ledger, writer } = setUp(t);
  mock.timers.tick(limits.ledgerProbeMs - 1);
  t.notOk(writer.isAsked);
  mock.timers.tick(1);
  t.strictSame(writer.batches, [[]]);
  await writer.answer(failed('busy'));
  t.equal(ledger.fault, 'busy');
  mock.timers.tick(limits.ledgerRetryMs);
  await writer.answer();
  t.equal(ledger.fault, null);
  mock.timers.tick(limits.ledgerProbeMs);
  t.equal(writer.batches.length, 3);
});

t.test('a commit that does not come back in time is a fault of its own, and is waited for', async (t) => {
  const { ledger, writer, writers } = setUp(t);
  ledger.append(usageOf(3));
  mock.timers.tick(limits.ledgerStallMsMax - 1);
  t.ok(ledger.accepting);
  mock.timers.tick(1);
  t.equal(ledger.fault, 'stalled');
  ledger.append(usageOf(4));
  mock.timers.tick(10 * limits.ledgerRetryMs);
  t.equal(writer.batches.length, 1, 'no second commit beside it');
  await writer.answer();
  t.equal(ledger.fault, null);
  t.strictSame(numbers(writer.batches[1]), [2]);
  t.equal(writers.length, 1);
});

t.test('a writer that ended is replaced, which gets the same batch', async (t) => {
  const { ledger, writer, writers } = setUp(t);
  ledger.append(usageOf(1));
  writer.hasEnded = true;
  await writer.answer(failed('restarting'));
  t.equal(ledger.fault, 'restarting');
  t.equal(writers.length, 1, 'after a pause');
  mock.timers.tick(limits.ledgerRetryMs);
  t.strictSame(numbers(writers[1]?.batches[0]), [1]);
  await writers[1]?.answer();
  t.ok(ledger.accepting);
  if (writers[1] !== undefined) writers[1].hasEnded = true;
  ledger.append(usageOf(1));
  t.strictSame(numbers(writers[2]?.batches[0]), [2], 'an idle one at once');
  t.equal(ledger.restarts, 2);
});

t.test('entries that were given up are acknowledged, and logged', async (t) => {
  const { ledger, writer, lines } = setUp(t);
  ledger.append(usageOf(1));
  await writer.answer({ ok: true, givenUp: 1 });
  t.equal(ledger.acknowledged, 1);
  t.match(lines, [/given up/]);
});

t.test('what the store refuses is reported from the first entry that it does not have', async (t) => {
  const { ledger, writer, fields } = setUp(t);
  for (const amount of [3, 4, 5]) ledger.append(usageOf(amount));
  const barred = { ok: false, fault: 'barred', message: 'dead' } as const;
  // The answer to its commit was lost.
  await writer.answer({ ...barred, lastEntry: 1 });
  const reports = () => fields.filter((each) => (each as { entries?: number }).entries !== undefined);
  t.match(reports(), [{ writer: 7, entries: 2, firstEntry: 2, credits: 9 }]);
  t.equal(ledger.entriesRefused, 2);
  ledger.append(usageOf(6));
  mock.timers.tick(limits.ledgerRetryMs);
  await writer.answer({ ...barred, lastEntry: 1 });
  t.match(reports()[1], { entries: 1, firstEntry: 4, credits: 6 });
  t.equal(ledger.queued, 0);
});

t.test('closing does not wait for ever for a store that takes no writes', async (t) => {
  const { ledger, writer, writers, lines } = setUp(t);
  ledger.append(usageOf(1));
  let isClosed = false;
  void ledger.close().then(() => (isClosed = true));
  t.notOk(ledger.accepting);
  await writer.answer(failed('busy'));
  mock.timers.tick(limits.ledgerRetryMs);
  mock.timers.tick(limits.ledgerCloseMsMax - limits.ledgerRetryMs - 1);
  t.notOk(isClosed);
  t.ok(writer.isAsked, 'the retry');
  mock.timers.tick(1);
  await new Promise(setImmediate);
  t.ok(isClosed);
  t.equal(ledger.queued, 1);
  t.ok(writer.hasEnded);
  await writer.answer(failed('restarting'));
  mock.timers.tick(10 * limits.ledgerRetryMs);
  t.equal(writers.length, 1, 'no other writer is started');
  t.equal(lines.at(-1), 'ledger entries were given up');
});
