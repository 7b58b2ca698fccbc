/** What precedes calls and speech of the console: requests share it, and one caller keeps no other waiting. */
import t from 'tap';
import type { Authentication } from '../../src/accounts/admission.js';
import { CallOrder } from '../../src/console/call-order.js';
import type { User } from '../../src/console/contract.js';
import { keyOf as keyOfParts, type PlaygroundParts } from '../../src/console/playground.js';
import { Sessions, type Session, type SessionsParts } from '../../src/console/sessions.js';
import type { Exchange } from '../../src/front/exchange.js';
import type { RequestHead } from '../../src/front/request-head.js';
import { limits } from '../../src/limits.js';

const HIDDEN = 70;

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A front thread over an administration thread whose answers the test lets go. */
const start = () => {
  const users = new Map<string, User>();
  let nowMs = 0;
  const asked: { readonly what: string; readonly answer: () => Promise<void> }[] = [];
  const ask = <T>(what: string, read: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const answer = () => Promise.resolve().then(read).then(resolve, reject);
      asked.push({ what, answer });
    });
  const isThere = { account: true };
  const active = new Set<number>();
  const byId = (keyId: number): Authentication =>
    active.has(keyId)
      ? ({ ok: true, key: { keyId } } as unknown as Authentication)
      : { ok: false, code: 'keyUnknown' };
  const sessions: Sessions = new Sessions({
    administration: {
      session: (hash: string) => ask('session', () => users.get(hash) ?? null),
      liveSessions: (hashes: readonly string[]) => Promise.resolve(hashes),
    },
    cookies: { session: ({ cookie }: RequestHead) => cookie },
    order: new CallOrder(limits.consoleCallsWaitingMax),
    ...{ clock: () => nowMs, bounds: limits, log: {} },
  } as unknown as SessionsParts);
  const parts = {
    administration: {
      playgroundKey: () =>
        ask('key', () => {
          if (!isThere.account) throw new Error('no account');
          return HIDDEN;
        }),
    },
    admission: { byId, refresh: () => Promise.resolve() },
    sessions,
  } as unknown as PlaygroundParts;
  const keyOf = (session: Session, accountId: number) => keyOfParts(parts, session, accountId);
  const exchangeFrom = (peer: string) =>
    ({
      ...{ peer, services: { isBehindProxy: false, connections: { hasRoomFor: () => true } } },
      countFor: () => undefined,
    }) as unknown as Exchange;
  const headWith = (token: string) => ({ cookie: token, authorization: '' }) as RequestHead;
  return {
    ...{ asked, active, isThere, keyOf, sessions },
    find: (token: string, peer = '192.0.2.1') => sessions.find(exchangeFrom(peer), headWith(token)),
    signIn: (token: string, userId: number, accountId: number | null) => {
      const user = { userId, name: token, accountId, account: null } as unknown as User;
      users.set(sessions.hashIn(headWith(token))!, user);
      sessions.began({ token, user });
    },
    remove: (token: string) => users.delete(sessions.hashIn(headWith(token))!),
    wait: (ms: number) => (nowMs += ms),
    /** @returns what the thread had to do, one by one as it came */
    answerAll: async (): Promise<readonly string[]> => {
      const answered: string[] = [];
      await settle();
      for (let next = asked.shift(); next !== undefined; next = asked.shift()) {
        answered.push(next.what);
        await next.answer();
        await settle();
      }
      return answered;
    },
  };
};

t.test('sixty requests of a session at once look it up once, and its hidden key once', async (t) => {
  const { active, answerAll, find, keyOf, signIn } = start();
  signIn('mia', 1, 5);
  active.add(HIDDEN);
  const request = async () => keyOf((await find('mia'))!, 5);
  const first = Array.from({ length: 60 }, request);
  t.strictSame(await answerAll(), ['session', 'key']);
  for (const answer of await Promise.all(first)) t.match(answer, { ok: true, key: { keyId: HIDDEN } });
  const again = Array.from({ length: 60 }, request);
  t.strictSame(await answerAll(), [], 'nothing more');
  await Promise.all(again);
});

t.test('a session is looked up again after a moment, and once it may have ended', async (t) => {
  const { answerAll, find, remove, sessions, signIn, wait } = start();
  signIn('mia', 1, 5);
  const found = async () => {
    const session = find('mia');
    const asked = await answerAll();
    return { asked: asked.length, isThere: (await session) !== null };
  };
  t.strictSame(await found(), { asked: 1, isThere: true });
  t.strictSame(await found(), { asked: 0, isThere: true });
  wait(limits.consoleSessionRecheckMs);
  t.strictSame(await found(), { asked: 1, isThere: true });
  const before = find('mia');
  remove('mia');
  void sessions.check();
  t.strictSame(await found(), { asked: 1, isThere: false }, 'at once');
  await before;
});

t.test('an answer from before the end of a session is used for no later request', async (t) => {
  const { answerAll, asked, find, remove, sessions, signIn } = start();
  signIn('mia', 1, 5);
  const before = find('mia');
  await settle();
  t.equal(asked.length, 1);
  void sessions.check();
  await asked.shift()!.answer();
  t.not(await before, null);
  remove('mia');
  const after = find('mia');
  t.strictSame(await answerAll(), ['session']);
  t.equal(await after, null);
});

t.test('look-ups of an account, and those of a stranger, are made one at a time', async (t) => {
  const { answerAll, asked, find, signIn } = start();
  for (let i = 0; i < 10; i++) signIn(`of account ${i}`, i, 5);
  signIn('operator', 20, null);
  const found = [
    ...Array.from({ length: 10 }, (_, i) => find(`of account ${i}`)),
    ...Array.from({ length: 10 }, (_, i) => find(`forged ${i}`, '198.51.100.7')),
    find('operator'),
  ];
  await settle();
  t.equal(asked.length, 3, 'one of each waits on the thread');
  t.equal((await answerAll()).length, 21);
  t.equal((await Promise.all(found)).filter((session) => session === null).length, 10);
  const more = Array.from({ length: 60 }, (_, i) => find(`more ${i}`, '198.51.100.7'));
  const refused = Promise.allSettled(more).then(
    (all) => all.filter(({ status }) => status === 'rejected').length,
  );
  t.equal((await answerAll()).length, limits.consoleCallsWaitingMax + 1);
  t.equal(await refused, 60 - limits.consoleCallsWaitingMax - 1);
});

t.test('a refusal is not kept, and a key is not used after its account has ended', async (t) => {
  const { active, answerAll, find, isThere, keyOf, sessions, signIn } = start();
  signIn('mia', 1, 5);
  const session = find('mia');
  await answerAll();
  const mia = (await session)!;
  const answer = async () => {
    const found = keyOf(mia, 5).catch(() => 'refused');
    await answerAll();
    return found;
  };
  isThere.account = false;
  t.equal(await answer(), 'refused');
  isThere.account = true;
  active.add(HIDDEN);
  t.match(await answer(), { ok: true });
  active.delete(HIDDEN);
  t.strictSame(await answer(), { ok: false, code: 'keyUnknown' }, 'at once, also if another host ended it');
  isThere.account = false;
  void sessions.check();
  t.equal(await answer(), 'refused');
});
