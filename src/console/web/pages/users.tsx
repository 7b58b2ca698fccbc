/** The users of an account, or the operators: who they are, invitations, removal. */
import { useState } from 'preact/hooks';
import type { Invited, InvitationLink } from '../../contract.js';
import { call } from '../call.js';
import { formatDay, formatNumber, formatTime } from '../format.js';
import { Button } from '../parts/button.js';
import { ConfirmButton, SecretDialog } from '../parts/dialog.js';
import { useAct } from '../parts/form.js';
import { Empty, Page, Problem, Shown, Time } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';

/** In words. */
export const invitedAs = ({ account }: Invited): string =>
  account === null ? 'an operator of this service' : `a user of the account ${account}`;

/** For operators. Nothing while no invitation is open. */
const OpenInvitations = ({ accountId }: { readonly accountId: number | null }) => {
  const { answer } = useCall('invitations', { accountId });
  const last = answer?.at(-1);
  if (answer === undefined || last === undefined) return null;
  return (
    <div class="between">
      <p class="muted">
        {answer.length === 1 ? 'An invitation is' : `${formatNumber(answer.length)} invitations are`} open, to
        become {invitedAs(last)}, until <Time ms={last.expiresAtMs} format={formatTime} />.
      </p>
      <ConfirmButton
        label="Withdraw"
        title="Withdraw all open invitations?"
        act="Withdraw invitations"
        onAct={() => call('withdrawInvitations', { accountId })}
        done="No invitation is open now."
      >
        <p>Their links stop working at once. You can invite again at any time.</p>
      </ConfirmButton>
    </div>
  );
};

const UserTable = ({ accountId }: { readonly accountId: number | null }) => {
  const me = useUser();
  const users = useCall('users', { accountId });
  return (
    <Shown of={users}>
      {(rows) => (
        <Table
          caption="Users"
          none={
            <Empty title="No users yet">
              Invite the people who own this account. They then manage its keys themselves.
            </Empty>
          }
          rows={rows}
          rowKey={({ userId }) => userId}
          columns={[
            {
              label: 'Name',
              cell: ({ name, userId }) => (
                <>
                  {name} {userId === me.userId && <span class="badge">You</span>}
                </>
              ),
            },
            { label: 'Joined', cell: ({ createdAtMs }) => <Time ms={createdAtMs} format={formatDay} /> },
            {
              label: 'Last seen',
              cell: ({ lastSeenAtMs }) =>
                lastSeenAtMs === null ? 'Never' : <Time ms={lastSeenAtMs} format={formatTime} />,
            },
            {
              label: 'Actions',
              isAction: true,
              cell: ({ name, role, userId }) =>
                me.role === 'operator' &&
                userId !== me.userId && (
                  <ConfirmButton
                    label="Remove"
                    of={name}
                    title={`Remove ${name}?`}
                    act="Remove user"
                    onAct={() => call('removeUser', { userId })}
                    done={`${name} is removed.`}
                  >
                    <p>
                      {name} is signed out everywhere at once.{' '}
                      {role === 'operator'
                        ? 'All open invitations are withdrawn.'
                        : 'The account’s keys stay valid.'}
                    </p>
                  </ConfirmButton>
                ),
            },
          ]}
        />
      )}
    </Shown>
  );
};

/** `accountId` null: the operators. */
export const Users = ({ accountId }: { readonly accountId: number | null }) => {
  const isOperator = useUser().role === 'operator';
  const [link, setLink] = useState<InvitationLink | null>(null);
  const { act, refusal, running } = useAct();
  const invite = () =>
    act(async () => {
      setLink(await call('invite', { accountId }));
      await refresh();
    });
  return (
    <>
      {isOperator && (
        <div class="between">
          <p class="muted">
            {accountId === null
              ? 'Operators manage all accounts and this service.'
              : 'Users see the keys, usage and playground of this account.'}
          </p>
          <Button
            kind="primary"
            label={accountId === null ? 'Invite an operator' : 'Invite a user'}
            isOff={running}
            onClick={invite}
          />
        </div>
      )}
      {refusal !== null && <Problem refusal={refusal} />}
      <UserTable accountId={accountId} />
      {isOperator && <OpenInvitations accountId={accountId} />}
      {link !== null && (
        <SecretDialog title="Send this link" label="Link" secret={link.url} onClose={() => setLink(null)}>
          The person who opens it chooses a name and a password, and becomes {invitedAs(link)}. It works once,
          until <Time ms={link.expiresAtMs} format={formatTime} />, and is not shown again.
        </SecretDialog>
      )}
    </>
  );
};

export const OperatorsPage = () => (
  <Page title="Operators">
    <Users accountId={null} />
  </Page>
);
