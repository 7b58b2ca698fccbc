/** A service with its console, and people at browsers. Both end with the test. */
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import type { Test } from 'tap';
import type { Answer, CallName, Question } from '../../src/console/contract.js';
import { isInstalled } from '../../scripts/say/sinks.js';
import { type Environment, SCRIPTED, startService, type TestService, until } from '../support/service.js';
import { missingTool } from '../support/tools.js';

/** The same browser without its windows, a package of its own. Our pages take a quarter less of CPU time in it. */
const WINDOWLESS = 'chromium-headless-shell';
const program = isInstalled(WINDOWLESS) ? WINDOWLESS : 'chromium';

export const noBrowser = missingTool(program);

export const password = 'three green herons';

/** A browser says this about every answer that is an error. The page says more. */
const expectedTalk = /^Failed to load resource: the server responded with a status of 4\d\d/;

export const openBrowser = async (t: Test): Promise<Browser> => {
  const executablePath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
  // Containers and root have no sandbox to offer.
  const browser = await chromium.launch({
    executablePath: executablePath ?? '',
    chromiumSandbox: false,
    args: ['--autoplay-policy=no-user-gesture-required'],
  });
  t.teardown(() => browser.close());
  return browser;
};

export interface PersonOptions {
  readonly dark?: boolean;
  readonly phone?: boolean;
}

const colourSchemeOf = ({ dark = false }: PersonOptions) => (dark ? 'dark' : 'light');
const windowOf = ({ phone = false }: PersonOptions) =>
  phone ? { width: 360, height: 740 } : { width: 1_280, height: 860 };

/** Somebody at a browser: one page, with cookies of its own. */
export class Person {
  readonly page: Page;
  /** What the browser complained about: violations of the policy, exceptions, failed loads. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      const text = message.text();
      if (['error', 'warning'].includes(message.type()) && !expectedTalk.test(text))
        this.complaints.push(text);
    });
  }

  static async arrive(browser: Browser, baseURL: string, options: PersonOptions = {}): Promise<Person> {
    const context = await browser.newContext({
      baseURL,
      locale: 'en-GB',
      timezoneId: 'UTC',
      colorScheme: colourSchemeOf(options),
      viewport: windowOf(options),
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    context.setDefaultTimeout(60_000);
    // What moves though nobody touched anything.
    await context.addInitScript(`
      window.shifted = 0;
      new PerformanceObserver((list) => {
        for (const { hadRecentInput, value } of list.getEntries()) if (!hadRecentInput) window.shifted += value;
      }).observe({ type: 'layout-shift', buffered: true });`);
    return new Person(context, await context.newPage());
  }

  leave(): Promise<void> {
    return this.#context.close();
  }

  /** The page that is open changes its colours and the size of its window. */
  async changesTo(options: PersonOptions): Promise<void> {
    await this.page.emulateMedia({ colorScheme: colourSchemeOf(options) });
    await this.page.setViewportSize(windowOf(options));
  }

  heading(name: string): Locator {
    return this.page.getByRole('heading', { level: 1, name, exact: true });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  field(name: string): Locator {
    return this.page.getByLabel(name, { exact: true });
  }

  /** Waits for a page with this heading. */
  async sees(heading: string): Promise<void> {
    await this.heading(heading).waitFor();
  }

  /** The message of the form or page that was refused. */
  async alert(): Promise<string> {
    return this.page.getByRole('alert').first().innerText();
  }

  /** Opens a link that makes a user, and becomes that user. */
  async join(link: string, name: string, button: string): Promise<void> {
    await this.page.goto(link);
    await this.field('Your name').fill(name);
    await this.field('Password').fill(password);
    await this.button(button).click();
    await this.sees('Playground');
  }

  async signIn(name: string): Promise<void> {
    await this.field('Name').fill(name);
    await this.field('Password').fill(password);
    await this.button('Sign in').click();
  }

  /** Creates an account without a limit of credit. @returns its id */
  async createAccount(name: string): Promise<number> {
    await this.page.goto('/accounts');
    await this.button('Create account').first().click();
    await this.page.getByRole('dialog').getByLabel('Name').fill(name);
    await this.page.getByRole('dialog').getByRole('button', { name: 'Create account' }).click();
    await this.sees(name);
    await this.page.waitForURL(/accounts\/\d+/);
    return Number(/accounts\/(\d+)/.exec(this.page.url())?.[1]);
  }

  /** Creates a key on the page of keys. @returns the key */
  async createKey(name: string): Promise<string> {
    await this.button('Create key').first().click();
    await this.page.getByRole('dialog').getByLabel('Name').fill(name);
    await this.page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const key = await this.page.getByLabel('Key', { exact: true }).innerText();
    await this.button('I have copied the key').click();
    await this.page.getByRole('dialog').waitFor({ state: 'detached' });
    return key.trim();
  }

  /** @returns what axe finds in this page, as one line for each rule */
  async violations(): Promise<string[]> {
    await this.page.evaluate(axe.source);
    const { violations } = await this.page.evaluate<axe.AxeResults>('axe.run()');
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => String(target)).join(', ')}`,
    );
  }

  /** How far the page is wider than its window, and how much of it moved by itself. */
  async layout(): Promise<{ readonly overflowPx: number; readonly shifted: number }> {
    // Charts follow a new size of the window with the next frame.
    return this.page.evaluate(`new Promise((done) =>
      requestAnimationFrame(() => requestAnimationFrame(() => done({
        overflowPx: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        shifted,
      }))))`);
  }
}

/** A call of the console as the page's user. */
export const ask = <N extends CallName>(page: Page, name: N, question: Question<N>): Promise<Answer<N>> =>
  page.evaluate<Answer<N>>(
    `fetch('/api/${name}', {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(question))},
    }).then((response) => response.json())`,
  );

export interface Rig {
  readonly service: TestService;
  /** Of the console, such as http://127.0.0.1:8081. */
  readonly url: string;
  readonly browser: Browser;
  /** The link that the start left for the first operator. */
  readonly claimLink: string;
  readonly arrive: (options?: PersonOptions) => Promise<Person>;
}

/** @param script the service as it is, or with a scripted engine */
export const startConsole = async (t: Test, env: Environment = {}, script = SCRIPTED): Promise<Rig> => {
  const service = await startService(t, { CONSOLE_PORT: '0', ...env }, script);
  const linkPath = join(service.dataDir, 'console-link');
  await until(() => existsSync(linkPath));
  const claimLink = readFileSync(linkPath, 'utf8').trim();
  const url = new URL(claimLink).origin;
  const browser = await openBrowser(t);
  return { service, url, browser, claimLink, arrive: (options) => Person.arrive(browser, url, options) };
};
