/** The frame of every page for signed-in users: the links to the pages, and the page. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { User } from '../contract.js';
import { call } from './call.js';
import { formatNumber, plural } from './format.js';
import { Brand, Icon, type IconName } from './parts/icon.js';
import { Switch } from './parts/switch.js';
import { showToast } from './parts/toast.js';
import { useConsole } from './session.js';
import { toRefusal, useCall } from './use-call.js';

interface PageLink {
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
}

/**
 * Light, dark, or as the system. The meta element of the page decides; `light-dark()` in the styles follows it. A cookie
 * keeps the choice, so that the server writes it into the page and no wrong colour is ever shown.
 */
const schemes = { light: 'light', dark: 'dark', system: 'light dark' } as const;
type Theme = keyof typeof schemes;
const themes = { light: 'Light', dark: 'Dark', system: 'System' } as const satisfies Record<Theme, string>;

const keptSeconds = 400 * 86_400;
const meta = document.querySelector<HTMLMetaElement>('meta[name=color-scheme]')!;

const currentTheme = (): Theme =>
  (Object.keys(schemes) as Theme[]).find((theme) => schemes[theme] === meta.content) ?? 'system';

const chooseTheme = (theme: Theme): void => {
  meta.content = schemes[theme];
  const seconds = theme === 'system' ? 0 : keptSeconds;
  document.cookie = `syrinx-theme=${theme}; Path=/; Max-Age=${seconds}; SameSite=Strict`;
};

/** In groups: speech, its accounts, the service, programs. */
const linksOf = ({ role, accountId }: User): readonly (readonly PageLink[])[] => {
  const own = `/accounts/${accountId ?? 0}`;
  const speech: readonly PageLink[] = [
    { path: '/playground', label: 'Playground', icon: 'playground' },
    { path: '/voices', label: 'Voices', icon: 'voices' },
    { path: '/lexicon', label: 'Lexicon', icon: 'lexicon' },
  ];
  const programs: readonly PageLink[] = [
    { path: '/connect', label: 'Connect', icon: 'connect' },
    { path: '/docs', label: 'API', icon: 'docs' },
  ];
  if (role === 'operator')
    return [
      speech,
      [
        { path: '/accounts', label: 'Accounts', icon: 'accounts' },
        { path: '/keys', label: 'Keys', icon: 'keys' },
        { path: '/usage', label: 'Usage', icon: 'usage' },
        { path: '/alerts', label: 'Alerts', icon: 'alerts' },
      ],
      [
        { path: '/live', label: 'Live', icon: 'live' },
        { path: '/requests', label: 'Requests', icon: 'requests' },
        { path: '/operators', label: 'Operators', icon: 'operators' },
        { path: '/audit', label: 'Audit', icon: 'audit' },
      ],
      programs,
    ];
  return [
    speech,
    [
      { path: `${own}/keys`, label: 'Keys', icon: 'keys' },
      { path: `${own}/usage`, label: 'Usage', icon: 'usage' },
      { path: `${own}/requests`, label: 'Requests', icon: 'requests' },
      { path: `${own}/users`, label: 'Users', icon: 'accounts' },
      { path: `${own}/alerts`, label: 'Alerts', icon: 'alerts' },
    ],
    programs,
  ];
};

export const Shell = (props: {
  readonly user: User;
  readonly path: string;
  readonly children: ComponentChildren;
}) => {
  const { user, path } = props;
  const [isOpen, setIsOpen] = useState(false);
  const { become } = useConsole();
  useEffect(() => setIsOpen(false), [path]);
  const [theme, setTheme] = useState(currentTheme);
  const alerts = useCall('alerts', { accountId: user.accountId }).answer ?? [];
  const count = alerts.length;
  const alertBadge = `badge ${alerts.some(({ cause }) => cause === 'credit.out') ? 'bad' : 'warn'}`;
  const groups = linksOf(user);
  const current =
    path === '/'
      ? '/playground'
      : groups.flat().find((page) => path === page.path || path.startsWith(`${page.path}/`))?.path;
  const link = ({ path: target, label, icon }: PageLink) => (
    <a href={target} aria-current={target === (current ?? path) ? 'page' : undefined}>
      <Icon name={icon} />
      <span>{label}</span>
      {icon === 'alerts' && count > 0 && (
        <span class={alertBadge}>
          {formatNumber(count)}
          <span class="hidden"> open</span>
        </span>
      )}
    </a>
  );
  const signOut = async () => {
    try {
      become(await call('signOut', { everywhere: false }), '/sign-in');
    } catch (error) {
      showToast(toRefusal(error).message);
    }
  };
  return (
    <div class="shell">
      <a class="skip hidden" href="#main">
        Skip to the page
      </a>
      <header class="side">
        <div class="between">
          <a href="/">
            <Brand />
          </a>
          <button
            type="button"
            class="button menu-button"
            aria-label={count === 0 ? 'Menu' : `Menu, ${plural(count, 'alert')}`}
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={() => setIsOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'close' : 'menu'} />
            {count > 0 && <span class={alertBadge}>{plural(count, 'alert')}</span>}
          </button>
        </div>
        <nav id="menu" class={isOpen ? 'menu open' : 'menu'} aria-label="Console">
          {groups.map((group) => (
            <div>{group.map(link)}</div>
          ))}
          <div class="menu-end">
            {link({ path: '/profile', label: user.name, icon: 'profile' })}
            <button type="button" onClick={() => void signOut()}>
              <Icon name="leave" />
              Sign out
            </button>
            <Switch
              name="theme"
              label="Colours"
              options={themes}
              value={theme}
              onChange={(chosen) => {
                chooseTheme(chosen);
                setTheme(chosen);
              }}
            />
          </div>
        </nav>
      </header>
      <main class="main stack" id="main" tabIndex={-1}>
        {props.children}
      </main>
    </div>
  );
};
