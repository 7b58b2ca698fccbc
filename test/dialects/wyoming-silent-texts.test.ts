/** What a streamed text takes before its first words, and while no words come. */
import t, { type Test } from 'tap';
import { limits, type Bounds } from '../../src/limits.js';
import { eventually } from '../support/front-server.js';
import { SteppedTime } from '../support/stepped-time.js';
import type { WyomingClient } from '../support/wyoming-client.js';
import { startWyomingFront } from '../support/wyoming-front.js';

const start = async (t: Test, bounds: Partial<Bounds>) => {
  const time = new SteppedTime(25);
  return { time, ...(await startWyomingFront(t, { stallRearmMs: 100, ...bounds }, time.clock)) };
};

/** Waits until the service has handled all that the client sent. */
const handled = async (client: WyomingClient): Promise<void> => {
  client.send('ping');
  await client.until('pong');
};

t.test(
  'a text takes nothing before its first words, blank text is none, and pings keep it no longer',
  async (t) => {
    const { admission, front, open, speech, time } = await start(t, { socketSilenceMsMax: 300 });
    const client = await open();
    client.send('synthesize-start', {});
    client.send('synthesize-chunk', { text: ' '.repeat(1_000) });
    await handled(client);
    t.equal(speech.contexts.length, 0, 'no context');
    t.equal(admission.leases.length, 0, 'no slot and no credit');
    t.equal(front.server.inFlight, 0, 'nothing that a stop waits for');
    client.send('synthesize-chunk', { text: 'Hello ' });
    await handled(client);
    t.match(speech.contexts, [{ text: / Hello $/ }]);
    t.equal(admission.leases.length, 1);
    t.equal(front.server.inFlight, 1);
    await time.passUntil(() => {
      client.send('ping');
      client.send('synthesize-chunk', { text: ' ' });
      return client.isClosed;
    });
    t.equal(admission.slotsTaken, 0);
    t.equal(front.server.inFlight, 0);
  },
);

t.test('held words that are not spoken give slot and credit back, until words or the end come', async (t) => {
  const { admission, open, speech, time } = await start(t, { slotIdleMsMax: 300 });
  const client = await open();
  client.send('synthesize-start', {});
  client.send('synthesize-chunk', { text: 'And then' });
  await handled(client);
  t.equal(admission.slotsTaken, 1);
  await time.passUntil(() => admission.slotsTaken === 0);
  client.send('synthesize-chunk', { text: ' ' });
  await handled(client);
  t.equal(admission.slotsTaken, 0, 'blank text takes them not again');
  client.send('synthesize-chunk', { text: 'it' });
  await handled(client);
  t.equal(admission.slotsTaken, 1);
  t.equal(speech.last.text, 'And then it');
  await time.passUntil(() => admission.slotsTaken === 0);
  speech.script = () => undefined;
  client.send('synthesize-stop');
  await eventually(() => speech.last.ended);
  t.equal(admission.slotsTaken, 1);
  await time.pass(600);
  t.equal(admission.slotsTaken, 1, 'speech keeps them');
  speech.last.speak(3_000);
  speech.last.close();
  await client.until('synthesize-stopped');
  t.equal(admission.leases.at(-1)?.settled, 'And then it'.length);

  client.send('synthesize-start', {});
  client.send('synthesize-chunk', { text: 'No more' });
  await handled(client);
  await time.passUntil(() => admission.slotsTaken === 0);
  admission.slotsTaken = limits.slotsPerKey;
  client.send('synthesize-stop');
  t.match(await client.untilClosed(), [{ type: 'error', data: { code: 'slotsExhausted' } }]);
});

t.test('the end of held words waits for credit that the database reserves', async (t) => {
  const { admission, open, speech, time } = await start(t, { slotIdleMsMax: 300 });
  const asked: { characters: number; decide: () => void }[] = [];
  Object.assign(admission, {
    waitForCredit: (
      _key: unknown,
      characters: number,
      _slots: unknown,
      _grows: unknown,
      decide: () => void,
    ) => {
      asked.push({ characters, decide });
      return { cancel: () => undefined };
    },
  });
  const client = await open();
  client.send('synthesize-start', {});
  client.send('synthesize-chunk', { text: 'And then' });
  await eventually(() => asked.length === 1);
  asked[0]?.decide();
  await time.passUntil(() => admission.leases.length === 1 && admission.slotsTaken === 0);
  client.send('synthesize-stop');
  await eventually(() => asked.length === 2);
  t.equal(asked[1]?.characters, 'And then'.length);
  t.notOk(speech.last.ended);
  asked[1]?.decide();
  await client.until('synthesize-stopped');
  t.equal(admission.leases.length, 2);
});

t.test('an address has nine texts with words at most, also when they are silent', async (t) => {
  const { admission, open, speech, time } = await start(t, { slotIdleMsMax: 300 });
  const clients = await Promise.all(Array.from({ length: limits.slotsPerKey + 1 }, () => open()));
  for (const client of clients) client.send('synthesize-start', {});
  for (const client of clients.slice(1)) {
    client.send('synthesize-chunk', { text: 'And then' });
    await handled(client);
  }
  await time.passUntil(() => admission.slotsTaken === 0);
  clients[0]?.send('synthesize-chunk', { text: 'One more' });
  t.match(await clients[0]?.untilClosed(), [{ type: 'error', data: { code: 'slotsExhausted' } }]);
  t.equal(speech.contexts.length, limits.slotsPerKey);
  clients[1]?.send('synthesize-stop');
  await clients[1]?.until('synthesize-stopped');
  const next = await open();
  next.send('synthesize', { text: 'Now there is room.' });
  await next.until('audio-stop');
});

t.test('a drain waits for speech, and for no text without words or without speech', async (t) => {
  const { front, open, speech, time } = await start(t, { slotIdleMsMax: 300 });
  const [wordless, silent, speaking] = [await open(), await open(), await open()];
  for (const client of [wordless, silent]) client.send('synthesize-start', {});
  silent.send('synthesize-chunk', { text: 'And then' });
  speech.script = () => undefined;
  speaking.send('synthesize', { text: 'Hello.' });
  await handled(silent);
  await handled(wordless);
  await eventually(() => front.server.inFlight === 2);
  front.server.stopAccepting();
  await time.passUntil(() => silent.isClosed);
  const draining = [{ type: 'error', data: { code: 'draining' } }];
  t.match(await silent.untilClosed(), draining);
  t.equal(front.server.inFlight, 1);
  wordless.send('synthesize-chunk', { text: 'Hello.' });
  t.match(await wordless.untilClosed(), draining, 'it takes no new speech');
  await time.pass(600);
  speech.last.audio(3_000);
  speech.last.close();
  await speaking.until('audio-stop');
  await front.server.whenIdle();
});
