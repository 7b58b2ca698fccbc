/** One account: its keys, usage and users, and for operators its credit, suspension and deletion. */
import type { ComponentChildren, FunctionComponent } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import type { AccountView, SpeakingDefaults } from '../../contract.js';
import { call } from '../call.js';
import { formatTime, plural } from '../format.js';
import { AskButton, ConfirmButton } from '../parts/dialog.js';
import { changedIn } from '../parts/form.js';
import { keepAccount } from '../parts/account-choice.js';
import { Empty, Page, Shown } from '../parts/page.js';
import { showToast } from '../parts/toast.js';
import { navigate } from '../route.js';
import { useUser } from '../session.js';
import { useCall } from '../use-call.js';
import { Suspended } from './accounts.js';
import { AccountAlerts } from './alerts.js';
import { AddCredit, creditsLeft } from './credit.js';
import { Keys } from './keys.js';
import { Requests } from './requests.js';
import { SpeakingFields, speakingIn, speakingWords } from './speaking.js';
import { AccountUsage } from './usage.js';
import { Users } from './users.js';

interface Of {
  readonly account: AccountView;
}

/** One act on the account: what it is, and the button that asks for it. */
const Act = (props: {
  readonly title: string;
  readonly button: ComponentChildren;
  readonly children: ComponentChildren;
}) => (
  <section class="card between">
    <div>
      <h2>{props.title}</h2>
      <p class="muted">{props.children}</p>
    </div>
    {props.button}
  </section>
);

const Manage = ({ account }: Of) => {
  const { accountId, metered, name, suspendedAtMs } = account;
  const suspended = suspendedAtMs !== null;
  const suspend = suspended ? 'Resume' : 'Suspend';
  return (
    <div class="stack">
      <Act
        title="Speech"
        button={
          <AskButton
            label="Change speech"
            title={`Speech of ${name}`}
            act="Save"
            onAct={async (values) => {
              const { normalizeText, speed, lexiconId } = account;
              const before: SpeakingDefaults = { normalizeText, speed, lexiconId };
              const changes = changedIn(speakingIn(values), before);
              if (Object.keys(changes).length > 0) await call('changeAccount', { accountId, changes });
            }}
            done="Account changed."
          >
            <SpeakingFields of={account} unset="As the request’s API" />
          </AskButton>
        }
      >
        {speakingWords(account).join(', ') || 'The account sets nothing for its keys.'} Holds where neither a
        request nor its key says otherwise.
      </Act>
      {metered && (
        <Act
          title="Credit limit"
          button={
            <ConfirmButton
              label="Remove limit"
              kind=""
              title={`Remove the credit limit of ${name}?`}
              onAct={() => call('meterAccount', { accountId, metered: false, credits: 0 })}
              done={`${name} is not metered.`}
            >
              <p>
                The account is not metered then: it needs no credit. You can limit it again, and the credit
                that is left stays.
              </p>
            </ConfirmButton>
          }
        >
          {creditsLeft(account)}. Requests that need more are refused.
        </Act>
      )}
      <Act
        title={suspend}
        button={
          <ConfirmButton
            label={`${suspend} account`}
            kind=""
            title={`${suspend} ${name}?`}
            onAct={() => call('suspendAccount', { accountId, suspended: !suspended })}
            done={suspended ? `${name} is resumed.` : `${name} is suspended.`}
          >
            <p>
              {suspended
                ? 'Its keys work again at once.'
                : 'Its keys are refused, their WebSockets are closed, and its playground falls silent. Requests that speak already are spoken to their end.'}
            </p>
          </ConfirmButton>
        }
      >
        {suspended
          ? `Suspended on ${formatTime(suspendedAtMs)}. Its keys are refused until you resume it.`
          : 'Refuses all its keys at once and closes their WebSockets, until you resume it. No data is lost.'}
      </Act>
      <Act
        title="Delete"
        button={
          <ConfirmButton
            label="Delete account"
            kind="danger"
            title={`Delete ${name}?`}
            onAct={async () => {
              await call('deleteAccount', { accountId });
              showToast(`${name} is deleted.`);
              navigate('/accounts', { replace: true });
            }}
          >
            <p>
              {plural(account.keys, 'key')} and {plural(account.users, 'user')} are removed with it. This
              cannot be undone.
            </p>
          </ConfirmButton>
        }
      >
        Revokes its keys and removes its users. This cannot be undone. Its usage stays on record.
      </Act>
    </div>
  );
};

/** To operators these are tabs of one page, to members they are pages. */
const tabs: Readonly<Record<string, { readonly label: string; readonly Content: FunctionComponent<Of> }>> = {
  keys: { label: 'Keys', Content: Keys },
  usage: { label: 'Usage', Content: AccountUsage },
  requests: { label: 'Requests', Content: ({ account }) => <Requests accountId={account.accountId} /> },
  users: { label: 'Users', Content: ({ account }) => <Users accountId={account.accountId} /> },
  alerts: { label: 'Alerts', Content: AccountAlerts },
  manage: { label: 'Manage', Content: Manage },
};

export const AccountPage = (props: { readonly accountId: number; readonly tab: string }) => {
  const { accountId, tab: wanted } = props;
  const isOperator = useUser().role === 'operator';
  const asked = useCall('account', { accountId });
  useLayoutEffect(() => keepAccount(accountId), []);
  const tab = Object.hasOwn(tabs, wanted) && (isOperator || wanted !== 'manage') ? wanted : 'keys';
  const { label, Content } = tabs[tab]!;
  const account = asked.answer;
  if (account === undefined && asked.problem?.code === 'notFound')
    return (
      <Page title="There is no such account">
        <Empty
          title="It may have been deleted."
          action={isOperator ? <a href="/accounts">To the accounts</a> : <a href="/">To the playground</a>}
        />
      </Page>
    );
  const lead = account && (
    <>
      {isOperator ? creditsLeft(account) : `${account.name} · ${creditsLeft(account)}`}{' '}
      <Suspended account={account} />
    </>
  );
  return (
    <Page
      title={isOperator ? (account?.name ?? 'Account') : label}
      {...(isOperator ? { part: label } : {})}
      lead={lead ?? ' '}
      above={isOperator && <a href="/accounts">Accounts</a>}
      actions={isOperator && account !== undefined && <AddCredit account={account} />}
    >
      {isOperator && (
        <nav class="tabs" aria-label="Account">
          {Object.entries(tabs).map(([name, one]) => (
            <a href={`/accounts/${accountId}/${name}`} aria-current={name === tab ? 'page' : undefined}>
              {one.label}
            </a>
          ))}
        </nav>
      )}
      <Shown of={asked}>{(answer) => <Content account={answer} />}</Shown>
    </Page>
  );
};
