import { useState } from 'preact/hooks';
import { call } from '../call.js';
import { formatTime } from '../format.js';
import { ConfirmButton } from '../parts/dialog.js';
import { Form, NewPasswordField, PasswordField } from '../parts/form.js';
import { Page } from '../parts/page.js';
import { showToast } from '../parts/toast.js';
import { Tokens } from './tokens.js';
import { useConsole, useUser } from '../session.js';

export const ProfilePage = () => {
  const user = useUser();
  const { session, become } = useConsole();
  // A new form is an empty one.
  const [formKey, setFormKey] = useState(0);
  const role =
    user.role === 'operator' ? 'Operator of this service' : `User of the account ${user.account ?? ''}`;
  return (
    <Page title={user.name} lead={`${role} since ${formatTime(user.createdAtMs)}`}>
      <div class="stack narrow">
        <section class="card">
          <h2>Password</h2>
          <Form
            key={formKey}
            submit="Change password"
            onSubmit={async (values) => {
              await call('changePassword', {
                current: values.get('current') as string,
                password: values.get('password') as string,
              });
              setFormKey(formKey + 1);
              showToast('Password changed. Your other sessions and your tokens have ended.');
            }}
          >
            <input
              class="hidden"
              type="text"
              autocomplete="username"
              value={user.name}
              readOnly
              tabIndex={-1}
              aria-hidden="true"
            />
            <PasswordField name="current" label="Current password" />
            <NewPasswordField label="New password" hint="At least 10 characters." />
          </Form>
        </section>
        <Tokens />
        <section class="card between">
          <div>
            <h2>Sessions</h2>
            <p class="muted">Signs you out on all devices, including this one, and ends your tokens.</p>
          </div>
          <ConfirmButton
            label="Sign out everywhere"
            kind=""
            title="Sign out everywhere?"
            onAct={async () => become(await call('signOut', { everywhere: true }), '/sign-in')}
          >
            <p>You can sign in again with your name and password.</p>
          </ConfirmButton>
        </section>
        <p class="hint">Syrinx {session.version}</p>
      </div>
    </Page>
  );
};
