/** The keys of an account. */
import { useState } from 'preact/hooks';
import type { AccountView, KeyView } from '../../contract.js';
import { call } from '../call.js';
import { formatDay, formatNumber, formatTime, plural } from '../format.js';
import { Button } from '../parts/button.js';
import { ConfirmButton } from '../parts/dialog.js';
import { PageOfAccount } from '../parts/account-choice.js';
import { Empty, Shown, Time } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useCall } from '../use-call.js';
import { ChangeKey, CreateKey } from './key-dialogs.js';
import { speakingWords } from './speaking.js';

const State = ({ shown }: { readonly shown: KeyView }) => {
  if (shown.revokedAtMs !== null) return <span class="badge">Revoked</span>;
  if (shown.expiresAtMs !== null && shown.expiresAtMs <= Date.now())
    return <span class="badge bad">Expired</span>;
  if (shown.creditLimit !== null && shown.spent >= shown.creditLimit)
    return <span class="badge warn">Limit reached</span>;
  return null;
};

const limitsOf = ({ expiresAtMs, creditLimit, spent, voices }: KeyView): string[] => [
  ...(expiresAtMs === null ? [] : [`Until ${formatTime(expiresAtMs)}`]),
  ...(creditLimit === null ? [] : [`${formatNumber(spent)} of ${plural(creditLimit, 'credit')}`]),
  ...(voices === null
    ? []
    : [voices.length === 1 ? `Voice ${voices[0] ?? ''}` : plural(voices.length, 'voice')]),
];

const linesOf = (lines: readonly string[], none: string) =>
  lines.length === 0 ? <span class="muted">{none}</span> : lines.map((line) => <div key={line}>{line}</div>);

const KeyTable = ({ rows }: { readonly rows: readonly KeyView[] }) => (
  <Table
    caption="Keys"
    rows={rows}
    rowKey={({ keyId }) => keyId}
    columns={[
      {
        label: 'Key',
        cell: (key) => (
          <>
            {key.name === '' ? 'Unnamed' : key.name} <State shown={key} />
            <span class="below">
              <code>{key.prefix}…</code>
            </span>
          </>
        ),
      },
      { label: 'Created', cell: ({ createdAtMs }) => <Time ms={createdAtMs} format={formatDay} /> },
      {
        label: 'Last speech',
        cell: ({ lastUsedAtMs }) =>
          lastUsedAtMs === null ? (
            <span class="muted">Never</span>
          ) : (
            <Time ms={lastUsedAtMs} format={formatTime} />
          ),
      },
      { label: 'All characters', isNumber: true, cell: ({ characters }) => formatNumber(characters) },
      {
        label: 'Limits',
        cell: (key) => linesOf(limitsOf(key), 'None'),
      },
      {
        label: 'Speech',
        cell: (key) => linesOf(speakingWords(key), 'As the account'),
      },
      {
        label: 'Actions',
        isAction: true,
        cell: (key) =>
          key.revokedAtMs === null && (
            <span class="row">
              <ChangeKey shown={key} />
              <ConfirmButton
                label="Revoke"
                of={key.name || key.prefix}
                title={`Revoke ${key.name || key.prefix}?`}
                act="Revoke key"
                onAct={() => call('revokeKey', { keyId: key.keyId })}
                done="Key revoked."
              >
                <p>
                  Programs with the key <code>{key.prefix}…</code> are refused at once, and their WebSockets
                  are closed. Requests that speak already are spoken to their end. This cannot be undone.
                </p>
              </ConfirmButton>
            </span>
          ),
      },
    ]}
  />
);

export const Keys = ({ account }: { readonly account: AccountView }) => {
  const keys = useCall('keys', { accountId: account.accountId });
  const [isCreating, setIsCreating] = useState(false);
  const ofAccount = speakingWords(account);
  const create = <Button kind="primary" label="Create key" onClick={() => setIsCreating(true)} />;
  return (
    <>
      <Shown of={keys}>
        {(all) => {
          const valid = all.filter(({ revokedAtMs }) => revokedAtMs === null);
          const revoked = all.filter(({ revokedAtMs }) => revokedAtMs !== null);
          return (
            <>
              {valid.length === 0 ? (
                <Empty title="No keys yet" action={create}>
                  A program needs a key to use the service. Create one for each program, so that you can
                  revoke each separately.
                </Empty>
              ) : (
                <>
                  <div class="between">
                    <p class="muted">Programs use these keys. Their speech is charged to this account.</p>
                    {create}
                  </div>
                  {ofAccount.length > 0 && (
                    <p class="muted">Where a key sets nothing: {ofAccount.join(', ')}.</p>
                  )}
                  <KeyTable rows={valid} />
                </>
              )}
              {revoked.length > 0 && (
                <details>
                  <summary>{plural(revoked.length, 'revoked key')}</summary>
                  <KeyTable rows={revoked} />
                </details>
              )}
            </>
          );
        }}
      </Shown>
      {isCreating && <CreateKey accountId={account.accountId} onClose={() => setIsCreating(false)} />}
    </>
  );
};

/** For operators: the keys of the account that they choose. */
export const KeysPage = () => (
  <PageOfAccount title="Keys">
    {(account) => <Keys account={account} key={account.accountId} />}
  </PageOfAccount>
);
