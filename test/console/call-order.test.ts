/** Calls of the members of one account are made one after another; others do not wait for them. */
import t from 'tap';
import { CallOrder } from '../../src/console/call-order.js';

const here = () => false;

/** Calls that wait until they are let go. */
const start = (waitingMax: number) => {
  const order = new CallOrder(waitingMax);
  const made: string[] = [];
  const goOn = new Map<string, () => void>();
  const call = (accountId: number | null, name: string, isOver = here): Promise<string> =>
    order.run(accountId, isOver, async () => {
      made.push(name);
      await new Promise<void>((resolve) => goOn.set(name, resolve));
      return name;
    });
  /** @returns its answer */
  const finish = async (name: string, answer: Promise<string>): Promise<string> => {
    goOn.get(name)?.();
    return answer;
  };
  return { call, finish, made };
};

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

t.test(
  'an account makes one call at a time, in order; other accounts and operators do not wait',
  async (t) => {
    const { call, finish, made } = start(32);
    const first = call(1, 'first');
    const second = call(1, 'second');
    const others = [call(2, 'of another account'), call(null, 'of an operator'), call(null, 'of another')];
    await settle();
    t.same(made.toSorted(), ['first', 'of an operator', 'of another', 'of another account']);
    t.equal(await finish('first', first), 'first');
    await settle();
    t.equal(made.at(-1), 'second');
    t.equal(await finish('second', second), 'second');
    for (const name of made) await finish(name, Promise.resolve(name));
    await Promise.all(others);
  },
);

t.test('calls beyond the bound are refused, and the account goes on afterwards', async (t) => {
  const { call, finish, made } = start(2);
  const waiting = ['a', 'b', 'c'].map((name) => call(1, name));
  await t.rejects(call(1, 'd'), /Too many of your calls/);
  for (const [i, name] of ['a', 'b', 'c'].entries()) {
    await settle();
    await finish(name, waiting[i]!);
  }
  const later = call(1, 'e');
  await settle();
  t.equal(await finish('e', later), 'e');
  t.same(made, ['a', 'b', 'c', 'e']);
});

t.test('a call whose caller has gone is not made, and a failed call holds up no other', async (t) => {
  const order = new CallOrder(32);
  const failed = order.run(1, here, () => Promise.reject(new Error('no')));
  const gone = order.run(
    1,
    () => true,
    () => Promise.resolve(t.fail('the call of a caller that has gone')),
  );
  const next = order.run(1, here, () => Promise.resolve('next'));
  await t.rejects(failed, /no/);
  await t.rejects(gone);
  t.equal(await next, 'next');
});
