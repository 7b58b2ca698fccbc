/** A key that knows some voices only: on every route, and on an open WebSocket. */
import t from 'tap';
import {
  eventually,
  GOOD_KEY,
  OTHER_KEY,
  platformAsks,
  speak,
  startFront,
  type Front,
} from '../support/front-server.js';
import { RawClient, type RequestOptions } from '../support/raw-client.js';
import { openers, openWs } from '../support/socket-client.js';
import { pause } from '../support/waiting.js';

/** Of GOOD_KEY in `FakeAdmission`. */
const KEY_ID = 7;

const answer = async (front: Front, request: RequestOptions) => {
  const { status, body } = await RawClient.ask(front.port, request);
  return { status, body: JSON.parse(body.toString()) as unknown };
};

const unknown = (valid: readonly string[]) => ({
  error: 'unknown_voice',
  message: `Unknown voice 'ada'. Valid voices: ${valid.join(', ')}`,
  voice: 'ada',
  valid_voices: valid,
});

t.test('other voices are unknown to it on every HTTP route, from the next request on', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.close();
  const list = { path: '/v1/tts/speakers', key: GOOD_KEY };
  const asks = [speak('/v1/tts'), speak('/v1/tts/stream'), platformAsks()];
  for (const voices of [['bela', 'ada_conv', 'not-loaded'], ['not-loaded']]) {
    front.admission.voices.set(KEY_ID, voices);
    const known = ['bela', 'ada_conv'].filter((id) => voices.includes(id));
    t.strictSame(await answer(front, list), { status: 200, body: { speaker_ids: known } });
    for (const request of asks)
      t.strictSame(
        await answer(front, request),
        { status: 422, body: unknown([...known].sort()) },
        request.path,
      );
    const { body } = await answer(front, { path: '/openapi.json', key: GOOD_KEY });
    t.notMatch(JSON.stringify(body), /"ada"|not-loaded/);
  }
  front.admission.voices.set(KEY_ID, ['bela']);
  t.equal((await answer(front, speak('/v1/tts', { voice: 'bela' }))).status, 200);
  t.equal((await answer(front, { ...speak('/v1/tts'), key: OTHER_KEY })).status, 200, 'of another key');
  front.admission.voices.clear();
  t.equal((await answer(front, speak('/v1/tts'))).status, 200);
  t.match((await answer(front, { path: '/openapi.json', key: GOOD_KEY })).body, { openapi: '3.1.0' });
  t.equal(front.admission.slotsTaken, 0);
});

for (const [name, open] of openers)
  t.test(
    `${name}: an open WebSocket gets the voices of its key, and a context loses a voice within a second`,
    async (t) => {
      const front = await startFront(t, { bounds: { keyRecheckMsMax: 40 } });
      front.admission.voices.set(KEY_ID, ['bela']);
      const client = await open(front.port, GOOD_KEY);
      t.teardown(() => client.close());
      client.start('a');
      t.strictSame(await client.frame(({ error }) => error !== undefined), {
        error: "Unknown voice 'ada'. Valid voices: bela",
        context_id: 'a',
      });
      front.admission.voices.set(KEY_ID, ['bela', 'ada']);
      // Until the service has looked again.
      while (!client.frames.some(({ context_started }) => context_started !== undefined)) {
        client.start('b');
        await pause(10);
      }
      client.start('c', { voice_id: 'bela' });
      await client.frame(
        ({ context_id, context_started }) => context_id === 'c' && context_started !== undefined,
      );
      front.admission.voices.set(KEY_ID, ['bela']);
      const error = "Unknown voice 'ada'. Valid voices: bela";
      await eventually(() => client.of('b').at(-1)?.error === error);
      t.equal(client.of('c').length, 1);
      t.equal(client.closed, null);
    },
  );

t.test(
  '/openapi.json names the voices of the key, of as many keys and catalogues as ask for it',
  async (t) => {
    const front = await startFront(t);
    const named = async (key: string) =>
      (await RawClient.ask(front.port, { path: '/openapi.json', key })).body
        .toString()
        .match(/ada_\d+|bela/g);
    front.admission.voices.set(KEY_ID, ['bela']);
    for (const round of [0, 1])
      for (let i = 0; i < 40; i++) {
        front.speech.voices = { ...front.speech.voices, speakerIds: [`ada_${i}`, 'bela'] };
        t.strictSame(new Set(await named(OTHER_KEY)), new Set([`ada_${i}`, 'bela']), `round ${round}`);
        t.strictSame(new Set(await named(GOOD_KEY)), new Set(['bela']));
      }
  },
);

t.test('a key that is opened again is seen as it is then', async (t) => {
  const front = await startFront(t, { bounds: { keyRecheckMsMax: 60_000 } });
  const [first] = [await openWs(front.port, GOOD_KEY)];
  front.admission.voices.set(KEY_ID, ['bela']);
  const second = await openWs(front.port, GOOD_KEY);
  t.teardown(() => [first, second].forEach((client) => client.close()));
  for (const client of [first, second]) {
    client.start('a');
    await eventually(() => client.frames.length > 0);
    t.match(client.frames[0], { error: /^Unknown voice/ });
  }
});
