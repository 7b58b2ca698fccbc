/** The audit table: what members do pushes out nothing of what operators did. */
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { record } from '../../src/accounts/audit.js';
import { limits } from '../../src/limits.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { memoryFolder } from '../store/support.js';

const MEMBERS_ACTS_MAX = 10_000;

t.test('rows of members have a part for each account', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [
    ['ada', null],
    ['bell', null],
  ]);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const act = { atMs: Date.now(), action: 'session.signIn', subject: 'x', details: '' };
  const members = [1, 2].map((accountId) => ({ name: `member of ${accountId}`, accountId }));
  await store.transact(async (transaction) => {
    await record(transaction, members[1]!, act);
    const { accountId, name: actor } = members[0]!;
    for (let i = 0; i < MEMBERS_ACTS_MAX; i++) await transaction.record({ ...act, actor, accountId });
    for (let i = 0; i < 50; i++) await record(transaction, members[0]!, act);
  });
  const rows = await store.read(async (view) => view.listActs(null, 1_000_000));
  const ofActor = (name: string) => rows.filter(({ actor }) => actor === name).length;
  t.equal(ofActor('member of 1'), MEMBERS_ACTS_MAX);
  t.equal(ofActor('member of 2'), 1);
  t.equal(ofActor('command line'), 4, 'two accounts and two keys');
});
