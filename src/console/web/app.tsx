/** The console: finds out who is signed in, and shows the page of the path. */
import type { FunctionComponent } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import type { SessionState, User } from '../contract.js';
import { onSignedOut } from './call.js';
import { Empty, Page, Shown, Waiting } from './parts/page.js';
import { Toast } from './parts/toast.js';
import { AccountPage } from './pages/account.js';
import { AccountsPage } from './pages/accounts.js';
import { AllAlertsPage } from './pages/alerts.js';
import { AuditPage } from './pages/audit.js';
import { AcceptPage, ClaimPage, SignInPage } from './pages/enter.js';
import { KeysPage } from './pages/keys.js';
import { LexiconPage } from './pages/lexicon.js';
import { LivePage } from './pages/live.js';
import { ProfilePage } from './pages/profile.js';
import { AllRequestsPage } from './pages/requests.js';
import { AllUsagePage } from './pages/usage.js';
import { OperatorsPage } from './pages/users.js';
import { VoicesPage } from './pages/voices.js';
import { PlaygroundPage } from './playground/playground.js';
import { ConnectPage } from './connect/connect.js';
import { DocsPage } from './docs/docs.js';
import { navigate, usePath } from './route.js';
import { ConsoleContext } from './session.js';
import { Shell } from './shell.js';
import { forgetAnswers, useCall } from './use-call.js';

const entrances = { '/sign-in': SignInPage, '/claim': ClaimPage, '/invite': AcceptPage };

const pages: Readonly<Record<string, FunctionComponent>> = {
  '/': PlaygroundPage,
  '/playground': PlaygroundPage,
  '/connect': ConnectPage,
  '/docs': DocsPage,
  '/lexicon': LexiconPage,
  '/voices': VoicesPage,
  '/profile': ProfilePage,
};
const pagesOfOperators: typeof pages = {
  '/accounts': AccountsPage,
  '/keys': KeysPage,
  '/usage': AllUsagePage,
  '/requests': AllRequestsPage,
  '/alerts': AllAlertsPage,
  '/live': LivePage,
  '/operators': OperatorsPage,
  '/audit': AuditPage,
};

const NotFound = () => (
  <Page title="There is no such page">
    <Empty
      title="Check the address. Some pages are for operators only."
      action={<a href="/">To the playground</a>}
    />
  </Page>
);

const PageOf = ({ path, user }: { readonly path: string; readonly user: User }) => {
  const [, id, tab] = /^\/accounts\/(\d{1,10})(?:\/(\w+))?$/.exec(path) ?? [];
  if (id !== undefined) {
    const key = user.role === 'operator' ? id : path;
    return <AccountPage accountId={Number(id)} tab={tab ?? 'keys'} key={key} />;
  }
  const Found = pages[path] ?? (user.role === 'operator' ? pagesOfOperators[path] : undefined) ?? NotFound;
  return <Found />;
};

/** The session that the server wrote into the page; `null` if no user is signed in. */
const sessionInPage = (): SessionState | null => {
  const content = document.querySelector<HTMLMetaElement>('meta[name=session]')?.content ?? '';
  return content === '' ? null : (JSON.parse(content) as SessionState);
};

export const App = () => {
  const path = usePath();
  const [session, setSession] = useState(sessionInPage);
  const asked = useCall('session', session === null ? {} : null);
  const user = session?.user ?? null;
  const isEntrance = path in entrances;

  // Layout effects, here and in `useAnswer`, do not wait for a frame of the screen, as other effects do.
  useLayoutEffect(() => {
    onSignedOut(() => {
      forgetAnswers();
      setSession((last) => last && { ...last, user: null });
    });
  }, []);
  useLayoutEffect(() => {
    if (asked.answer !== undefined) setSession(asked.answer);
  }, [asked.answer]);

  // After signing in, the user returns to this page.
  const mustSignIn = session !== null && user === null && !isEntrance;
  useLayoutEffect(() => {
    if (mustSignIn)
      navigate(`/sign-in${path === '/' ? '' : `?to=${encodeURIComponent(path + location.search)}`}`, {
        replace: true,
      });
  }, [mustSignIn]);

  if (session === null || mustSignIn) {
    return (
      <main class="entrance stack">
        <Shown of={asked}>{() => <Waiting />}</Shown>
      </main>
    );
  }
  const become = (next: SessionState, to: string) => {
    forgetAnswers();
    setSession(next);
    navigate(to, { replace: true });
  };
  const Entrance = entrances[path as keyof typeof entrances];
  return (
    <ConsoleContext.Provider value={{ session, become }}>
      {isEntrance || user === null ? (
        <Entrance />
      ) : (
        <Shell user={user} path={path}>
          <PageOf path={path} user={user} />
        </Shell>
      )}
      <Toast />
    </ConsoleContext.Provider>
  );
};
