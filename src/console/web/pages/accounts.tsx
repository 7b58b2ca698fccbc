import type { AccountView } from '../../contract.js';
import { call } from '../call.js';
import { formatDay, formatNumber } from '../format.js';
import { AskButton } from '../parts/dialog.js';
import { CsvLink, saveCsv, useChoice, useSearch } from '../parts/filters.js';
import { Field, numberOf, textOf } from '../parts/form.js';
import { Empty, Page, Shown, Time } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { showToast } from '../parts/toast.js';
import { navigate } from '../route.js';
import { useCall } from '../use-call.js';

export const Suspended = ({ account }: { readonly account: AccountView }) =>
  account.suspendedAtMs === null ? null : <span class="badge bad">Suspended</span>;

const states = {
  all: 'All',
  active: 'Active',
  empty: 'Out of credit',
  suspended: 'Suspended',
} as const;
type State = keyof typeof states;

/** @param dry ids of accounts without enough credit for their requests */
const stateIn =
  (dry: ReadonlySet<number>) =>
  ({ accountId, suspendedAtMs }: AccountView): State =>
    suspendedAtMs !== null ? 'suspended' : dry.has(accountId) ? 'empty' : 'active';

/** What the table shows, as a file. */
const download = (rows: readonly AccountView[], stateOf: (account: AccountView) => State): void =>
  saveCsv('syrinx-accounts.csv', [
    ['account', 'state', 'credits_left', 'characters_30_days', 'keys', 'users', 'created'],
    ...rows.map((row) => [
      ...[row.name, stateOf(row), row.metered ? row.balance : '', row.recentCharacters],
      ...[row.keys, row.users, new Date(row.createdAtMs).toISOString()],
    ]),
  ]);

export const AccountsPage = () => {
  const accounts = useCall('accounts', {});
  const alerts = useCall('alerts', { accountId: null }).answer ?? [];
  const isDry = alerts.filter(({ cause }) => cause === 'credit.out');
  const stateOf = stateIn(new Set(isDry.map(({ accountId }) => accountId)));
  const [search, searchField] = useSearch('Search accounts');
  const [state, stateField] = useChoice('state', 'State', states);
  const isShown = (account: AccountView) =>
    (state === 'all' || stateOf(account) === state) &&
    account.name.toLowerCase().includes(search.toLowerCase());
  const create = (
    <AskButton
      label="Create account"
      kind="primary"
      title="Create account"
      onAct={async (values) => {
        const name = textOf(values, 'name');
        const { accountId } = await call('createAccount', { name, credits: numberOf(values, 'credits') });
        showToast(`Account ${name} created.`);
        navigate(`/accounts/${accountId}/keys`);
      }}
    >
      <Field
        name="name"
        label="Name"
        required
        maxLength={64}
        autocomplete="off"
        hint="A person, a team or an application."
      />
      <Field
        name="credits"
        label="Credits"
        type="number"
        min={0}
        step={1}
        inputMode="numeric"
        hint="How many credits the account can spend. You can add more later. Empty: no limit."
      />
    </AskButton>
  );
  return (
    <Page title="Accounts" lead="An account holds credit, keys and users." actions={create}>
      <Shown of={accounts}>
        {(all) => {
          if (all.length === 0)
            return (
              <Empty title="No accounts yet" action={create}>
                Create one for yourself or for a customer. Its keys spend its credit.
              </Empty>
            );
          const rows = all.filter(isShown);
          return (
            <>
              <div class="filters">
                {searchField}
                {stateField}
                <CsvLink onClick={() => download(rows, stateOf)} />
              </div>
              <Table
                caption="Accounts"
                none="No account is like that. Change the search or the state."
                rows={rows}
                rowKey={({ accountId }) => accountId}
                columns={[
                  {
                    label: 'Account',
                    cell: (account) => (
                      <>
                        <a href={`/accounts/${account.accountId}/keys`}>{account.name}</a>{' '}
                        <Suspended account={account} />
                        {stateOf(account) === 'empty' && <span class="badge bad">{states.empty}</span>}
                      </>
                    ),
                  },
                  {
                    label: 'Credits left',
                    isNumber: true,
                    cell: ({ metered, balance }) =>
                      metered ? formatNumber(balance) : <span class="muted">Not metered</span>,
                  },
                  {
                    label: 'Characters, 30 days',
                    isNumber: true,
                    cell: ({ recentCharacters }) => formatNumber(recentCharacters),
                  },
                  { label: 'Keys', isNumber: true, cell: ({ keys }) => formatNumber(keys) },
                  { label: 'Users', isNumber: true, cell: ({ users }) => formatNumber(users) },
                  {
                    label: 'Created',
                    cell: ({ createdAtMs }) => <Time ms={createdAtMs} format={formatDay} />,
                  },
                ]}
              />
            </>
          );
        }}
      </Shown>
    </Page>
  );
};
