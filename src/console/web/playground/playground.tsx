/** The playground: hear the service in the browser. */
import { useState } from 'preact/hooks';
import type { AccountView, VoiceView } from '../../contract.js';
import { plural } from '../format.js';
import { AccountSelect, NoAccount, useAccountChoice } from '../parts/account-choice.js';
import { Empty, Page, Shown } from '../parts/page.js';
import { Tabs, useTab } from '../parts/tabs.js';
import { AddCredit } from '../pages/credit.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';
import { RequestTab } from './request-tab.js';
import { SocketTab } from './socket-tab.js';

/** For one account. */
const PlaygroundTabs = (props: { readonly account: AccountView; readonly voices: readonly VoiceView[] }) => {
  const { account, voices } = props;
  const wanted = new URLSearchParams(location.search).get('voice');
  const [selected, setSelected] = useTab(['Request', 'Conversation']);
  const [voice, setVoice] = useState(voices.find(({ id }) => id === wanted)?.id ?? voices[0]?.id ?? '');
  const shared = { account, voices, voice, onVoice: setVoice, onSpoken: () => void refresh() };
  return (
    <Tabs
      label="Playground"
      selected={selected}
      onSelect={setSelected}
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
  const voices = useCall('voices', {});
  const choice = useAccountChoice();
  if (choice.account === null) return <NoAccount title="Playground" of={choice} />;
  const { account } = choice;
  const { accountId, balance, metered } = account;
  return (
    <Page
      title="Playground"
      lead="Hear your text as it streams. It costs the same as a request with a key."
      actions={
        <div class="row">
          <AccountSelect of={choice} />
          <span class="hint">{metered ? `${plural(balance, 'credit')} left` : 'Not metered'}</span>
        </div>
      }
    >
      <AccountProblem account={account} />
      <Shown of={voices}>
        {({ packs }) => {
          const all = packs.flatMap((pack) => pack.voices);
          return all.length === 0 ? (
            <Empty title="No voice is loaded">An operator can add a voice pack and reload the voices.</Empty>
          ) : (
            <PlaygroundTabs key={accountId} account={account} voices={all} />
          );
        }}
      </Shown>
    </Page>
  );
};
