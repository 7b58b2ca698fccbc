/** Tokens that programs use in the user's name. */
import { useState } from 'preact/hooks';
import { call } from '../call.js';
import { formatTime } from '../format.js';
import { Ask, ConfirmButton, DialogButton, SecretDialog } from '../parts/dialog.js';
import { Field, numberOf, textOf } from '../parts/form.js';
import { Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { refresh, useCall } from '../use-call.js';

const DAYS_DEFAULT = 90;
const DAYS_MAX = 366;

const CreateToken = ({ onClose }: { readonly onClose: () => void }) => {
  const [token, setToken] = useState<string | null>(null);
  if (token !== null)
    return (
      <SecretDialog
        title="Your token"
        label="Token"
        secret={token}
        close="I have copied the token"
        onClose={onClose}
      >
        Copy it now: it is not shown again. It can do in your name what you can do here.
      </SecretDialog>
    );
  return (
    <Ask
      title="Create token"
      act="Create token"
      onClose={onClose}
      onAct={async (values) => {
        const question = { name: textOf(values, 'name'), days: numberOf(values, 'days') ?? DAYS_DEFAULT };
        setToken((await call('createToken', question)).token);
        void refresh();
      }}
    >
      <Field
        name="name"
        label="Name"
        required
        maxLength={64}
        autocomplete="off"
        hint="The program that uses it, such as “billing”."
      />
      <Field
        name="days"
        label="Days until it expires"
        type="number"
        min={1}
        max={DAYS_MAX}
        step={1}
        defaultValue={DAYS_DEFAULT}
      />
    </Ask>
  );
};

export const Tokens = () => {
  const tokens = useCall('tokens', {});
  return (
    <section class="card">
      <div class="between">
        <h2>Tokens</h2>
        <DialogButton label="Create token">{(close) => <CreateToken onClose={close} />}</DialogButton>
      </div>
      <p class="muted">
        For programs that use the <a href="/docs">administration API</a> in your name. A new password ends
        them all.
      </p>
      <Shown of={tokens}>
        {(list) =>
          list.length > 0 && (
            <Table
              caption="Your tokens"
              rows={list}
              rowKey={({ name }) => name}
              columns={[
                { label: 'Name', cell: ({ name }) => name },
                { label: 'Last used', cell: ({ seenAtMs }) => formatTime(seenAtMs) },
                { label: 'Expires', cell: ({ expiresAtMs }) => formatTime(expiresAtMs) },
                {
                  label: 'Acts',
                  isAction: true,
                  cell: ({ name }) => (
                    <ConfirmButton
                      label="Revoke"
                      of={name}
                      kind="small danger"
                      title={`Revoke ${name}?`}
                      act="Revoke token"
                      onAct={() => call('revokeToken', { name })}
                      done={`${name} is revoked.`}
                    >
                      <p>Programs that use it are refused at once.</p>
                    </ConfirmButton>
                  ),
                },
              ]}
            />
          )
        }
      </Shown>
    </section>
  );
};
