/** The playground: hear the service in the browser. */
import { useState } from 'preact/hooks';
import type { AccountView, VoiceView } from '../../contract.js';
import { PageOfAccount } from '../parts/account-choice.js';
import { Empty, Shown } from '../parts/page.js';
import { Tabs } from '../parts/tabs.js';
import { AddCredit, creditsLeft } from '../pages/credit.js';
import { useUser } from '../session.js';
import { refresh, useVoices } from '../use-call.js';
import { RequestTab } from './request-tab.js';
import { SocketTab } from './socket-tab.js';

/** For one account. */
const PlaygroundTabs = (props: { readonly account: AccountView; readonly voices: readonly VoiceView[] }) => {
  const { account, voices } = props;
  const wanted = new URLSearchParams(location.search).get('voice');
  const [voice, setVoice] = useState(voices.find(({ id }) => id === wanted)?.id ?? voices[0]?.id ?? '');
  const shared = { account, voices, voice, onVoice: setVoice, onSpoken: () => void refresh() };
  return (
    <Tabs
      label="Playground"
      tabs={[
        { label: 'Request', content: () => <RequestTab {...shared} /> },
        { label: 'Conversation', content: () => <SocketTab {...shared} /> },
      ]}
    />
  );
};

/** Why the account cannot speak, and what to do. */
const AccountProblem = ({ account }: { readonly account: AccountView }) => {
  const isOperator = useUser().role === 'operator';
  const { accountId, balance, metered, name, suspendedAtMs } = account;
  if (suspendedAtMs === null && (!metered || balance > 0)) return null;
  const problem = suspendedAtMs === null ? 'has no credit left' : 'is suspended';
  const remedy =
    suspendedAtMs === null
      ? 'Ask an operator to add credit.'
      : 'It cannot speak until an operator resumes it.';
  return (
    <div class="notice bad between">
      <span role="alert">
        The account {name} {problem}.{!isOperator && ` ${remedy}`}
      </span>
      {isOperator &&
        (suspendedAtMs === null ? (
          <AddCredit account={account} />
        ) : (
          <a class="button" href={`/accounts/${accountId}/manage`}>
            Manage account
          </a>
        ))}
    </div>
  );
};

export const PlaygroundPage = () => {
  const voices = useVoices();
  return (
    <PageOfAccount
      title="Playground"
      lead="Hear your text as it streams. It costs the same as a request with a key."
      about={(account) => <span class="hint">{creditsLeft(account)}</span>}
    >
      {(account) => (
        <>
          <AccountProblem account={account} />
          <Shown of={voices}>
            {(all) =>
              all.length === 0 ? (
                <Empty title="No voice is loaded">
                  An operator can add a voice pack and reload the voices.
                </Empty>
              ) : (
                <PlaygroundTabs key={account.accountId} account={account} voices={all} />
              )
            }
          </Shown>
        </>
      )}
    </PageOfAccount>
  );
};
