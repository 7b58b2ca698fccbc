/** Fifty open consoles, each with a live view and a page of requests that is refreshed now and then, cost listeners nothing. */
import t from 'tap';
import { ConsoleClient } from '../support/console-client.js';
import { pause, readStream, SCRIPTED, startService, until } from '../support/service.js';

const CONSOLES = 50;
const REQUESTS = 300;
const TEXT = 'Yes. The kettle is on. The bread is in the oven, and it is almost done.';
/** The bar of the front thread. */
const PAUSE_MS_MAX = 15;

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(part * (values.length - 1))] ?? Number.NaN;

t.test('fifty open consoles do not slow speech down', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const { accountId } = await operator.call('createAccount', { name: 'own', credits: null });
  const { key } = await operator.call('createKey', { accountId, properties: {} });
  /** Milliseconds to the first byte of each request, one after the other. */
  const listen = async (): Promise<number[]> => {
    const firstMs: number[] = [];
    for (let i = 0; i < REQUESTS; i++) {
      const startMs = performance.now();
      const response = await service.post('/v1/tts/stream', { text: TEXT, voice: 'wren' }, { key });
      firstMs.push(performance.now() - startMs);
      await readStream(response);
    }
    return firstMs;
  };
  await listen();
  const before = await listen();

  const ended = new AbortController();
  let views = 0;
  let calls = 0;
  const openConsole = async (browser: ConsoleClient): Promise<void> => {
    const live = await browser.ask('/api/live', { signal: ended.signal });
    const watch = async (): Promise<void> => {
      for await (const piece of live.body!) views += (piece as Uint8Array).length > 0 ? 1 : 0;
    };
    watch().catch(() => undefined);
    while (!ended.signal.aborted) {
      await browser.call('history', { range: 'hour' });
      await browser.call('history', { range: 'days' });
      await browser.call('alerts', { accountId: null });
      await browser.call('requests', { accountId: null, keyId: null, status: null, before: null });
      calls++;
      await pause(5_000);
    }
  };
  // One session may have only so much open.
  const others = [await operator.invited(null, 'otto'), await operator.invited(null, 'ida')];
  const browsers = [operator, ...others];
  const open = Array.from({ length: CONSOLES }, (_, i) => openConsole(browsers[i % browsers.length]!));
  t.ok(await until(() => views > CONSOLES && calls >= CONSOLES), 'all consoles are open');
  const beside = await listen();
  const calledBeside = calls;
  ended.abort();
  await Promise.all(open);
  // Before and after, so that a machine that becomes slower or faster meanwhile does not count.
  const alone = [...before, ...(await listen())];

  // The median, because other tests run beside this one; the comment has what a quiet machine shows.
  const [aloneMs, besideMs] = [quantile(alone, 0.5), quantile(beside, 0.5)];
  t.comment(
    `first byte: p50 ${aloneMs.toFixed(1)} and ${besideMs.toFixed(1)} ms, ` +
      `p95 ${quantile(alone, 0.95).toFixed(1)} and ${quantile(beside, 0.95).toFixed(1)} ms, ` +
      `p99 ${quantile(alone, 0.99).toFixed(1)} and ${quantile(beside, 0.99).toFixed(1)} ms; ${views} views, ${calledBeside} calls`,
  );
  t.ok(besideMs - aloneMs <= PAUSE_MS_MAX, `${besideMs - aloneMs} ms later`);
  t.equal(await service.metric('syrinx_underruns_total'), 0, 'no listener ran dry');
});
