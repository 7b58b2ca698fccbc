import { lazy } from '../lazy.js';
import { Waiting } from '../parts/page.js';
import { useUser } from '../session.js';
import { useCall } from '../use-call.js';

const Playground = lazy(() => import('../playground/playground.js').then((module) => module.Playground));

export const PlaygroundPage = () => {
  const user = useUser();
  const accounts = useCall('accounts', user.role === 'operator' ? {} : null);
  if (user.role === 'operator' && accounts.answer === undefined) return <Waiting />;
  return <Playground user={user} accounts={accounts.answer ?? null} />;
};
