/** Every page, for the eye, for a screen reader and for the browser's own checks. */
import t from 'tap';
import { isNight, seedOfRun } from '../fuzz/check.js';
import { until } from '../support/waiting.js';
import { ask, noBrowser, type PersonOptions, startConsole } from './browser-rig.js';

/** Between a phone and a desk, where the menu is above the page, and beside it; and a wide desk. */
const otherWidths = [768, 1_024, 1_920];

const devices: Readonly<Record<string, PersonOptions>> = {
  'desk, light': {},
  'phone, dark': { dark: true, phone: true },
};

t.test('each page fits a desk, and a phone', { skip: noBrowser }, async (t) => {
  t.comment(`seed ${seedOfRun()}`);
  const rig = await startConsole(t);
  const ada = await rig.arrive();
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  const accountId = await ada.createAccount('Harbour Radio');
  const key = await ada.createKey('Phone line');
  const longName = 'The Royal Harbour and Lighthouse Broadcasting Company';
  const longId = await ada.createAccount(longName);
  await ada.page.goto(`/accounts/${longId}/keys`);
  const longKey = await ada.createKey('The telephone line of the harbour');
  await ask(ada.page, 'addWord', { accountId, word: 'x'.repeat(45), spoken: 'a long word' });
  for (const one of [key, longKey])
    await (
      await rig.service.post('/v1/tts/stream', { text: 'Hello there.', voice: 'wren' }, { key: one })
    ).arrayBuffer();
  const cookies = await ada.page.context().cookies();
  await ada.leave();

  const pages = {
    '/playground': 'Playground',
    '/accounts': 'Accounts',
    [`/accounts/${accountId}/keys`]: 'Harbour Radio',
    [`/accounts/${accountId}/usage`]: 'Harbour Radio',
    [`/accounts/${accountId}/requests`]: 'Harbour Radio',
    [`/accounts/${accountId}/users`]: 'Harbour Radio',
    [`/accounts/${accountId}/alerts`]: 'Harbour Radio',
    [`/accounts/${accountId}/manage`]: 'Harbour Radio',
    '/alerts': 'Alerts',
    '/lexicon': 'Lexicon',
    '/usage': 'Usage',
    '/live': 'Live',
    '/requests': 'Requests',
    '/keys': 'Keys',
    '/voices': 'Voices',
    '/connect': 'Connect',
    '/docs': 'API',
    '/operators': 'Operators',
    '/audit': 'Audit',
    '/profile': 'Ada',
    '/nowhere': 'There is no such page',
  };
  const entrances = {
    '/sign-in': 'Sign in',
    '/claim#x': 'Set a new password',
    '/invite#x': 'This invitation cannot be used',
  };

  for (const [isSignedIn, paths] of [[false, entrances] as const, [true, pages] as const]) {
    const person = await rig.arrive();
    if (isSignedIn) await person.page.context().addCookies(cookies);
    for (const [place, [path, heading]] of Object.entries(paths).entries()) {
      // A load, and axe, each take as long as the rest. By day a page is loaded on one device, and axe looks at half of the pages.
      const turn = (seedOfRun() + place) % 4;
      const inTurn = Object.entries(devices);
      if (turn < 2) inTurn.reverse();
      await t.test(path, async (t) => {
        for (const [index, [device, options]] of inTurn.entries()) {
          const isLoaded = index === 0 || isNight;
          await person.changesTo(options);
          if (isLoaded) {
            // Another fragment alone would not load the page.
            await person.page.goto('about:blank');
            await person.page.goto(path);
            await person.sees(heading);
            await person.page.getByText('Loading …').waitFor({ state: 'detached' });
            // It is set after the page was drawn.
            t.ok(
              await until(async () => (await person.page.title()).includes(heading)),
              await person.page.title(),
            );
          }
          // The dark colours have less contrast.
          if (isNight || (options.dark === true && turn % 2 === 0))
            t.strictSame(await person.violations(), [], `${device}: axe`);
          const { overflowPx, shifted } = await person.layout();
          t.equal(overflowPx, 0, `${device}: nothing is wider than the window`);
          if (isLoaded) t.ok(shifted < 0.02, `${device}: nothing moves by itself: ${shifted}`);
          if (options.phone === true) continue;
          for (const width of otherWidths) {
            await person.page.setViewportSize({ width, height: 860 });
            t.equal((await person.layout()).overflowPx, 0, `nothing is wider than a window of ${width} px`);
          }
        }
      });
    }
    t.strictSame(person.complaints, [], 'nothing on the browser’s console: no violation of the policy');
    await person.leave();
  }
});
