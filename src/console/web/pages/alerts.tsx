/** Low credit and expiring keys, and the webhook of an account that gets them. */
import { useState } from 'preact/hooks';
import type { AccountView, AlertView } from '../../contract.js';
import { call } from '../call.js';
import { formatTime, plural } from '../format.js';
import { Button } from '../parts/button.js';
import { ConfirmButton, SecretDialog } from '../parts/dialog.js';
import { Field, Form, textOf, useAct } from '../parts/form.js';
import { Empty, Page, Problem, Shown, Time } from '../parts/page.js';
import { showToast } from '../parts/toast.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';

const titles: Readonly<Record<AlertView['cause'], string>> = {
  'credit.out': 'Out of credit',
  'credit.low': 'Little credit left',
  'keys.expiring': 'Keys expire soon',
};

const remedyOf = ({ balance, cause }: AlertView, isOperator: boolean): string => {
  const ask = isOperator ? 'Add credit.' : 'Ask an operator to add credit.';
  if (cause === 'credit.out')
    return balance <= 0
      ? `Requests are refused. ${ask}`
      : `${plural(balance, 'credit')}: too few for the last request, which was refused. ${ask}`;
  if (cause === 'credit.low')
    return `${plural(balance, 'credit')}: too few for a week at the pace of the last 30 days. ${ask}`;
  return 'Programs with these keys are refused then. Set a later time, or give the programs other keys.';
};

/** @param isOfAll shows the account of each */
const Alerts = (props: { readonly alerts: readonly AlertView[]; readonly isOfAll: boolean }) => {
  const isOperator = useUser().role === 'operator';
  if (props.alerts.length === 0)
    return (
      <Empty title="No alerts">
        {props.isOfAll ? 'No account is' : 'The account is not'} short of credit, and no key expires within a
        week.
      </Empty>
    );
  return (
    <ul class="stack">
      {props.alerts.map((alert) => (
        <li
          key={`${alert.accountId} ${alert.cause}`}
          class={`notice between ${alert.cause === 'credit.out' ? 'bad' : 'warn'}`}
        >
          <div>
            <strong>
              {titles[alert.cause]}
              {props.isOfAll && `: ${alert.account}`}
            </strong>
            <p>{remedyOf(alert, isOperator)}</p>
            {alert.keys.map(({ expiresAtMs, name, prefix }) => (
              <p key={prefix}>
                {name === '' ? `${prefix}…` : name}: <Time ms={expiresAtMs} format={formatTime} />
              </p>
            ))}
          </div>
          {(props.isOfAll || alert.cause === 'keys.expiring') && (
            <a class="button small" href={`/accounts/${alert.accountId}/keys`}>
              {props.isOfAll ? 'To the account' : 'To the keys'}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
};

const WebhookCard = ({ accountId }: { readonly accountId: number }) => {
  const webhook = useCall('webhook', { accountId });
  const [secret, setSecret] = useState<string | null>(null);
  const { act, refusal, running } = useAct();
  const test = () =>
    void act(async () => {
      const { isDelivered, result } = await call('testWebhook', { accountId });
      await refresh();
      showToast(isDelivered ? 'The test arrived.' : `The test did not arrive: ${result}.`);
    });
  return (
    <section class="card">
      <h2>Webhook</h2>
      <p class="muted">
        Gets each alert once a day, as JSON by POST, until it answers with a status of 200 to 299: five
        attempts at most. The messages are signed (standardwebhooks.com).
      </p>
      {refusal !== null && <Problem refusal={refusal} />}
      <Shown of={webhook}>
        {({ lastAtMs, lastResult, url }) => (
          <>
            <Form
              key={url}
              submit={url === null ? 'Set webhook' : 'Change webhook'}
              onSubmit={async (values) => {
                const made = await call('setWebhook', { accountId, url: textOf(values, 'url') });
                await refresh();
                setSecret(made.secret);
              }}
            >
              <Field
                name="url"
                label="Address"
                type="url"
                required
                maxLength={500}
                defaultValue={url ?? ''}
                hint="With https. A change makes a new secret."
              />
            </Form>
            {url !== null && (
              <div class="between">
                <p class="muted">
                  {lastAtMs === null ? (
                    'No message was sent yet.'
                  ) : (
                    <>
                      Last message: <Time ms={lastAtMs} format={formatTime} />, {lastResult}.
                    </>
                  )}
                </p>
                <span class="row">
                  <Button kind="small" label="Send a test" isOff={running} onClick={test} />
                  <ConfirmButton
                    label="Remove webhook"
                    title="Remove the webhook?"
                    act="Remove"
                    onAct={() => call('setWebhook', { accountId, url: null })}
                    done="The webhook is removed."
                  >
                    <p>Alerts are then shown in the console only.</p>
                  </ConfirmButton>
                </span>
              </div>
            )}
          </>
        )}
      </Shown>
      {secret !== null && (
        <SecretDialog
          title="The secret of the webhook"
          label="Secret"
          secret={secret}
          onClose={() => setSecret(null)}
        >
          The receiver checks the signatures with it. It is not shown again.
        </SecretDialog>
      )}
    </section>
  );
};

export const AccountAlerts = ({ account: { accountId } }: { readonly account: AccountView }) => {
  const alerts = useCall('alerts', { accountId });
  return (
    <Shown of={alerts}>
      {(all) => (
        // Below the alerts, so it comes with them.
        <div class="stack">
          <Alerts alerts={all} isOfAll={false} />
          <WebhookCard accountId={accountId} />
        </div>
      )}
    </Shown>
  );
};

export const AllAlertsPage = () => (
  <Page title="Alerts" lead="Of all accounts. Each account can have a webhook that gets its alerts.">
    <Shown of={useCall('alerts', { accountId: null })}>{(all) => <Alerts alerts={all} isOfAll />}</Shown>
  </Page>
);
