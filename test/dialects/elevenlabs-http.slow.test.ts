/** Speech and lists over the HTTP API of ElevenLabs. */
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { sumOf } from '../../scripts/rig/exposition.js';
import { startService, until } from '../support/service.js';

const service = await startService(t, {
  SYNTHESIS_THREADS: '1',
  ELEVENLABS_PORT: '0',
  ELEVENLABS_VOICES: '21m00Tcm4TlvDq8ikWAM=lark,anna=nosuch',
  CREDITS_PER_CHARACTER: '2',
});
const base = `http://127.0.0.1:${service.dialectPorts['elevenlabs']}`;
const [key = '', brokeKey = '', richKey = ''] = await createKeys(service.dataDir, [
  ['clients', 20_000],
  ['broke', 0],
  ['rich', 20_000_000],
]);

const get = (path: string, headers: Record<string, string> = { 'xi-api-key': key }) =>
  fetch(base + path, { headers });

const speak = (path: string, body: unknown, headers: Record<string, string> = { 'xi-api-key': key }) =>
  fetch(`${base}/v1/text-to-speech/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const text = 'Good morning.  The "kettle" is on —\nand the 👋 paper is at the door!\n';

interface Alignment {
  readonly characters: string[];
  readonly character_start_times_seconds: number[];
  readonly character_end_times_seconds: number[];
}
interface Timed {
  readonly audio_base64: string;
  readonly alignment: Alignment | null;
  readonly normalized_alignment: Alignment | null;
}

const checkTimes = (t: Test, alignments: readonly Alignment[], seconds: number): void => {
  t.equal(alignments.flatMap(({ characters }) => characters).join(''), text);
  let last = 0;
  for (const { character_start_times_seconds: starts, character_end_times_seconds: ends } of alignments)
    starts.forEach((start, index) => {
      if (start < last || ends[index]! < start) t.fail(`${start} to ${ends[index]} after ${last}`);
      last = ends[index]!;
    });
  t.ok(last > seconds / 2 && last <= seconds + 0.001, `${last} of ${seconds} s`);
};

t.test('every format of the service has its content type, and others are refused', async (t) => {
  const of = (type: string, prefix: string, names: string) =>
    Object.fromEntries(names.split(' ').map((name) => [prefix + name, type]));
  const wanted = {
    '': 'audio/mpeg',
    ...of('audio/mpeg', 'mp3_', '22050_32 24000_48 44100_32 44100_64 44100_96 44100_128 44100_192'),
    ...of('audio/pcm', 'pcm_', '8000 16000 22050 24000 32000 44100 48000'),
    ...of('audio/ogg', 'opus_48000_', '32 64 96 128 192'),
    ulaw_8000: 'audio/basic',
    alaw_8000: 'audio/basic',
    wav_24000: 'audio/wav',
  };
  for (const [format, type] of Object.entries(wanted)) {
    const query = format === '' ? '' : `?output_format=${format}`;
    const answer = await speak(`wren/stream${query}`, { text: 'Hello there.', model_id: 'eleven_v3' });
    t.equal(answer.status, 200, format);
    t.equal(answer.headers.get('content-type'), type);
    t.ok((await answer.arrayBuffer()).byteLength > 2_000, format);
  }
  for (const format of ['mp3_1_1', 'aac_44100', 'pcm_96000', 'ulaw_16000']) {
    const answer = await speak(`wren?output_format=${format}`, { text: 'Hello there.' });
    t.equal(answer.status, 422, format);
    t.match(await answer.json(), { detail: [{ loc: ['query', 'output_format'], msg: new RegExp(format) }] });
  }
});

t.test('a voice of another service is one of ours by configuration; speed makes it faster', async (t) => {
  const pcm = async (body: object): Promise<number> =>
    (await (await speak('21m00Tcm4TlvDq8ikWAM?output_format=pcm_16000', body)).arrayBuffer()).byteLength;
  const slow = await pcm({
    text: 'The kettle is on, and the paper is at the door.',
    voice_settings: { speed: 0.7, stability: 1 },
  });
  const fast = await pcm({
    text: 'The kettle is on, and the paper is at the door.',
    voice_settings: { speed: 1.2 },
    seed: 4,
  });
  t.ok(slow > fast * 1.2, `${slow} and ${fast} bytes`);
  t.ok((await pcm({ text: ' ', voice_settings: null })) > 0, 'blank text is a short silence');
});

t.test(
  'the ids of its own voices speak, and a start warns of names whose voice does not exist',
  async (t) => {
    for (const id of ['JBFqnCBsd6RMkjVDRZzb', 'bIHbv24MWmeRgasZH58o', 'pNInz6obpgDQGcFmaJgB'])
      t.equal((await speak(id, { text: 'Hello.' })).status, 200, id);
    t.equal((await speak('anna', { text: 'Hello.' })).status, 404);
    t.match(service.logged('there is no voice "nosuch": requests for "anna" are refused'), [
      { ELEVENLABS_VOICES: 'anna=nosuch' },
    ]);
  },
);

t.test('a wav of a short text has its true sizes', async (t) => {
  const file = Buffer.from(
    await (await speak('wren/stream?output_format=wav_24000', { text: 'Hello there.' })).arrayBuffer(),
  );
  t.strictSame([file.readUInt32LE(4), file.readUInt32LE(40)], [file.length - 8, file.length - 44]);
});

t.test('with-timestamps returns the text character by character, with times in order', async (t) => {
  const answer = await speak('wren/with-timestamps?output_format=pcm_24000', { text });
  t.equal(answer.headers.get('content-type'), 'application/json');
  const { alignment, audio_base64, normalized_alignment } = (await answer.json()) as Timed;
  checkTimes(t, [alignment!], Buffer.from(audio_base64, 'base64').length / 48_000);
  t.strictSame(normalized_alignment, alignment);
});

t.test('stream/with-timestamps returns the same in lines of JSON', async (t) => {
  const answer = await speak('wren/stream/with-timestamps?output_format=pcm_24000', { text });
  const lines = (await answer.text()).trimEnd().split('\n');
  t.ok(lines.length > 5, `${lines.length} lines`);
  const records = lines.map((line) => JSON.parse(line) as Timed);
  const bytes = records.reduce(
    (sum, { audio_base64 }) => sum + Buffer.from(audio_base64, 'base64').length,
    0,
  );
  checkTimes(
    t,
    records.flatMap(({ alignment }) => alignment ?? []),
    bytes / 48_000,
  );
});

t.test('white space without end is reported as a little of it', async (t) => {
  const spaces = ' '.repeat(1_000_000);
  for (const long of [`Hi.${spaces}`, `Hi${spaces.slice(3_000)}.`, `${spaces}Hi.`])
    for (const path of ['wren/with-timestamps', 'wren/stream/with-timestamps']) {
      const answer = await speak(path, { text: long }, { 'xi-api-key': richKey });
      t.equal(answer.status, 200);
      const lines = (await answer.text()).trimEnd().split('\n');
      const reported = lines.flatMap((line) => (JSON.parse(line) as Timed).alignment?.characters ?? []);
      t.ok(reported.length < 600, `${path}: ${reported.length} characters`);
      t.equal(reported.join('').replaceAll(' ', ''), 'Hi.');
    }
});

t.test('the lists name voices and models, and the subscription counts what is spoken', async (t) => {
  t.match(await (await get('/v1/voices')).json(), {
    voices: [{ voice_id: 'wren', name: 'wren', category: 'premade' }],
  });
  t.match(await (await get('/v2/voices?page_size=1&search=lark')).json(), {
    voices: [{ voice_id: 'lark' }, { voice_id: 'lark_conv' }],
    has_more: false,
    total_count: 2,
    next_page_token: null,
  });
  t.match(await (await get('/v1/models')).json(), [
    { model_id: 'eleven_flash_v2_5', languages: [{ language_id: 'en', name: 'English' }] },
  ]);
  for (const [id, name] of [
    ['wren', 'wren'],
    ['21m00Tcm4TlvDq8ikWAM', 'lark'],
    ['pNInz6obpgDQGcFmaJgB', 'heron'],
  ])
    t.match(await (await get(`/v1/voices/${id}`)).json(), { voice_id: id, name, category: 'premade' });
  for (const path of ['wren/settings', 'settings/default', 'pNInz6obpgDQGcFmaJgB/settings'])
    t.match(await (await get(`/v1/voices/${path}`)).json(), { stability: Number, speed: 1 }, path);
  for (const path of ['nobody', 'nobody/settings', 'anna'])
    t.match(await (await get(`/v1/voices/${path}`)).json(), { detail: { status: 'voice_not_found' } }, path);
  t.match(await (await get('/v1/user')).json(), {
    user_id: String,
    subscription: await (await get('/v1/user/subscription')).json(),
    is_new_user: false,
  });
  const left = async () =>
    (await (await get('/v1/user/subscription')).json()) as {
      character_count: number;
      character_limit: number;
    };
  const before = await left();
  t.equal(before.character_limit, 10_000, 'half as many characters as credits');
  await (await speak('wren', { text: 'Ten chars.' })).arrayBuffer();
  t.ok(await until(async () => (await left()).character_count === before.character_count + 10));
  t.equal((await left()).character_limit, 10_000);
});

t.test('errors are in the shape of this API', async (t) => {
  const detail = async (answer: Promise<Response>): Promise<unknown> => {
    const response = await answer;
    t.ok(response.headers.get('x-request-id'));
    const { detail } = (await response.json()) as { detail: { status: string; message: string } };
    t.ok(detail.message);
    return [response.status, detail.status];
  };
  const body = { text: 'Hello.' };
  const unknown = 'svc_sk_unknown';
  for (const headers of [
    { 'x-api-key': key, 'xi-api-key': unknown, authorization: `Bearer ${unknown}` },
    { 'xi-api-key': key, authorization: `Bearer ${unknown}` },
  ])
    t.equal((await speak('wren', body, headers)).status, 200, 'as the proxies read them');
  const otherFirst = { 'x-api-key': unknown, 'xi-api-key': key, authorization: `Bearer ${key}` };
  t.same(await detail(speak('wren', body, otherFirst)), [401, 'invalid_api_key']);
  t.same(await detail(speak('wren', body, {})), [401, 'needs_authorization']);
  for (const wrong of ['svc_sk_unknown', 'sk_other', 'abc'])
    for (const path of ['/v1/voices', '/v1/voices/wren', '/v1/user'])
      t.same(await detail(get(path, { 'xi-api-key': wrong })), [401, 'invalid_api_key'], wrong);
  t.same(await detail(speak('wren', body, { 'xi-api-key': 'sk_other' })), [401, 'invalid_api_key']);
  t.same(await detail(speak('wren', body, { 'xi-api-key': brokeKey })), [402, 'quota_exceeded']);
  t.same(await detail(speak('nobody', body)), [404, 'voice_not_found']);
  t.same(await detail(get('/v1/speech-to-text')), [404, 'not_found']);
  t.same(await detail(get('/v1/text-to-speech/wren')), [405, 'method_not_allowed']);
  const invalid = await speak('wren', { text: 5, voice_settings: { speed: 'x' } });
  t.equal(invalid.status, 422);
  t.match(await invalid.json(), {
    detail: [{ loc: ['body', 'text'] }, { loc: ['body', 'voice_settings', 'speed'] }],
  });
  t.equal((await speak('wren', body, { authorization: `Bearer ${key}` })).status, 200, 'the common header');
});

t.test('metrics and the log name its routes, and the public port does not have them', async (t) => {
  const route = 'elevenlabs:/v1/text-to-speech/:voice';
  t.equal(await service.metric('syrinx_requests_total', { route, status: '402' }), 1);
  const samples = await service.metrics();
  for (const path of ['stream', 'multi-stream-input'])
    t.equal(
      sumOf(samples, 'syrinx_streams', { route: `${route}/${path}` }),
      0,
      'a series before its first stream',
    );
  t.ok(await until(() => service.entries.some((entry) => entry['route'] === 'elevenlabs:/v2/voices')));
  t.equal((await service.get('/v1/voices')).status, 404, 'the public port stays as it is');
});
