/** The credit of an account, in words, and what adds to it. */
import { useState } from 'preact/hooks';
import type { AccountView } from '../../contract.js';
import { call } from '../call.js';
import { plural } from '../format.js';
import { Ask } from '../parts/dialog.js';
import { Field, numberOf } from '../parts/form.js';

export const creditsLeft = ({ metered, balance }: AccountView): string =>
  metered ? `${plural(balance, 'credit')} left` : 'No credit limit';

/** For operators: a button and its dialog. */
export const AddCredit = ({ account }: { readonly account: AccountView }) => {
  const [isAsking, setIsAsking] = useState(false);
  const { accountId, metered, name } = account;
  const act = metered ? 'Add credit' : 'Limit credit';
  return (
    <>
      <button type="button" class="button" onClick={() => setIsAsking(true)}>
        {act}
      </button>
      {isAsking && (
        <Ask
          title={`${act}: ${name}`}
          act={act}
          onClose={() => setIsAsking(false)}
          onAct={async (values) => {
            const credits = numberOf(values, 'credits') ?? 0;
            if (metered) await call('credit', { accountId, credits });
            else await call('meterAccount', { accountId, metered: true, credits });
            return `${name} got ${plural(credits, 'credit')}.`;
          }}
        >
          <Field
            name="credits"
            label="Credits"
            type="number"
            required
            min={metered ? 1 : 0}
            step={1}
            inputMode="numeric"
            hint={
              metered
                ? `${creditsLeft(account)} now.`
                : 'The account has no limit now. From then on it can spend only these credits and what it had left. What it spent beyond is free.'
            }
          />
        </Ask>
      )}
    </>
  );
};
