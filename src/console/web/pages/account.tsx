/** One account: its keys, usage and users, and for operators its credit, suspension and deletion. */
import { useState } from 'preact/hooks';
import type { AccountView, SpeakingDefaults } from '../../contract.js';
import { call } from '../call.js';
import { formatTime, plural } from '../format.js';
import { Confirm, Dialog } from '../parts/dialog.js';
import { changedIn, Field, Form, numberOf } from '../parts/form.js';
import { Page, Shown } from '../parts/page.js';
import { showToast } from '../parts/toast.js';
import { navigate } from '../route.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';
import { creditsLeft, Suspended } from './accounts.js';
import { Keys } from './keys.js';
import { SpeakingFields, speakingIn, speakingWords } from './speaking.js';
import { AccountUsage } from './usage.js';
import { Users } from './users.js';

interface Of {
  readonly account: AccountView;
}

const addCredit = ({ metered }: AccountView): string => (metered ? 'Add credit' : 'Limit credit');

const AddCredit = ({ account, onClose }: Of & { readonly onClose: () => void }) => (
  <Dialog title={`${addCredit(account)}: ${account.name}`} onClose={onClose}>
    <Form
      submit={addCredit(account)}
      onCancel={onClose}
      onSubmit={async (values) => {
        const { accountId, metered } = account;
        const credits = numberOf(values, 'credits') ?? 0;
        if (metered) await call('credit', { accountId, credits });
        else await call('meterAccount', { accountId, metered: true, credits });
        await refresh();
        showToast(`${account.name} got ${plural(credits, 'credit')}.`);
        onClose();
      }}
    >
      <Field
        name="credits"
        label="Credits"
        type="number"
        required
        min={account.metered ? 1 : 0}
        step={1}
        inputMode="numeric"
        hint={
          account.metered
            ? `${creditsLeft(account)} now.`
            : 'The account has no limit now. From then on it can spend only these credits and what it had left. What it spent beyond is free.'
        }
      />
    </Form>
  </Dialog>
);

const ChangeSpeech = ({ account, onClose }: Of & { readonly onClose: () => void }) => (
  <Dialog title={`Speech of ${account.name}`} onClose={onClose}>
    <Form
      submit="Save"
      onCancel={onClose}
      onSubmit={async (values) => {
        const { accountId, normalizeText, speed, lexiconId } = account;
        const changes = changedIn<SpeakingDefaults>(speakingIn(values), { normalizeText, speed, lexiconId });
        if (Object.keys(changes).length > 0) await call('changeAccount', { accountId, changes });
        await refresh();
        showToast('Account changed.');
        onClose();
      }}
    >
      <SpeakingFields of={account} unset="As the request’s API" />
    </Form>
  </Dialog>
);

const Manage = ({ account }: Of) => {
  const [asked, setAsked] = useState<'speech' | 'limit' | 'suspend' | 'delete' | null>(null);
  const { accountId, metered, name, suspendedAtMs } = account;
  const suspended = suspendedAtMs !== null;
  const close = () => setAsked(null);
  const suspend = async () => {
    await call('suspendAccount', { accountId, suspended: !suspended });
    await refresh();
    showToast(suspended ? `${name} is resumed.` : `${name} is suspended.`);
    close();
  };
  const removeLimit = async () => {
    await call('meterAccount', { accountId, metered: false, credits: 0 });
    await refresh();
    showToast(`${name} has no credit limit.`);
    close();
  };
  const remove = async () => {
    await call('deleteAccount', { accountId });
    showToast(`${name} is deleted.`);
    navigate('/accounts', { replace: true });
  };
  return (
    <div class="stack">
      <section class="card between">
        <div>
          <h2>Speech</h2>
          <p class="muted">
            {speakingWords(account).join(', ') || 'The account sets nothing for its keys.'} Holds where
            neither a request nor its key says otherwise.
          </p>
        </div>
        <button type="button" class="button" onClick={() => setAsked('speech')}>
          Change speech
        </button>
      </section>
      {metered && (
        <section class="card between">
          <div>
            <h2>Credit limit</h2>
            <p class="muted">{creditsLeft(account)}. Requests that need more are refused.</p>
          </div>
          <button type="button" class="button" onClick={() => setAsked('limit')}>
            Remove limit
          </button>
        </section>
      )}
      <section class="card between">
        <div>
          <h2>{suspended ? 'Resume' : 'Suspend'}</h2>
          <p class="muted">
            {suspended
              ? `Suspended on ${formatTime(suspendedAtMs)}. Its keys are refused until you resume it.`
              : 'Refuses all its keys at once and closes their WebSockets, until you resume it. No data is lost.'}
          </p>
        </div>
        <button type="button" class="button" onClick={() => setAsked('suspend')}>
          {suspended ? 'Resume account' : 'Suspend account'}
        </button>
      </section>
      <section class="card between">
        <div>
          <h2>Delete</h2>
          <p class="muted">
            Revokes its keys and removes its users. This cannot be undone. Its usage stays on record.
          </p>
        </div>
        <button type="button" class="button danger" onClick={() => setAsked('delete')}>
          Delete account
        </button>
      </section>
      {asked === 'speech' && <ChangeSpeech account={account} onClose={close} />}
      {asked === 'limit' && (
        <Confirm
          title={`Remove the credit limit of ${name}?`}
          act="Remove limit"
          onAct={removeLimit}
          onClose={close}
        >
          <p>
            The account never runs out of credit then. You can limit it again: the credit that is left stays.
          </p>
        </Confirm>
      )}
      {asked === 'suspend' && (
        <Confirm
          title={suspended ? `Resume ${name}?` : `Suspend ${name}?`}
          act={suspended ? 'Resume account' : 'Suspend account'}
          onAct={suspend}
          onClose={close}
        >
          <p>
            {suspended
              ? 'Its keys work again at once.'
              : 'Its keys are refused, their WebSockets are closed, and its playground falls silent. Requests that speak already are spoken to their end.'}
          </p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm title={`Delete ${name}?`} act="Delete account" onAct={remove} onClose={close}>
          <p>
            {plural(account.keys, 'key')} and {plural(account.users, 'user')} are removed with it. This cannot
            be undone.
          </p>
        </Confirm>
      )}
    </div>
  );
};

const tabs = { keys: 'Keys', usage: 'Usage', users: 'Users', manage: 'Manage' } as const;
type Tab = keyof typeof tabs;

const Content = ({ account, tab }: Of & { readonly tab: Tab }) => {
  switch (tab) {
    case 'keys':
      return <Keys account={account} />;
    case 'usage':
      return <AccountUsage account={account} />;
    case 'users':
      return <Users accountId={account.accountId} />;
    case 'manage':
      return <Manage account={account} />;
  }
};

export const AccountPage = ({
  accountId,
  tab: wanted,
}: {
  readonly accountId: number;
  readonly tab: string;
}) => {
  const isOperator = useUser().role === 'operator';
  const asked = useCall('account', { accountId });
  const [isAdding, setIsAdding] = useState(false);
  const tab: Tab = wanted in tabs && (isOperator || wanted !== 'manage') ? (wanted as Tab) : 'keys';
  const account = asked.answer;
  const lead = account && (
    <>
      {isOperator ? creditsLeft(account) : `${account.name} · ${creditsLeft(account)}`}{' '}
      <Suspended account={account} />
    </>
  );
  return (
    <Page
      title={isOperator ? (account?.name ?? 'Account') : tabs[tab]}
      {...(isOperator ? { part: tabs[tab] } : {})}
      lead={lead ?? ' '}
      above={
        isOperator && (
          <a class="above" href="/accounts">
            Accounts
          </a>
        )
      }
      actions={
        isOperator &&
        account !== undefined && (
          <button type="button" class="button" onClick={() => setIsAdding(true)}>
            {addCredit(account)}
          </button>
        )
      }
    >
      {isOperator && (
        <nav class="tabs" aria-label="Account">
          {Object.entries(tabs).map(([name, label]) => (
            <a href={`/accounts/${accountId}/${name}`} aria-current={name === tab ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
      )}
      <Shown of={asked}>{(answer) => <Content account={answer} tab={tab} />}</Shown>
      {isAdding && account !== undefined && (
        <AddCredit account={account} onClose={() => setIsAdding(false)} />
      )}
    </Page>
  );
};
