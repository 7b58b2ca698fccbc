/** The page on which one hears the service. */
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import type { AccountView, User, VoiceView } from '../../contract.js';
import { plural } from '../format.js';
import { Labelled } from '../parts/form.js';
import { Empty, Page, Problem, Shown } from '../parts/page.js';
import { refresh, useCall } from '../use-call.js';
import { VoiceGallery } from './voice-gallery.js';
import { RequestTab } from './request-tab.js';
import { SocketTab } from './socket-tab.js';

export { VoiceGallery } from './voice-gallery.js';

interface Tab {
  readonly label: string;
  readonly content: ComponentChildren;
}

/** All tabs stay: what one has typed and what sounds survives a look at another. */
const Tabs = (props: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
}) => {
  const { onSelect, selected, tabs } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
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
          {content}
        </div>
      ))}
    </>
  );
};

/** For one account. */
const Rooms = (props: { readonly accountId: number; readonly voices: readonly VoiceView[] }) => {
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
      label="Ways to speak"
      selected={selected}
      onSelect={setSelected}
      tabs={[
        { label: 'Request', content: <RequestTab {...shared} /> },
        { label: 'Conversation', content: <SocketTab {...shared} /> },
        { label: 'Voices', content: <VoiceGallery onChoose={choose} /> },
      ]}
    />
  );
};

const AccountLine = ({ account }: { readonly account: AccountView }) => (
  <>
    {account.suspendedAtMs !== null && (
      <Problem
        refusal={{
          message: `The account ${account.name} is suspended. It cannot speak until an operator resumes it.`,
        }}
      />
    )}
    {account.suspendedAtMs === null && account.metered && account.balance <= 0 && (
      <Problem
        refusal={{ message: `The account ${account.name} has no credit left. An operator can add some.` }}
      />
    )}
  </>
);

export const Playground = (props: {
  readonly user: User;
  /** `null` for members. */
  readonly accounts: readonly AccountView[] | null;
}) => {
  const { accounts, user } = props;
  const [chosen, setChosen] = useState(user.accountId ?? accounts?.[0]?.accountId ?? null);
  const account = useCall('account', chosen === null ? null : { accountId: chosen });
  const voices = useCall('voices', {});

  if (chosen === null)
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

  const view = account.answer;
  const credit =
    view === undefined ? '' : view.metered ? `${plural(view.balance, 'credit')} left` : 'Not metered';
  return (
    <Page
      title="Playground"
      lead="Hear what you type, as it streams. It costs what a request with a key costs."
      actions={
        <div class="row pg-account">
          {accounts !== null && (
            <Labelled name="account" label="Account">
              {(control) => (
                <select
                  {...control}
                  value={String(chosen)}
                  onChange={(event) => setChosen(Number(event.currentTarget.value))}
                >
                  {accounts.map(({ accountId, name }) => (
                    <option value={accountId} key={accountId}>
                      {name}
                    </option>
                  ))}
                </select>
              )}
            </Labelled>
          )}
          <span class="hint">{credit}</span>
        </div>
      }
    >
      {account.problem !== null && view === undefined && <Problem refusal={account.problem} />}
      {view !== undefined && <AccountLine account={view} />}
      <Shown of={voices}>
        {({ packs }) => {
          const all = packs.flatMap((pack) => pack.voices);
          return all.length === 0 ? (
            <Empty title="No voice is loaded">An operator can add a voice pack and reload.</Empty>
          ) : (
            <Rooms key={chosen} accountId={chosen} voices={all} />
          );
        }}
      </Shown>
    </Page>
  );
};
