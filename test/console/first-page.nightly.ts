/** A part of `npm run nightly`: how long a person waits for the first page, from the click on its address until it can be used. */
import { join } from 'node:path';
import type { Cookie } from 'playwright-core';
import t from 'tap';
import type { Answer } from '../../src/console/contract.js';
import { History } from '../../src/history.js';
import { limits } from '../../src/limits.js';
import type { Log } from '../../src/log.js';
import { newDataFolder } from '../support/service.js';
import { ask, noBrowser, type PersonOptions, type Rig, startConsole } from './browser-rig.js';

const RUNS = 9;
/** The bar on a quiet machine. */
const USABLE_MS_MAX = 300;

interface Waited {
  readonly paintMs: number;
  readonly usableMs: number;
}

interface VisitOptions extends PersonOptions {
  readonly cookies?: Cookie[];
  /** The browser has the files of an earlier visit. */
  readonly isSecondVisit?: boolean;
}

/** @param selector of what the person came to use */
const waitFor = async (rig: Rig, path: string, selector: string, options: VisitOptions): Promise<Waited> => {
  const person = await rig.arrive(options);
  const { page } = person;
  if (options.cookies !== undefined) await page.context().addCookies(options.cookies);
  // A tab that is open already: a browser that starts is no part of the figure.
  await page.goto('about:blank');
  if (options.isSecondVisit === true) {
    await page.goto(path);
    await page.locator(selector).first().waitFor();
    await page.goto('about:blank');
  }
  await page.addInitScript(`
    const painted = new Promise((resolve) => {
      new PerformanceObserver((list) => {
        for (const { name, startTime } of list.getEntries())
          if (name === 'first-contentful-paint') resolve(startTime);
      }).observe({ type: 'paint', buffered: true });
    });
    const usable = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (document.querySelector(${JSON.stringify(selector)}) === null) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { subtree: true, childList: true });
    });
    window.waited = Promise.all([painted, usable]);`);
  await page.goto(path);
  const [paintMs, usableMs] = await page.evaluate<[number, number]>('waited');
  await person.leave();
  return { paintMs, usableMs };
};

const MINUTE_MS = 60_000;
const silent = { warn: () => undefined } as unknown as Log;

/** The file of a service that has run for a month: what the live page shows of the past is full. */
const keepHistory = async (dataDir: string): Promise<void> => {
  const endMs = Date.now();
  const history = await History.open(limits, join(dataDir, 'history.json'), silent, endMs);
  const day = 24 * 60 * MINUTE_MS;
  for (let atMs = endMs - limits.historyDaysMax * day; atMs < endMs;) {
    const isOfHour = atMs > endMs - 61 * MINUTE_MS;
    for (const ms of [20, 30, 40 + (atMs % 97)]) history.firstAudio(ms);
    history.ended();
    if (atMs % 3 === 0) history.refused('creditExhausted');
    history.sample(atMs % 7, (atMs % 11) / 10, atMs);
    atMs += isOfHour ? limits.historySampleMs : 5 * MINUTE_MS;
  }
  await history.close();
};

t.test('the first page can be used soon', { skip: noBrowser }, async (t) => {
  const dataDir = newDataFolder(t);
  await keepHistory(dataDir);
  const rig = await startConsole(t, { DATA_DIR: dataDir }, 'src/main.js');
  const ada = await rig.arrive();
  await ada.join(rig.claimLink, 'Ada', 'Claim this console');
  const cookies = await ada.page.context().cookies();
  // What can be found again is full of requests: of fifty, some speak, and the others are refused.
  const bodies = Array.from({ length: 50 }, (_, index) => ({
    text: 'Yes.',
    voice: index < 5 ? 'wren' : 'no_such_voice',
  }));
  for (let count = 0; count < limits.requestsOfAccountMax; count += bodies.length)
    for (const response of await Promise.all(bodies.map((body) => rig.service.post('/v1/tts', body))))
      await response.arrayBuffer();
  const question = { accountId: null, keyId: null, status: null };
  let page: Answer<'requests'> = await ask(ada.page, 'requests', { ...question, before: null });
  let found = page.rows.length;
  while (page.next !== null) {
    page = await ask(ada.page, 'requests', { ...question, before: page.next });
    found += page.rows.length;
  }
  t.equal(found, limits.requestsOfAccountMax);
  const { atMs } = await ask(ada.page, 'history', { range: 'hour' });
  t.ok(atMs.length >= limits.historyHourPointsMax, 'the hour is full');
  await ada.leave();
  const speak = '[role=tabpanel]:not([hidden]) .button.primary';
  const visits: Record<string, readonly [path: string, selector: string, options: VisitOptions]> = {
    'sign-in': ['/sign-in', 'input[name=password]', {}],
    playground: ['/', speak, { cookies }],
    requests: ['/requests', '.requests tbody tr', { cookies }],
    live: ['/live', '.plot svg', { cookies }],
    'playground, second visit': ['/', speak, { cookies, isSecondVisit: true }],
  };
  for (const [name, visit] of Object.entries(visits)) {
    const waited: Waited[] = [];
    for (let run = 0; run < RUNS; run++) waited.push(await waitFor(rig, ...visit));
    const sorted = (of: keyof Waited) => waited.map((one) => Math.round(one[of])).sort((a, b) => a - b);
    t.comment(`${name}: painted ${sorted('paintMs').join(' ')}, usable ${sorted('usableMs').join(' ')} ms`);
    // The fastest: other programs of the machine slow the others.
    const [fastest = Infinity] = sorted('usableMs');
    t.ok(fastest < USABLE_MS_MAX, `${name}: ${fastest} ms`);
  }
});
