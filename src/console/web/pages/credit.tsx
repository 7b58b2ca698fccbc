/** The credit of an account, in words, and what adds to it. */
import type { AccountView } from '../../contract.js';
import { call } from '../call.js';
import { plural } from '../format.js';
import { AskButton } from '../parts/dialog.js';
import { Field, numberOf } from '../parts/form.js';

export const creditsLeft = ({ metered, balance }: AccountView): string =>
  metered ? `${plural(balance, 'credit')} left` : 'Not metered';

/** For operators: a button and its dialog. */
export const AddCredit = ({ account }: { readonly account: AccountView }) => {
  const { accountId, metered, name } = account;
  const act = metered ? 'Add credit' : 'Limit credit';
  const creditsIn = (values: FormData) => numberOf(values, 'credits') ?? 0;
  return (
    <AskButton
      label={act}
      title={`${act}: ${name}`}
      onAct={(values) => {
        const credits = creditsIn(values);
        return metered
          ? call('credit', { accountId, credits })
          : call('meterAccount', { accountId, metered: true, credits });
      }}
      done={(values) => {
        const credits = plural(creditsIn(values), 'credit');
        return metered ? `${credits} added to ${name}.` : `${name} can spend ${credits} now.`;
      }}
    >
      <Field
        name="credits"
        label={metered ? 'Credits to add' : 'Credits that it can spend'}
        type="number"
        required
        min={metered ? 1 : 0}
        step={1}
        inputMode="numeric"
        hint={
          metered
            ? `${creditsLeft(account)} now.`
            : 'The account has no limit now. It gets one: these credits, and those it had left before. When they are spent, its requests are refused.'
        }
      />
    </AskButton>
  );
};
