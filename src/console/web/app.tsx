/** The console: finds out who is signed in, and shows the page of the path. */
import { useEffect, useState } from 'preact/hooks';
import type { Refusal, SessionState, User } from '../contract.js';
import { call, onSignedOut } from './call.js';
import { Empty, Page, Problem, Waiting } from './parts/page.js';
import { Told } from './parts/tell.js';
import { AccountPage } from './pages/account.js';
import { AccountsPage } from './pages/accounts.js';
import { AuditPage } from './pages/audit.js';
import { AcceptPage, ClaimPage, SignInPage } from './pages/enter.js';
import { LivePage } from './pages/live.js';
import { OperatorsPage } from './pages/operators.js';
import { PlaygroundPage } from './pages/playground.js';
import { ProfilePage } from './pages/profile.js';
import { AllUsagePage } from './pages/usage.js';
import { VoicesPage } from './pages/voices.js';
import { navigate, usePath } from './route.js';
import { ConsoleContext } from './session.js';
import { Shell } from './shell.js';
import { forgetAnswers, toRefusal } from './use-call.js';

const entrances = { '/sign-in': SignInPage, '/claim': ClaimPage, '/invite': AcceptPage };

const NotFound = () => (
  <Page title="There is no such page">
    <Empty
      title="The address has a mistake, or the page is not for you."
      action={<a href="/">To the playground</a>}
    />
  </Page>
);

const PageOf = ({ path, user }: { readonly path: string; readonly user: User }) => {
  const [, id, tab] = /^\/accounts\/(\d{1,10})(?:\/(\w+))?$/.exec(path) ?? [];
  if (id !== undefined) {
    // To operators these are tabs of one page, to members they are pages.
    const key = user.role === 'operator' ? id : path;
    return <AccountPage accountId={Number(id)} tab={tab ?? 'keys'} key={key} />;
  }
  switch (path) {
    case '/':
    case '/playground':
      return <PlaygroundPage />;
    case '/voices':
      return <VoicesPage />;
    case '/profile':
      return <ProfilePage />;
  }
  if (user.role !== 'operator') return <NotFound />;
  switch (path) {
    case '/accounts':
      return <AccountsPage />;
    case '/usage':
      return <AllUsagePage />;
    case '/live':
      return <LivePage />;
    case '/operators':
      return <OperatorsPage />;
    case '/audit':
      return <AuditPage />;
    default:
      return <NotFound />;
  }
};

export const App = () => {
  const path = usePath();
  const [session, setSession] = useState<SessionState | null>(null);
  const [problem, setProblem] = useState<Refusal | null>(null);
  const user = session?.user ?? null;
  const isEntrance = path in entrances;

  const load = async () => {
    try {
      setSession(await call('session', {}));
      setProblem(null);
    } catch (error) {
      setProblem(toRefusal(error));
    }
  };
  useEffect(() => {
    onSignedOut(() => {
      forgetAnswers();
      setSession((last) => last && { ...last, user: null });
    });
    void load();
  }, []);

  // Whoever is not signed in comes back to this page after signing in.
  const mustSignIn = session !== null && user === null && !isEntrance;
  useEffect(() => {
    if (mustSignIn) navigate(`/sign-in${path === '/' ? '' : `?to=${path}`}`, { replace: true });
  }, [mustSignIn]);

  if (session === null || mustSignIn) {
    return (
      <main class="entrance">
        {problem === null ? <Waiting /> : <Problem refusal={problem} onRetry={() => void load()} />}
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
      <Told />
    </ConsoleContext.Provider>
  );
};
