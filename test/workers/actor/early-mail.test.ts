import t from 'tap';
import { firstContextId } from '../../../src/threads/messages.js';
import { EarlyMail } from '../../../workers/actor/early-mail.js';

const ACTOR = 3;
const FIRST = firstContextId(ACTOR);

const bench = () => {
  const reports: string[] = [];
  const early = new EarlyMail(ACTOR, (reason) => reports.push(reason));
  return { early, reports };
};

const chunk = (contextId: number, segment = 0) =>
  ({ type: 'segment-done', contextId, segment, samples: 0 }) as const;

t.test('chunks that overtake the opening of their context are kept for it, in order', (t) => {
  const { early, reports } = bench();
  t.same(early.opened(FIRST), []);
  early.offer(chunk(FIRST + 2, 0));
  early.offer(chunk(FIRST + 2, 1));
  t.same(early.opened(FIRST + 1), []);
  t.same(early.opened(FIRST + 2), [chunk(FIRST + 2, 0), chunk(FIRST + 2, 1)]);
  t.same(early.opened(FIRST + 3), []);
  t.strictSame(reports, []);
  t.end();
});

t.test('mail for a context that is over is dropped, and no error', (t) => {
  const { early, reports } = bench();
  early.opened(FIRST);
  early.opened(FIRST + 1);
  early.offer(chunk(FIRST));
  early.command('cancel', FIRST);
  early.command('close', FIRST + 1);
  t.same(early.opened(FIRST + 2), []);
  t.strictSame(reports, []);
  t.end();
});

t.test('mail for a context that cannot exist is reported, once for each context', (t) => {
  const { early, reports } = bench();
  early.opened(FIRST + 2);
  early.offer(chunk(1));
  early.offer(chunk(1));
  early.offer(chunk(firstContextId(ACTOR + 1)));
  early.command('flush', FIRST + 3);
  early.command('segment', 2);
  t.strictSame(reports, [
    'audio came for a context of another thread: 1',
    `audio came for a context of another thread: ${firstContextId(ACTOR + 1)}`,
    `"flush" came for a context that was never opened: ${FIRST + 3}`,
    '"segment" came for a context that was never opened: 2',
  ]);
  t.end();
});

t.test('chunks of a context that later contexts overtook are reported and dropped', (t) => {
  const { early, reports } = bench();
  early.offer(chunk(FIRST));
  t.same(early.opened(FIRST + 1), []);
  t.strictSame(reports, [`audio came for a context that was never opened: ${FIRST}`]);
  early.offer(chunk(FIRST));
  t.equal(reports.length, 1);
  t.end();
});

t.test('a context that was opened before, or belongs to another thread, is reported', (t) => {
  const { early, reports } = bench();
  early.opened(FIRST + 1);
  early.opened(FIRST + 1);
  early.opened(firstContextId(ACTOR - 1));
  t.strictSame(reports, [
    `a context opens that this thread cannot open: ${FIRST + 1}`,
    `a context opens that this thread cannot open: ${firstContextId(ACTOR - 1)}`,
  ]);
  t.end();
});

t.test('early chunks are kept for a bounded number of contexts', (t) => {
  const { early, reports } = bench();
  for (let id = FIRST; id < FIRST + 256; id++) early.offer(chunk(id));
  t.strictSame(reports, []);
  early.offer(chunk(FIRST + 256));
  t.strictSame(reports, [`audio came early for too many contexts: ${FIRST + 256}`]);
  t.end();
});
