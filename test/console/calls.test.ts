/** What the calls of the console do besides asking the store, and when. */
import t from 'tap';
import { createCalls, type Caller, type CallsParts } from '../../src/console/calls.js';

t.test('the streams of a session that an act ends are looked at when the act is done', async (t) => {
  const steps: string[] = [];
  const done = (name: string) => async () => {
    await new Promise(setImmediate);
    steps.push(name);
    return {};
  };
  const names = ['deleteAccount', 'removeUser', 'revokeToken', 'suspendAccount', 'signOut'] as const;
  const calls = createCalls({
    administration: Object.fromEntries([...names, 'claimed'].map((name) => [name, done(name)])),
    lexicons: { reload: () => Promise.resolve() },
    about: () => ({}),
    onEnded: () => steps.push('ended'),
  } as unknown as CallsParts);
  const session = { user: { userId: 1, accountId: null } };
  const caller = { session, tokenHash: 'hash', end: () => undefined } as unknown as Caller;
  const acts = {
    deleteAccount: () => calls.deleteAccount({ accountId: 4 }, caller),
    removeUser: () => calls.removeUser({ userId: 2 }, caller),
    revokeToken: () => calls.revokeToken({ name: 'web' }, caller),
    suspendAccount: () => calls.suspendAccount({ accountId: 4, suspended: true }, caller),
    signOut: () => calls.signOut({ everywhere: true }, caller),
  };
  for (const name of names) {
    steps.length = 0;
    await acts[name]();
    t.strictSame(steps.slice(0, 2), [name, 'ended'], name);
  }
});

t.test('a created key is answered when the service knows it', async (t) => {
  const steps: string[] = [];
  const later = (name: string) => async () => {
    await new Promise(setImmediate);
    steps.push(name);
  };
  const calls = createCalls({
    administration: { createKey: later('created') },
    admission: { refresh: later('refreshed') },
    voices: { ids: [] },
    lexicons: { names: [] },
  } as unknown as CallsParts);
  const caller = { session: { user: { userId: 1, accountId: 4 } } } as unknown as Caller;
  await calls.createKey({ accountId: 4, properties: { name: 'web' } }, caller);
  t.strictSame(steps, ['created', 'refreshed']);
});
