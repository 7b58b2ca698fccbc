/** Users, sessions and one-time links, with a clock that the test moves. */
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { Access } from '../../src/accounts/access.js';
import { Administration } from '../../src/accounts/administration.js';
import { Passwords } from '../../src/accounts/passwords.js';
import { Sessions } from '../../src/accounts/sessions.js';
import { hashToken } from '../../src/accounts/tokens.js';
import { limits, type Bounds } from '../../src/limits.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { AdministrationError, type StoreAdministration, type StoreError } from '../../src/store/store.js';
import { memoryFolder } from '../store/support.js';
import { pause } from '../support/waiting.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const PASSWORD = 'correct horse battery staple';
const ADDRESS = '203.0.113.7';

const hashOf = ({ token }: { readonly token: string }): string => hashToken(token);

const setUp = async (t: Test, changed: Partial<Bounds> = {}) => {
  const bounds = { ...limits, ...changed };
  const dataDir = memoryFolder(t);
  const store = new SqliteAdministration(dataDir, bounds);
  t.teardown(() => store.close());
  const clock = { nowMs: Date.UTC(2026, 5, 1) };
  const nowMs = () => clock.nowMs;
  const passwords = new Passwords(bounds.passwordsWaitingMax);
  const sessions = new Sessions(store, bounds, nowMs);
  const access = new Access({ store, sessions, passwords, bounds, nowMs });
  await new Administration(store, { nowMs }).createKey('ada', 5);
  const claim = async (name = 'Root') => {
    const { token } = await access.makeLink('command line', false);
    return access.claim({ token, name, password: PASSWORD }, ADDRESS);
  };
  const acts = () =>
    store.read(async (view) =>
      (await view.listActs(null, 100)).map(({ actor, action, subject, details }) =>
        [actor, action, subject, details].join(' | '),
      ),
    );
  return { dataDir, store, access, sessions, passwords, bounds, nowMs, clock, claim, acts };
};

const refused = async (t: Test, call: Promise<unknown>, expected: object) => {
  const error: unknown = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  t.ok(error instanceof AdministrationError, String(error));
  t.match(error, expected);
};

t.test('a link claims the console once, for half an hour, and only the newest one', async (t) => {
  const { access, clock } = await setUp(t);
  const claimWith = (token: string) => access.claim({ token, name: 'Root', password: PASSWORD }, ADDRESS);
  const old = await access.makeLink('service', true);
  const link = await access.makeLink('command line', false);
  t.equal(link.expiresAtMs, clock.nowMs + 30 * MINUTE_MS);
  t.match(link.token, /^[\w-]{43}$/);
  await refused(t, claimWith(old?.token ?? ''), { objection: 'notFound', message: /^This link was used/ });
  clock.nowMs += 30 * MINUTE_MS;
  await refused(t, claimWith(link.token), { objection: 'notFound', message: /npm run console -- link/ });
  const [one, two] = [await access.makeLink('command line', false), (await setUp(t)).access];
  t.equal(await access.claimed(), false);
  const both = await Promise.allSettled([claimWith(one.token), claimWith(one.token)]);
  t.strictSame(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
    'two at once: one claims',
  );
  t.ok(await access.claimed());
  t.notOk(await two.claimed());
  await refused(t, claimWith(one.token), { objection: 'notFound' });
  t.equal(await access.makeLink('service', true), null);
});

t.test('a later link gives a named operator a new password, and ends its sessions', async (t) => {
  const { access, sessions, claim, acts } = await setUp(t);
  const first = await claim();
  const { token } = await access.makeLink('command line', false);
  const recover = (name: string, password: string) => access.claim({ token, name, password }, ADDRESS);
  await refused(t, recover('Eve', 'another password'), {
    objection: 'badRequest',
    field: 'name',
    message: /No operator is named "Eve": .*\(Root\)/,
  });
  const again = await recover('ROOT', 'another password');
  t.equal(again.user.userId, first.user.userId);
  t.equal(await sessions.session(hashToken(first.token)), null);
  t.not(again.device, first.device, 'what a browser had is void too');
  await refused(t, recover('Root', PASSWORD), { objection: 'notFound' });
  await refused(t, access.signIn({ name: 'Root', password: PASSWORD }, ADDRESS, true), {
    objection: 'forbidden',
  });
  t.match(await access.signIn({ name: 'root', password: 'another password' }, ADDRESS, true), {
    user: { name: 'Root' },
  });
  t.match((await acts()).slice(0, 4), [
    'Root | session.signIn | Root | from 203.0.113.7',
    'nobody | session.refuse | Root | from 203.0.113.7',
    'Root | user.recover | Root | from 203.0.113.7',
    'command line | console.link | recovery | ',
  ]);
});

t.test(
  'a session ends without activity, by age, by a sign-out, and beyond the number of a user',
  async (t) => {
    const { access, store, sessions, clock, claim } = await setUp(t, { sessionsPerUserMax: 3 });
    const { token, user } = await claim();
    const credentials = { name: 'root', password: PASSWORD };
    const see = async (session: string) => {
      const found = await sessions.session(hashToken(session));
      // An act follows the one that notes the activity.
      await store.transact(async () => undefined);
      return found;
    };
    t.strictSame(await see(token), user);
    for (let hours = 0; hours < 24; hours += 11) {
      clock.nowMs += 11 * HOUR_MS;
      t.match(await see(token), { name: 'Root' }, 'activity keeps it');
    }
    t.strictSame(await sessions.liveSessions([hashToken(token), 'x']), [hashToken(token)]);
    clock.nowMs += 11 * HOUR_MS;
    await sessions.liveSessions([hashToken(token)]);
    clock.nowMs += HOUR_MS;
    t.equal(await see(token), null, '12 hours; to look at it is no activity');
    t.equal(await see(token), null);

    const aged = (await access.signIn(credentials, ADDRESS, true)).token;
    for (let hours = 0; hours < 30 * 24 - 10; hours += 10) {
      clock.nowMs += 10 * HOUR_MS;
      t.ok(await see(aged));
    }
    clock.nowMs += 10 * HOUR_MS;
    t.equal(await see(aged), null, '30 days');

    const open: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      clock.nowMs += MINUTE_MS;
      open.push((await access.signIn(credentials, ADDRESS, true)).token);
    }
    const alive = async () => (await sessions.liveSessions(open.map(hashToken))).length;
    t.equal(await alive(), 3);
    t.equal(await see(open[0] ?? ''), null, 'the oldest ended');
    await sessions.signOut(hashToken(open[1] ?? ''), false);
    await sessions.signOut(hashToken(open[1] ?? ''), false);
    t.equal(await alive(), 2);
    await sessions.signOut(hashToken(open[2] ?? ''), true);
    t.equal(await alive(), 0);
  },
);

t.test('activity is noted once a minute', async (t) => {
  const { store, sessions, clock, claim } = await setUp(t);
  const { token } = await claim();
  const hash = hashToken(token);
  const seenAfter = async (ms: number) => {
    clock.nowMs += ms;
    await sessions.session(hash);
    await store.transact(async () => undefined);
    return clock.nowMs - ((await store.read(async (view) => view.findSession(hash)))?.seenAtMs ?? 0);
  };
  t.equal(await seenAfter(59_999), 59_999);
  t.equal(await seenAfter(1), 0);
});

t.test('a session goes on while its activity cannot be noted', async (t) => {
  const { dataDir, store, sessions, clock, claim } = await setUp(t, { storeBusyMsMax: 200 });
  const { token } = await claim();
  const hash = hashToken(token);
  const lock = new DatabaseSync(storePath(dataDir));
  t.teardown(() => lock.close());
  lock.exec('BEGIN IMMEDIATE');
  clock.nowMs += MINUTE_MS;
  t.match(await sessions.session(hash), { name: 'Root' });
  t.match(await sessions.session(hash), { name: 'Root' });
  const act = store.transact(async () => 'done').catch((error: unknown) => (error as StoreError).fault);
  t.equal(await Promise.race([act, sessions.session(hash).then(() => 'seen')]), 'seen', 'nor does it wait');
  t.equal(await act, 'busy');
  lock.exec('ROLLBACK');
  await sessions.session(hash);
  await store.transact(async () => undefined);
  const found = await store.read(async (view) => view.findSession(hash));
  t.equal(found?.seenAtMs, clock.nowMs, 'it is noted when it can be');
});

t.test('a new password needs the present one, and ends the other sessions', async (t) => {
  const { access, sessions, claim } = await setUp(t);
  const { token } = await claim();
  const other = await access.signIn({ name: 'root', password: PASSWORD }, ADDRESS, true);
  const change = (current: string) => access.changePassword(hashToken(token), current, 'a new password');
  await refused(t, change('wrong'), { objection: 'forbidden', field: 'current' });
  await change(PASSWORD);
  t.ok(await sessions.session(hashToken(token)));
  t.equal(await sessions.session(hashToken(other.token)), null);
  await refused(t, access.signIn({ name: 'root', password: PASSWORD }, ADDRESS, true), {
    objection: 'forbidden',
  });
  t.ok(await access.signIn({ name: 'root', password: 'a new password' }, ADDRESS, true));
  await refused(t, access.changePassword('x', 'a', 'b'), { objection: 'signedOut' });
});

t.test(
  'names that differ in case or in form are one name, and passwords in another form one password',
  async (t) => {
    const { access, claim } = await setUp(t);
    const root = await claim('Zo\u00eb');
    for (const name of ['zo\u00eb', 'ZO\u00cb', 'Zoe\u0308', '\uff3ao\u00eb'])
      t.equal(
        (await access.signIn({ name, password: PASSWORD }, ADDRESS, true)).user.userId,
        root.user.userId,
        name,
      );
    const { token } = await access.invite(hashOf(root), null);
    const taken = { token, name: 'ZOE\u0308', password: 'p\u00e4ssw\u00f6rter' };
    await refused(t, access.acceptInvitation(taken, ADDRESS), { objection: 'conflict', field: 'name' });
    await refused(t, access.acceptInvitation({ ...taken, name: ' a' }, ADDRESS), { field: 'name' });
    const second = await access.acceptInvitation({ ...taken, name: 'Ben' }, ADDRESS);
    t.equal(second.user.role, 'operator');
    const composed = 'pa\u0308sswo\u0308rter';
    t.ok(await access.signIn({ name: 'ben', password: composed }, ADDRESS, true));
  },
);

t.test('an invitation is for 72 hours and one user, and goes with its account', async (t) => {
  const { store, access, acts, clock, claim } = await setUp(t, { linksMax: 2 });
  let root = hashOf(await claim());
  const accept = (token: string, name: string) =>
    access.acceptInvitation({ token, name, password: PASSWORD }, ADDRESS);
  const first = await access.invite(root, 1);
  clock.nowMs += 72 * HOUR_MS - 1;
  t.strictSame(await access.invitation(first.token), { role: 'member', account: 'ada' });
  clock.nowMs += 1;
  await refused(t, access.invitation(first.token), { message: /^This invitation was used, has expired/ });
  root = hashOf(await access.signIn({ name: 'Root', password: PASSWORD }, ADDRESS, true));
  const [second, third] = [await access.invite(root, 1), await access.invite(root, 1)];
  await refused(t, access.invite(root, 1), { objection: 'conflict', message: /too many/ });
  const both = await Promise.allSettled([accept(second.token, 'Mia'), accept(second.token, 'Max')]);
  t.equal(both.filter(({ status }) => status === 'fulfilled').length, 1);
  const name = both[0].status === 'fulfilled' ? 'Mia' : 'Max';
  await refused(t, access.signIn({ name, password: 'wrong password' }, ADDRESS, true), {
    objection: 'forbidden',
  });
  t.equal((await acts())[0], `nobody | session.refuse | ${name} | of "ada", from 203.0.113.7`);
  await refused(t, accept(second.token, 'Moe'), { objection: 'notFound' });
  await new Administration(store).deleteAccount('ada');
  await refused(t, accept(third.token, 'Moe'), { objection: 'notFound' });
  await refused(t, access.invite(root, 1), { objection: 'notFound' });
  await refused(t, access.withdrawInvitations(root, 1), { objection: 'notFound' });
  const mia = await store.read(async (view) => view.findUser({ handle: 'mia' }));
  t.equal(mia, null);
});

t.test('no user has the name of another actor, or one in letters of two scripts', async (t) => {
  const { access, claim } = await setUp(t);
  const expected = { objection: 'badRequest', field: 'name', message: /^A user is not named command line, / };
  await refused(t, claim('service'), expected);
  const root = await claim('Ольга');
  const { token } = await access.invite(hashOf(root), 1);
  for (const name of ['Command Line', 'command\u00a0 line', 'SERVICE', 'nobody', 'R\u043eot', 'Root\u03bf'])
    await refused(t, access.acceptInvitation({ token, name, password: PASSWORD }, ADDRESS), expected);
  const joined = await access.acceptInvitation({ token, name: 'Services', password: PASSWORD }, ADDRESS);
  t.equal(joined.user.name, 'Services', 'the invitation was not spent');
});

t.test('an operator who is removed has no way back: open invitations end', async (t) => {
  const { access, claim } = await setUp(t);
  const root = await claim();
  const join = async (accountId: number | null, name: string) => {
    const { token } = await access.invite(hashOf(root), accountId);
    return access.acceptInvitation({ token, name, password: PASSWORD }, ADDRESS);
  };
  const [otto, mia] = [await join(null, 'Otto'), await join(1, 'Mia')];
  const own = await access.invite(hashOf(otto), null);
  await access.removeUser(hashOf(root), mia.user.userId);
  t.strictSame(await access.invitation(own.token), { role: 'operator', account: null }, 'a member made none');
  await access.removeUser(hashOf(root), otto.user.userId);
  await refused(t, access.invitation(own.token), { objection: 'notFound' });
});

t.test('open invitations are listed until they expire, and can be withdrawn', async (t) => {
  const { access, clock, claim } = await setUp(t);
  let root = hashOf(await claim());
  const ends = async (accountId: number | null) =>
    (await access.invitations(root, accountId)).map(({ expiresAtMs }) => expiresAtMs);
  const first = await access.invite(root, 1);
  clock.nowMs += HOUR_MS;
  const second = await access.invite(root, 1);
  const operator = await access.invite(root, null);
  t.strictSame(await ends(1), [first.expiresAtMs, second.expiresAtMs]);
  clock.nowMs = first.expiresAtMs;
  root = hashOf(await access.signIn({ name: 'Root', password: PASSWORD }, ADDRESS, true));
  t.strictSame(await ends(1), [second.expiresAtMs]);
  await access.withdrawInvitations(root, 1);
  t.strictSame(await ends(1), []);
  await refused(t, access.invitation(second.token), { objection: 'notFound' });
  t.strictSame(await ends(null), [operator.expiresAtMs], 'those of operators stay');
  const [, member] = [
    await access.invite(root, 1),
    await access.acceptInvitation(
      { token: (await access.invite(root, 1)).token, name: 'Mia', password: PASSWORD },
      ADDRESS,
    ),
  ];
  await refused(t, access.withdrawInvitations(hashOf(member), 1), { objection: 'forbidden' });
  await refused(t, access.invitations(hashOf(member), 1), { objection: 'forbidden' });
  t.equal((await ends(1)).length, 1);
});

t.test(
  'refused sign-ins are recorded up to a number a minute, and never what was typed as a name',
  async (t) => {
    const { access, clock, claim, acts } = await setUp(t, { refusedSignInsPerMinuteMax: 2 });
    await claim();
    const attempt = (name: string) =>
      access.signIn({ name, password: 'wrong' }, ADDRESS, true).catch(() => undefined);
    const rows = async () => (await acts()).filter((act) => act.includes('session.refuse'));
    for (let count = 0; count < 5; count += 1) await attempt('my secret password');
    t.equal((await rows()).length, 2);
    clock.nowMs += MINUTE_MS;
    await attempt('root');
    t.match(await rows(), [
      'nobody | session.refuse | Root | from 203.0.113.7; 3 more before it',
      'nobody | session.refuse | an unknown name | from 203.0.113.7',
      'nobody | session.refuse | an unknown name | from 203.0.113.7',
    ]);
  },
);

t.test(
  'a password that is changed, or a user that is removed, while it is checked opens no session',
  async (t) => {
    const { access, claim, store } = await setUp(t);
    const root = await claim();
    const { token } = await access.invite(hashOf(root), null);
    const ben = await access.acceptInvitation({ token, name: 'Ben', password: PASSWORD }, ADDRESS);
    const signIn = (name: string) => access.signIn({ name, password: PASSWORD }, ADDRESS, true);
    // The check takes milliseconds; the change comes in between.
    const [changed] = await Promise.allSettled([
      signIn('Root'),
      store.transact(async (view) => view.setPassword(root.user.userId, 'another')),
    ]);
    const [removed] = await Promise.allSettled([
      signIn('Ben'),
      store.transact(async (view) => view.removeUser(ben.user.userId)),
    ]);
    for (const { status, ...attempt } of [changed, removed]) {
      t.equal(status, 'rejected');
      t.match(attempt, { reason: { objection: 'forbidden' } });
    }
  },
);

t.test('a refused sign-in is in the audit before it is answered, however slow the store is', async (t) => {
  const { acts, bounds, claim, nowMs, passwords, sessions, store } = await setUp(t);
  await claim();
  const slow: StoreAdministration = {
    read: (work) => store.read(work),
    transact: async (work) => {
      await pause(50);
      return store.transact(work);
    },
    close: () => store.close(),
  };
  const access = new Access({ store: slow, sessions, passwords, bounds, nowMs });
  await refused(t, access.signIn({ name: 'Root', password: 'wrong' }, ADDRESS, true), {
    objection: 'forbidden',
  });
  t.match((await acts())[0], /session\.refuse \| Root/);
});

t.test('passwords are hashed one at a time, by Argon2id, and a flood is refused', async (t) => {
  const passwords = new Passwords(2);
  const hashes = [passwords.hash('one'), passwords.hash('two')];
  await refused(t, passwords.hash('three'), { objection: 'unavailable' });
  const [one = '', two = ''] = await Promise.all(hashes);
  t.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.ok(await passwords.verify(one, 'one', false));
  t.notOk(await passwords.verify(two, 'one', false));
  t.notOk(await passwords.verify(null, 'one', false));
  const guess = passwords.verify(one, 'two', true);
  await refused(t, passwords.verify(one, 'one', true), { objection: 'unavailable' });
  t.ok(await passwords.verify(one, 'one', false), 'half of the places are not for strangers');
  t.notOk(await guess);
});

t.test('two operators: the last one stays', async (t) => {
  const { access, sessions, claim } = await setUp(t);
  const root = await claim();
  const { token } = await access.invite(hashOf(root), null);
  const ben = await access.acceptInvitation({ token, name: 'Ben', password: PASSWORD }, ADDRESS);
  await access.removeUser(hashOf(ben), root.user.userId);
  t.equal(await sessions.session(hashToken(root.token)), null);
  await refused(t, access.invite(hashOf(root), null), { objection: 'signedOut' });
  await refused(t, access.removeUser(hashOf(ben), ben.user.userId), { objection: 'conflict' });
});
