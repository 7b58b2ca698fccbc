/** The playground: hear the service in the browser. */
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import type { AccountView, VoiceView } from '../../contract.js';
import { plural } from '../format.js';
import { Labelled } from '../parts/form.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { useUser } from '../session.js';
import { refresh, useCall } from '../use-call.js';
import { VoiceGallery } from './voice-gallery.js';
import { RequestTab } from './request-tab.js';
import { SocketTab } from './socket-tab.js';

interface Tab {
  readonly label: string;
  readonly content: () => ComponentChildren;
}

/** A tab is drawn when it is first shown, and stays: its text and its audio survive a look at another tab. */
const Tabs = (props: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
}) => {
  const { onSelect, selected, tabs } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = useRef(new Set<number>()).current.add(selected);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const last = tabs.length - 1;
    const keys: Readonly<Record<string, number>> = {
      ArrowLeft: selected === 0 ? last : selected - 1,
      ArrowRight: selected === last ? 0 : selected + 1,
      Home: 0,
      End: last,
    };
    const index = keys[event.key];
    if (index === undefined) return;
    event.preventDefault();
    onSelect(index);
    list.current?.querySelectorAll('button')[index]?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ label }, index) => (
          <button
            key={label}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel-${index}`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => onSelect(index)}
          >
            {label}
          </button>
        ))}
      </div>
      {tabs.map(({ content, label }, index) => (
        <div
          key={label}
          role="tabpanel"
          id={`${id}-panel-${index}`}
          aria-labelledby={`${id}-tab-${index}`}
          hidden={index !== selected}
        >
          {shown.has(index) && content()}
        </div>
      ))}
    </>
  );
};

/** For one account. */
const PlaygroundTabs = (props: { readonly accountId: number; readonly voices: readonly VoiceView[] }) => {
  const { accountId, voices } = props;
  const wanted = new URLSearchParams(location.search).get('voice');
  const [selected, setSelected] = useState(0);
  const [voice, setVoice] = useState(voices.find(({ id }) => id === wanted)?.id ?? voices[0]?.id ?? '');
  const shared = { accountId, voices, voice, onVoice: setVoice, onSpoken: () => void refresh() };
  const choose = (chosen: string) => {
    setVoice(chosen);
    setSelected(0);
  };
  return (
    <Tabs
      label="Playground"
      selected={selected}
      onSelect={setSelected}
      tabs={[
        { label: 'Request', content: () => <RequestTab {...shared} /> },
        { label: 'Conversation', content: () => <SocketTab {...shared} /> },
        { label: 'Voices', content: () => <VoiceGallery onChoose={choose} /> },
      ]}
    />
  );
};

/** Why the account cannot speak. */
const AccountProblem = ({ account }: { readonly account: AccountView }) => {
  const { balance, metered, name, suspendedAtMs } = account;
  if (suspendedAtMs !== null)
    return (
      <Problem
        refusal={{
          message: `The account ${name} is suspended. It cannot speak until an operator resumes it.`,
        }}
      />
    );
  if (!metered || balance > 0) return null;
  return (
    <Problem refusal={{ message: `The account ${name} has no credit left. An operator can add credit.` }} />
  );
};

export const PlaygroundPage = () => {
  const member = useUser();
  const isMember = member.accountId !== null;
  const all = useCall('accounts', isMember ? null : {});
  const own = useCall('account', member.accountId === null ? null : { accountId: member.accountId });
  const voices = useCall('voices', {});
  const accounts = isMember ? { ...own, answer: own.answer && [own.answer] } : all;
  const [chosen, setChosen] = useState<number | null>(null);
  const choices = accounts.answer ?? [];
  const account = choices.find(({ accountId }) => accountId === chosen) ?? choices[0];
  // The head of the page shows the account. Without it, the page would move when the account arrives.
  if (accounts.answer === undefined) return <Shown of={accounts}>{() => null}</Shown>;
  if (account === undefined)
    return (
      <Page title="Playground">
        <Empty
          title="No account yet"
          action={
            <a class="button primary" href="/accounts">
              Accounts
            </a>
          }
        >
          Speech is charged to an account. Create one first.
        </Empty>
      </Page>
    );
  const { accountId, balance, metered } = account;
  return (
    <Page
      title="Playground"
      lead="Hear your text as it streams. It costs the same as a request with a key."
      actions={
        <div class="row">
          {!isMember && (
            <Labelled name="account" label="Account">
              {(control) => (
                <select
                  {...control}
                  value={String(accountId)}
                  onChange={(event) => setChosen(Number(event.currentTarget.value))}
                >
                  {choices.map((choice) => (
                    <option value={choice.accountId} key={choice.accountId}>
                      {choice.name}
                    </option>
                  ))}
                </select>
              )}
            </Labelled>
          )}
          <span class="hint">{metered ? `${plural(balance, 'credit')} left` : 'No credit limit'}</span>
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
            <PlaygroundTabs key={accountId} accountId={accountId} voices={all} />
          );
        }}
      </Shown>
    </Page>
  );
};
