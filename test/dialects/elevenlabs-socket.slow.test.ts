/** The WebSockets of the ElevenLabs API, with the messages that its clients send. */
import t, { type Test } from 'tap';
import { createKeys, operate } from '../../scripts/operator.js';
import type { Alignment } from '../../scripts/rig/elevenlabs.js';
import { ElevenLabsClient, pipecatWords, textOf } from '../support/elevenlabs-client.js';
import { startService } from '../support/service.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1', ELEVENLABS_PORT: '0' });
const base = `ws://127.0.0.1:${service.dialectPorts['elevenlabs']}/v1/text-to-speech`;
const [key = '', brokeKey = '', revokedKey = '', poorKey = ''] = await createKeys(service.dataDir, [
  ['clients', 1_000_000],
  ['broke', 0],
  ['revoked', 1_000_000],
  ['poor', 80],
]);

const multi = 'multi-stream-input?model_id=eleven_flash_v2_5&output_format=pcm_24000&auto_mode=true';
const liveKit = `${multi}&enable_ssml_parsing=false&inactivity_timeout=180&sync_alignment=true`;

const open = async (t: Test, path = liveKit, voice = 'wren'): Promise<ElevenLabsClient> => {
  const client = await ElevenLabsClient.open(`${base}/${voice}/${path}`, { 'xi-api-key': key });
  if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
  t.teardown(() => client.close());
  return client;
};

const refused = async (path: string, headers: Record<string, string>): Promise<unknown> => {
  const answer = await ElevenLabsClient.open(`${base}/${path}`, headers);
  if (answer instanceof ElevenLabsClient) throw new Error('the handshake was not refused');
  return answer;
};

const statusOf = (status: string) => ({ detail: { status, message: String } });

const durationMs = (pcm: Buffer): number => pcm.length / 48;

/** Times count from the start of the context. */
const isInOrder = (t: Test, alignments: readonly Alignment[], totalMs: number): void => {
  let last = 0;
  for (const { chars, charStartTimesMs, charDurationsMs } of alignments) {
    t.equal(charStartTimesMs.length, chars.length);
    t.equal(charDurationsMs.length, chars.length);
    charStartTimesMs.forEach((startMs, index) => {
      if (startMs < last || charDurationsMs[index]! < 0) t.fail(`${startMs} after ${last}`);
      last = startMs + charDurationsMs[index]!;
    });
  }
  t.ok(last <= totalMs + 1, `${last} of ${totalMs} ms`);
};

const sentences = [
  'Good morning. The kettle is on, and the paper is at the door. ',
  'Shall we go, my 👋 friend? ',
];

t.test('LiveKit hears sentences with a flush each, and their end when it closes the context', async (t) => {
  const client = await open(t, liveKit, 'hpp4J3VqNfWAUOO0d1Us');
  client.send(
    { text: ' ', voice_settings: {}, context_id: 'one', generation_config: { chunk_length_schedule: [50] } },
    ...sentences.map((text) => ({ text, context_id: 'one', flush: true })),
    { text: '', context_id: 'one', flush: true },
  );
  await client.until(() => textOf(client.alignments('one')).length >= sentences.join('').length);
  t.notOk(client.isFinal('one'), 'not before the context is closed');
  client.send({ context_id: 'one', close_context: true });
  await client.until(() => client.isFinal('one'));
  t.match(client.of('one').at(-1), { audio: null, isFinal: true, contextId: 'one' });
  const totalMs = durationMs(client.audio('one'));
  t.ok(totalMs > 4_000 && totalMs < 15_000, `${totalMs} ms`);
  const alignments = client.alignments('one');
  t.equal(textOf(alignments), sentences.join(''));
  isInOrder(t, alignments, totalMs);
  const normalized = client.of('one').flatMap(({ normalizedAlignment }) => normalizedAlignment ?? []);
  t.equal(textOf(normalized), ` ${sentences.join('')}`);
  t.equal(normalized[0]?.charStartTimesMs[0], 1, 'the client subtracts the first time over 0');
  for (const { chars } of alignments) t.equal(chars.at(-1), ' ', 'clients wait for the space after a word');
  t.equal(alignments.flatMap(({ chars }) => chars).filter((character) => character === '👋').length, 1);

  client.send(
    { text: ' ', context_id: 'two' },
    { text: 'Another turn. ', context_id: 'two', flush: true },
    { context_id: 'two', close_context: true },
  );
  await client.until(() => client.isFinal('two'));
  t.equal(textOf(client.alignments('two')), 'Another turn. ');
  client.send({ context_id: 'two', close_context: true }, { context_id: 'never', close_context: true });
  client.send({ context_id: 'never', flush: true }, { close_socket: true });
  t.equal((await client.untilClosed()).code, 1000);
  t.equal(client.messages.filter(({ error }) => error !== undefined).length, 0);
});

t.test('Pipecat hears sentences without spaces between, and its clock of words adds up', async (t) => {
  const client = await open(t, multi);
  const said = ['Good morning.', 'The kettle is on, and the paper is at the door!', 'Shall we go?'];
  client.send({ text: ' ', context_id: 'a' });
  for (const text of said) client.send({ text, context_id: 'a' });
  client.send({ text: '' }, { text: '', context_id: 'a' }, { context_id: 'a', flush: true });
  client.send({ context_id: 'a', close_context: true });
  await client.until(() => client.isFinal('a'));
  const totalMs = durationMs(client.audio('a'));
  const words = pipecatWords(client.alignments('a'));
  t.strictSame(
    words.map(({ word }) => word),
    said.join(' ').split(' '),
  );
  t.ok(
    words.at(-1)!.startMs > totalMs * 0.75 && words.at(-1)!.startMs < totalMs,
    JSON.stringify(words.at(-1)),
  );
  t.strictSame(
    words.map(({ startMs }) => startMs),
    words.map(({ startMs }) => startMs).sort((a, b) => a - b),
  );
});

t.test('a close drops what is not flushed, and a second close drops the rest', async (t) => {
  const client = await open(t, multi);
  const long =
    'This goes on for quite a while, and nobody will hear the end of it, because somebody speaks. ';
  client.send({ text: ' ', context_id: 'cut' }, { text: long.repeat(20), context_id: 'cut' });
  await client.until(() => client.audio('cut').length > 0);
  client.send({ context_id: 'cut', close_context: true });
  await client.until(() => client.isFinal('cut'));
  t.ok(durationMs(client.audio('cut')) < 60_000);

  client.send({ text: long.repeat(20), context_id: 'spoken', flush: true });
  client.send({ context_id: 'spoken', close_context: true });
  await client.until(() => client.audio('spoken').length > 0);
  t.notOk(client.isFinal('spoken'), 'what was flushed is spoken to its end');
  client.send({ context_id: 'spoken', close_context: true });
  await client.until(() => client.isFinal('spoken'));
  const heard = client.of('spoken').length;
  client.send(
    { text: 'Next. ', context_id: 'next', flush: true },
    { context_id: 'next', close_context: true },
  );
  await client.until(() => client.isFinal('next'));
  t.equal(client.of('spoken').length, heard, 'nothing follows');
});

t.test('a turn that LiveKit interrupts ends at once, though all of it was flushed', async (t) => {
  const client = await open(t);
  const sentence = 'This goes on for quite a while, and nobody will hear the end of it. ';
  const speak = async (id: string): Promise<void> => {
    client.send({ text: ' ', context_id: id });
    client.send(...Array.from({ length: 40 }, () => ({ text: sentence, context_id: id, flush: true })));
    await client.until(() => client.audio(id).length > 0);
  };
  await speak('interrupted');
  client.send({ context_id: 'interrupted', close_context: true });
  client.send({ text: '', context_id: 'interrupted', flush: true });
  await client.until(() => client.isFinal('interrupted'));
  t.ok(durationMs(client.audio('interrupted')) < 60_000);
  t.equal(client.of('interrupted').at(-1)?.isFinal, true);
  const heard = client.of('interrupted').length;

  // A flush without a text, and a keep-alive, are no interruption.
  client.send({ text: sentence, context_id: 'whole', flush: true });
  client.send({ context_id: 'whole', close_context: true }, { context_id: 'whole', flush: true });
  client.send({ text: '', context_id: 'whole' });
  await client.until(() => client.isFinal('whole'));
  t.equal(textOf(client.alignments('whole')), sentence);
  t.equal(client.of('interrupted').length, heard, 'nothing follows');
  t.equal(client.messages.filter(({ error }) => error !== undefined).length, 0);
});

t.test('a context that rests ends, unless its client keeps it or it speaks', async (t) => {
  const client = await open(t, liveKit.replace('=180', '=3'));
  const beganMs = performance.now();
  const words = { text: 'Good morning. ', flush: true };
  client.send({ ...words, context_id: 'left' }, { ...words, context_id: 'kept' });
  const timer = setInterval(() => client.send({ text: '', context_id: 'kept' }), 200);
  t.teardown(() => clearInterval(timer));
  await client.until(() => client.isFinal('left'));
  const tookMs = performance.now() - beganMs;
  t.ok(tookMs >= 3_000, `${tookMs} ms`);
  t.equal(textOf(client.alignments('left')), 'Good morning. ');
  client.send({ ...words, context_id: 'left' });
  await client.until(() => textOf(client.alignments('left')).length > words.text.length);
  t.notOk(client.isFinal('kept'));
  clearInterval(timer);
  await client.until(() => client.isFinal('kept'));
  t.equal(client.messages.filter(({ error }) => error !== undefined).length, 0);
});

t.test('tokens that cut words rebuild the text, and a higher speed takes less time', async (t) => {
  const client = await open(t, multi.replace('auto_mode=true', 'auto_mode=false'));
  const text = 'Good morning, the kettle is on.\n\nAnd the paper is at the door.';
  const speak = async (id: string, speed: number): Promise<number> => {
    const settings = { voice_settings: { stability: 0.5, speed } };
    client.send({ text: ' ', context_id: id, ...settings });
    for (const token of text.match(/[^]{1,4}/gu) ?? []) client.send({ text: token, context_id: id });
    client.send({ context_id: id, flush: true }, { context_id: id, close_context: true });
    await client.until(() => client.isFinal(id));
    // The flush adds the space that the last word waits for.
    t.equal(textOf(client.alignments(id)), `${text} `);
    return durationMs(client.audio(id));
  };
  const slowMs = await speak('slow', 0.7);
  const fastMs = await speak('fast', 1.2);
  t.ok(slowMs > fastMs * 1.3, `${slowMs} and ${fastMs} ms`);
});

t.test('TEN sends the key in the first message, hears one context and its end', async (t) => {
  const url = `${base}/wren/stream-input?&model_id=eleven_flash_v2_5&output_format=pcm_24000`;
  const client = (await ElevenLabsClient.open(url)) as ElevenLabsClient;
  client.send({ text: ' ', xi_api_key: key, generation_config: { chunk_length_schedule: [50] } });
  for (const text of ['Good mor', 'ning. The ', 'kettle is on.']) client.send({ text });
  client.send({ text: '' });
  // Its keep-alive repeats the last piece.
  client.send({ text: 'kettle is on.' });
  t.equal((await client.untilClosed()).code, 1000);
  t.match(client.messages.at(-1), { audio: null, isFinal: true });
  t.notOk('contextId' in client.messages.at(-1)!);
  t.equal(client.messages.filter(({ isFinal }) => isFinal === true).length, 1);
  t.equal(textOf(client.alignments(undefined)), 'Good morning. The kettle is on. ');
  t.ok(client.audio(undefined).length > 24_000);
});

t.test('a key is taken from each place where clients put it', async (t) => {
  const path = `${base}/pNInz6obpgDQGcFmaJgB/stream-input?output_format=pcm_16000`;
  const bearer = `Bearer ${key}`;
  for (const [place, { headers = {}, query = '', first = {} }] of Object.entries({
    'xi-api-key': { headers: { 'xi-api-key': key } },
    'authorization header': { headers: { authorization: bearer } },
    'x-api-key': { headers: { 'x-api-key': key } },
    query: { query: `&authorization=${encodeURIComponent(bearer)}` },
    'xi_api_key in the first message': { first: { xi_api_key: key } },
    'xi-api-key in the first message': { first: { 'xi-api-key': key } },
    'authorization in the first message': { first: { authorization: bearer } },
  } as Record<string, { headers?: Record<string, string>; query?: string; first?: object }>)) {
    const client = await ElevenLabsClient.open(path + query, headers);
    if (!(client instanceof ElevenLabsClient)) throw new Error(`${place}: ${JSON.stringify(client)}`);
    client.send({ text: ' ', ...first }, { text: 'Yes. ' }, { text: '' });
    t.equal((await client.untilClosed()).code, 1000, place);
    t.ok(client.audio(undefined).length > 0, place);
  }
});

t.test(
  'a refused key in the first message is closed later: its client would come back at once',
  async (t) => {
    const url = `${base}/wren/stream-input?output_format=pcm_16000`;
    const check = async (first: object, error: string): Promise<void> => {
      const client = (await ElevenLabsClient.open(url)) as ElevenLabsClient;
      const atMs = performance.now();
      client.send(first);
      await client.until(() => client.messages.length > 0);
      t.match(client.messages[0], { error, code: 1008, message: String });
      const closed = await client.untilClosed();
      t.equal(closed.code, 1008);
      t.ok(closed.atMs - atMs > 1_000, `${closed.atMs - atMs} ms`);
    };
    await Promise.all([
      check({ text: ' ', xi_api_key: 'svc_sk_unknown' }, 'invalid_api_key'),
      check({ text: ' ', xi_api_key: 'sk_other' }, 'invalid_api_key'),
      check({ text: ' ' }, 'needs_authorization'),
      check({ text: ' ', xi_api_key: brokeKey }, 'quota_exceeded'),
    ]);
  },
);

t.test('handshakes are refused in the words of this API', async (t) => {
  const good = { 'xi-api-key': key };
  t.match(await refused(`wren/${multi}`, { 'xi-api-key': 'svc_sk_unknown' }), {
    status: 401,
    body: statusOf('invalid_api_key'),
  });
  t.match(await refused(`nobody/${multi}`, good), { status: 404, body: statusOf('voice_not_found') });
  t.match(await refused(`wren/${multi}`, { 'xi-api-key': brokeKey }), {
    status: 402,
    body: statusOf('quota_exceeded'),
  });
  t.match(await refused('wren/stream-input?output_format=mp3_1_1', good), {
    status: 422,
    body: { detail: [{ loc: ['query', 'output_format'], msg: String, type: String }] },
  });
});

t.test('while nine speak the tenth is refused, at its handshake or on an open socket', async (t) => {
  const idle = await open(t);
  const long = 'This goes on for quite a while, because somebody has a lot to tell about the summer. ';
  const clients = await Promise.all(Array.from({ length: 9 }, () => open(t)));
  for (const client of clients) client.send({ text: long.repeat(40), context_id: 'c', flush: true });
  await Promise.all(clients.map((client) => client.until(() => client.audio('c').length > 0)));
  t.match(await refused(`wren/${multi}`, { 'xi-api-key': key }), {
    status: 429,
    body: statusOf('too_many_concurrent_requests'),
  });
  const sentence = { text: 'Hello there. ', context_id: 'tenth', flush: true };
  idle.send({ text: ' ', context_id: 'tenth' }, sentence, sentence);
  idle.send({ context_id: 'tenth', close_context: true });
  await idle.until(() => idle.of('tenth').length > 0);
  for (const client of clients) client.close();
  await Promise.all(clients.map((client) => client.untilClosed()));
  const again = await open(t);
  for (const client of [idle, again]) {
    client.send({ ...sentence, context_id: 'next' }, { context_id: 'next', close_context: true });
    await client.until(() => client.isFinal('next'));
    t.ok(client.audio('next').length > 0, 'both speak when there is room');
  }
  t.match(
    idle.of('tenth'),
    [{ error: 'too_many_concurrent_requests', code: 1008 }],
    'said once, and ends it',
  );
  t.equal(idle.of('tenth').length, 1);
});

t.test('invalid messages name the fault, and change nothing else', async (t) => {
  const client = await open(t);
  client.send({ text: 'Good morning. ', context_id: 'a' });
  client.send({ text: 5, context_id: 'a' }, { context_id: 'b', text: 'x', voice_settings: { speed: 9 } });
  client.send({ context_id: 'a', flush: true }, { context_id: 'a', close_context: true });
  await client.until(() => client.isFinal('a'));
  const errors = client.messages.filter(({ error }) => error !== undefined);
  t.match(errors, [
    { error: 'invalid_message', message: /^text: /, contextId: 'a' },
    { error: 'invalid_message', message: /^voice_settings\.speed: /, contextId: 'b' },
  ]);
  t.ok(client.audio('a').length > 0);
});

t.test(
  'credit that runs out ends the context, and what its client sent meanwhile is not spoken',
  async (t) => {
    const client = await ElevenLabsClient.open(`${base}/wren/${liveKit}`, { 'xi-api-key': poorKey });
    if (!(client instanceof ElevenLabsClient)) throw new Error('refused');
    const sentence = { text: 'This is one of several sentences. ', context_id: 'a', flush: true };
    client.send({ text: ' ', context_id: 'a' }, sentence, sentence, sentence, {
      text: 'Oh. ',
      context_id: 'a',
      flush: true,
    });
    await client.until(() => client.messages.some(({ error }) => error !== undefined));
    t.match(client.messages.at(-1), { error: 'quota_exceeded', contextId: 'a' });
    client.send({ context_id: 'a', close_context: true }, { text: 'Oh. ', context_id: 'b', flush: true });
    client.send({ context_id: 'b', close_context: true });
    await client.until(() => client.isFinal('b'));
    t.equal(client.messages.filter(({ error }) => error !== undefined).length, 1, 'said once');
    t.notOk(textOf(client.alignments('a')).includes('Oh.'), 'no half of a turn');
    t.equal(textOf(client.alignments('b')), 'Oh. ', 'what can be paid is spoken in another context');
  },
);

t.test('a socket whose key is revoked is closed', async (t) => {
  const url = `${base}/wren/${multi}`;
  const client = (await ElevenLabsClient.open(url, { 'xi-api-key': revokedKey })) as ElevenLabsClient;
  await operate(service.dataDir, (administration) => administration.revoke(revokedKey));
  t.equal((await client.untilClosed()).code, 1008);
  t.match(client.messages, [{ error: 'invalid_api_key', code: 1008 }]);
});
