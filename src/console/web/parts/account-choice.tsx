/** The account that a page speaks for: a member's own, an operator's choice. */
import { useLayoutEffect } from 'preact/hooks';
import type { AccountView } from '../../contract.js';
import { useQuery } from '../route.js';
import { useUser } from '../session.js';
import { useCall, type Asked } from '../use-call.js';
import { Choice } from './form.js';
import { Empty, Page, Shown } from './page.js';

export interface AccountChoice {
  readonly asked: Asked<readonly AccountView[]>;
  /** `null`: not known yet, or there is none. */
  readonly account: AccountView | null;
  readonly choose: (accountId: number) => void;
}

/** Of the pages before this one: the links to other pages do not name it. */
let last = '';

/** The next pages show this account, until a user chooses another. */
export const keepAccount = (accountId: number): void => {
  last = String(accountId);
};

export const useAccountChoice = (): AccountChoice => {
  const member = useUser();
  const all = useCall('accounts', member.accountId === null ? {} : null);
  const own = useCall('account', member.accountId === null ? null : { accountId: member.accountId });
  const asked = member.accountId === null ? all : { ...own, answer: own.answer && [own.answer] };
  const [named, setNamed] = useQuery<string>('account', '');
  const choices = asked.answer ?? [];
  const find = (id: string) => choices.find(({ accountId }) => String(accountId) === id);
  const account = find(named) ?? find(last) ?? choices[0] ?? null;
  const shownId = account?.accountId;
  useLayoutEffect(() => {
    if (shownId === undefined) return;
    keepAccount(shownId);
    // A reload shows it, too.
    if (account !== choices[0]) setNamed(last);
  }, [shownId]);
  return { asked, account, choose: (accountId) => setNamed(String(accountId)) };
};

/** Operators choose. */
export const AccountSelect = ({ of }: { readonly of: AccountChoice }) => {
  if (useUser().accountId !== null) return null;
  return (
    <Choice
      name="account"
      label="Account"
      options={(of.asked.answer ?? []).map(({ accountId, name }) => [String(accountId), name] as const)}
      value={String(of.account?.accountId)}
      onChange={(accountId) => of.choose(Number(accountId))}
    />
  );
};

/** In the place of a page. The head of a page shows the account: without it, the page would move when the account arrives. */
export const NoAccount = (props: { readonly title: string; readonly of: AccountChoice }) => (
  <Shown of={props.of.asked}>
    {() => (
      <Page title={props.title}>
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
