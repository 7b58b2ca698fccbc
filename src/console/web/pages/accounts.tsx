import { useState } from 'preact/hooks';
import type { AccountView } from '../../contract.js';
import { call } from '../call.js';
import { formatDay, formatNumber, plural } from '../format.js';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, numberOf, textOf } from '../parts/form.js';
import { Empty, Page, Shown, Time } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { showToast } from '../parts/toast.js';
import { navigate } from '../route.js';
import { useCall } from '../use-call.js';

export const Suspended = ({ account }: { readonly account: AccountView }) =>
  account.suspendedAtMs === null ? null : <span class="badge bad">Suspended</span>;

const CreateAccount = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Create account" onClose={onClose}>
    <Form
      submit="Create account"
      onCancel={onClose}
      onSubmit={async (values) => {
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
    </Form>
  </Dialog>
);

export const AccountsPage = () => {
  const accounts = useCall('accounts', {});
  const [isCreating, setIsCreating] = useState(false);
  const create = (
    <button type="button" class="button primary" onClick={() => setIsCreating(true)}>
      Create account
    </button>
  );
  return (
    <Page title="Accounts" lead="An account holds credit, keys and users." actions={create}>
      <Shown of={accounts}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No accounts yet" action={create}>
              Create one for yourself or for a customer. Its keys spend its credit.
            </Empty>
          ) : (
            <Table
              caption="Accounts"
              rows={rows}
              rowKey={({ accountId }) => accountId}
              columns={[
                {
                  label: 'Account',
                  cell: (account) => (
                    <>
                      <a href={`/accounts/${account.accountId}/keys`}>{account.name}</a>{' '}
                      <Suspended account={account} />
                    </>
                  ),
                },
                {
                  label: 'Credits left',
                  isNumber: true,
                  cell: ({ metered, balance }) =>
                    metered ? formatNumber(balance) : <span class="muted">No limit</span>,
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
          )
        }
      </Shown>
      {isCreating && <CreateAccount onClose={() => setIsCreating(false)} />}
    </Page>
  );
};

export const creditsLeft = ({ metered, balance }: AccountView): string =>
  metered ? `${plural(balance, 'credit')} left` : 'No credit limit';
