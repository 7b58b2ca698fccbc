import type { ComponentChildren } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import type { AccountView } from '../../contract.js';
import { useQuery } from '../route.js';
import { useUser } from '../session.js';
import { useCall } from '../use-call.js';
import { Choice } from './form.js';
import { Empty, Page, Shown } from './page.js';

/** Of the pages before this one: the links to other pages do not name it. */
let last = '';

/** The next pages show this account, until a user chooses another. */
export const keepAccount = (accountId: number): void => {
  last = String(accountId);
};

/** A page for one account: a member's own, an operator's choice. */
export const PageOfAccount = (props: {
  readonly title: string;
  readonly lead?: ComponentChildren;
  /** Beside the choice. */
  readonly about?: (account: AccountView) => ComponentChildren;
  readonly children: (account: AccountView) => ComponentChildren;
}) => {
  const { about, children, lead, title } = props;
  const { accountId: ownId } = useUser();
  const all = useCall('accounts', ownId === null ? {} : null);
  const own = useCall('account', ownId === null ? null : { accountId: ownId });
  const asked = ownId === null ? all : { ...own, answer: own.answer && [own.answer] };
  const [named, setNamed] = useQuery<string>('account', '');
  const choices = asked.answer ?? [];
  const find = (id: string) => choices.find(({ accountId }) => String(accountId) === id);
  const account = find(named) ?? find(last) ?? choices[0];
  const shownId = account?.accountId;
  useLayoutEffect(() => {
    if (shownId === undefined) return;
    keepAccount(shownId);
    // A reload shows it, too.
    if (account !== choices[0]) setNamed(last);
  }, [shownId]);
  // The head of a page shows the account: without it, the page would move when the account arrives.
  if (account === undefined)
    return (
      <Shown of={asked}>
        {() => (
          <Page title={title}>
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
        )}
      </Shown>
    );
  const choice = ownId === null && (
    <Choice
      name="account"
      label="Account"
      options={choices.map(({ accountId, name }) => [String(accountId), name] as const)}
      value={String(shownId)}
      onChange={setNamed}
    />
  );
  return (
    <Page
      title={title}
      lead={lead}
      actions={
        <>
          {choice}
          {about?.(account)}
        </>
      }
    >
      {children(account)}
    </Page>
  );
};
