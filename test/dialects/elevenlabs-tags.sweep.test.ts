/** Tags in texts of the ElevenLabs API: a pause, phonemes, another form; the others are not spoken. */
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { ElevenLabsProtocol } from '../../src/dialects/elevenlabs/socket.js';
import { readTags, TagReader } from '../../src/dialects/elevenlabs/tags.js';
import { limits } from '../../src/limits.js';
import { check } from '../fuzz/check.js';
import { ElevenLabsClient, textOf } from '../support/elevenlabs-client.js';
import { balances } from '../store/support.js';
import { startService, until } from '../support/service.js';

/** Pauses as `[ms]`, forms as `{words=form}`. */
const shown = (pieces: ReturnType<typeof readTags>): string =>
  pieces
    .map(({ text, pauseMs, form }) => {
      const words =
        form === undefined ? text : `{${text}=${'ipa' in form ? `/${form.ipa}/` : form.spelling}}`;
      return (pauseMs === undefined ? '' : `[${pauseMs}]`) + words;
    })
    .join('');

const cases: readonly (readonly [text: string, wanted: string])[] = [
  ['Wait. <break time="1.5s"/> Go.', 'Wait.  [1500]Go.'],
  ["Wait <break time='300ms' />and go", 'Wait [300]and go'],
  ['Wait<break time="1s">and go</break>', 'Wait [1000]and go'],
  ['Wait <BREAK TIME=".5S"/> go', 'Wait  [500]go'],
  ['Wait <break time="9s"/> go', 'Wait  [3000]go'],
  ['Wait <break time="2s"/><break time="2s"/> go', 'Wait  [3000]go'],
  ['Wait <break/> go', 'Wait  go'],
  ['Wait <break time="soon"/> go', 'Wait  go'],
  ['<break time="1s"/>Go', '[1000]Go'],
  ['Go. <break time="1s"/>', 'Go. [1000]'],
  ['<break time="1s"/> ', ' '],
  ['A <phoneme alphabet="ipa" ph="təˈmɑːtoʊ">tomato</phoneme>.', 'A {tomato=/təˈmɑːtoʊ/}.'],
  ['A <phoneme ph=\'nˈaɪs\' alphabet="IPA">nice</phoneme> day', 'A {nice=/nˈaɪs/} day'],
  ['A <phoneme alphabet="cmu-arpabet" ph="N AY1 S">nice</phoneme> day', 'A nice day'],
  ['A <phoneme alphabet="ipa" ph="№№">nice</phoneme> day', 'A nice day'],
  ['A <phoneme alphabet="ipa" ph="nˈaɪs"/>nice day', 'A nice day'],
  ['The <sub alias="World Wide Web Consortium">W3C</sub> met.', 'The {W3C=World Wide Web Consortium} met.'],
  ['<sub alias="Tom &amp; Anna">T&A</sub>', '{T&A=Tom & Anna}'],
  ['<sub alias="">x</sub> <sub>y</sub> <sub alias="z"> </sub>', 'x y  '],
  ['<sub alias="a"><b>x</b></sub>', '{x=a}'],
  ['<sub alias="a">x', 'x'],
  ['<sub alias="a">x</phoneme> y', 'x y'],
  ['<sub alias="one"><sub alias="two">x</sub> y</sub>', '{x=two} y'],
  [`<sub alias="${'word '.repeat(40)}">x</sub>`, 'x'],
  ['<sub alias="seventeen letters">𝐱</sub> <sub alias="sixteen letter s">𝐱</sub>', '𝐱 {𝐱=sixteen letter s}'],
  ['<speak><p>One.</p><p>Two.</p></speak>', 'One. Two.'],
  ['<prosody rate="slow">un</prosody>seen <emphasis level="strong">now</emphasis>', 'unseen now'],
  ['One<!-- two --> <?xml version="1.0"?>three', 'One three'],
  ['a < b, 3<4, <3 and <> or x <- y', 'a < b, 3<4, <3 and <> or x <- y'],
  ['a <b', 'a <b'],
  ['he said "<i>no</i>"', 'he said "no"'],
  ['<a href="x>y">link</a>', 'link'],
  ['fish &amp; chips', 'fish &amp; chips'],
  ['<sub alias="one two three four">q</sub>', 'q'],
  [`<b ${'x'.repeat(2_000)}>`, `<b ${'x'.repeat(2_000)}>`],
  [`<b ${'x'.repeat(2_000)}`, `<b ${'x'.repeat(2_000)}`],
];

// Before the first test: tap ends a file whose tests are over.
const service = await startService(t, { ELEVENLABS_PORT: '0' });
const port = service.dialectPorts['elevenlabs'];
const [key = ''] = await createKeys(service.dataDir, [['clients', 1_000_000]]);

t.test('what is kept of a text does not keep the tags that were dropped', (t) => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const kept: ReturnType<typeof readTags>[] = [];
  const usedBefore = (gc(), process.memoryUsage().heapUsed);
  for (let i = 0; i < 400; i++)
    kept.push(
      readTags(
        `${`<b n="${i}">`.repeat(500)}Some words that are said.<sub alias="words that are heard">x</sub>`,
      ),
    );
  gc();
  const bytes = process.memoryUsage().heapUsed - usedBefore;
  t.ok(bytes < 2 ** 20, `${bytes} bytes for ${kept.length} texts`);
  t.end();
});

t.test('tags mean what they mean there, and other text stays', (t) => {
  for (const [text, wanted] of cases) t.equal(shown(readTags(text)), wanted, text.slice(0, 80));
  t.end();
});

t.test('a text that is split anywhere is read alike', async (t) => {
  const text = fc.array(fc.constantFrom(...cases.map(([one]) => one).filter((one) => one.length < 200)), {
    minLength: 1,
    maxLength: 4,
  });
  await check(
    t,
    fc.property(text, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (texts, sizes) => {
      const whole = texts.join(' ');
      const reader = new TagReader();
      let split = '';
      for (let at = 0, i = 0; at < whole.length; i++) {
        const size = sizes[i % sizes.length]!;
        split += shown(reader.push(whole.slice(at, at + size)));
        at += size;
      }
      t.equal(split + shown(reader.end()), shown(readTags(whole)));
    }),
    300,
  );
});

t.test('a text that waits is bounded, and many tags take no long time', (t) => {
  const reader = new TagReader();
  t.equal(shown(reader.push('x <break ti')), 'x ');
  t.ok(reader.isWaiting);
  t.equal(shown(reader.push('y'.repeat(1_100))), `<break ti${'y'.repeat(1_100)}`);
  t.notOk(reader.isWaiting);
  t.equal(shown(reader.push('<sub alias="a">')), '');
  t.equal(shown(reader.push('z'.repeat(300))), 'z'.repeat(300));
  const start = process.cpuUsage();
  for (const one of ['<', '<a "', "<a '", '<b', '<sub alias="x">y', '<break time="1s"/>w ', '<!-', '<a "x" '])
    readTags(one.repeat(400_000 / one.length));
  const passed = process.cpuUsage(start).user / 1_000;
  t.ok(passed < 1_600, `3 MB in ${passed.toFixed(0)} ms`);
  t.end();
});

t.test('tags after the first 1,024 in a text are text, however short they are', (t) => {
  const times = 3_000;
  for (const [one, left] of [
    ['<p>a', 1_976],
    ['<sub alias="b">a</sub> ', 2_488],
    ['<<b>a', 2_488],
  ] as const)
    t.equal(shown(readTags(one.repeat(times))).split(one).length - 1, left, one);
  t.end();
});

t.test('a break alone between two flushes comes before the next words', (t) => {
  const reader = new TagReader();
  const flushed = (text: string) => shown([...reader.push(text), ...reader.end()]);
  t.equal(flushed('One.'), 'One.');
  t.equal(flushed('<break time="1s"/>'), '');
  t.equal(flushed('Two. <break time="2s"/>'), '[1000]Two. [2000]');
  t.equal(flushed('Three.'), 'Three.');
  t.end();
});

interface Timed {
  readonly audio_base64: string;
  readonly alignment: {
    readonly characters: string[];
    readonly character_start_times_seconds: number[];
    readonly character_end_times_seconds: number[];
  };
}

const post = (path: string, text: string) =>
  fetch(`http://127.0.0.1:${port}/v1/text-to-speech/wren${path}?output_format=pcm_16000`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'xi-api-key': key },
    body: JSON.stringify({ text }),
  });

/** Seconds of the longest stretch without sound, between sounds, at 16 kHz. */
const longestPause = (pcm: Buffer): number => {
  let longest = 0;
  let last = -1;
  for (let at = 0; at < pcm.length / 2; at++) {
    if (Math.abs(pcm.readInt16LE(2 * at)) < 60) continue;
    if (last >= 0) longest = Math.max(longest, (at - last) / 16_000);
    last = at;
  }
  return longest;
};

const tagged = 'The cat sat. <break time="1.5s"/> Then it <emphasis>ran</emphasis> home.';
const plain = 'The cat sat.  Then it ran home.';

const isPause = (t: Test, seconds: number, what: string): void => {
  t.ok(seconds > 1.5 && seconds < 2.1, `${what}: ${seconds.toFixed(2)} s without sound`);
};

t.test('a break is a pause over HTTP, and other tags are not spoken', async (t) => {
  for (const path of ['', '/stream']) {
    const pcm = Buffer.from(await (await post(path, tagged)).arrayBuffer());
    isPause(t, longestPause(pcm), path);
    t.ok(pcm.length / 32_000 < 6, `${pcm.length / 32_000} s`);
  }
  const usual = Buffer.from(await (await post('', plain)).arrayBuffer());
  t.ok(longestPause(usual) < 0.7, `without: ${longestPause(usual)} s`);
});

t.test('the times are those of the characters without tags', async (t) => {
  const { alignment, audio_base64 } = (await (await post('/with-timestamps', tagged)).json()) as Timed;
  t.equal(alignment.characters.join(''), plain);
  const pcm = Buffer.from(audio_base64, 'base64');
  const ends = alignment.character_end_times_seconds;
  const before = ends[plain.indexOf('.')]!;
  const after = alignment.character_start_times_seconds[plain.indexOf('T', 5)]!;
  t.ok(after - before > 1.5 && after - before < 2.1, `${before} to ${after} s`);
  t.ok(ends.at(-1)! <= pcm.length / 32_000 + 0.001);
  t.ok(ends.every((end, index) => index === 0 || end >= ends[index - 1]!));
});

t.test('phonemes and another form are spoken in the place of the words', async (t) => {
  const seconds = async (text: string) => {
    const { alignment } = (await (await post('/with-timestamps', text)).json()) as Timed;
    t.equal(alignment.characters.join(''), 'It is k now.');
    const at = alignment.characters.indexOf('k');
    return alignment.character_end_times_seconds[at]! - alignment.character_start_times_seconds[at]!;
  };
  const usual = await seconds('It is k now.');
  const alias = await seconds('It is <sub alias="one kilo of tea">k</sub> now.');
  const ipa = await seconds('It is <phoneme alphabet="ipa" ph="kˈɪloʊ ʌv tˈiː">k</phoneme> now.');
  t.ok(alias > 2 * usual && ipa > 2 * usual, `${usual}, ${alias} and ${ipa} s`);
});

t.test(
  'on a WebSocket tags may be split over messages, and what is no tag is spoken at the flush',
  async (t) => {
    const open = async (path: string) => {
      const client = await ElevenLabsClient.open(
        `ws://127.0.0.1:${port}/v1/text-to-speech/wren/${path}?output_format=pcm_16000&sync_alignment=true`,
        { 'xi-api-key': key },
      );
      if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
      t.teardown(() => client.close());
      return client;
    };
    const multi = await open('multi-stream-input');
    for (let at = 0; at < tagged.length; at += 3)
      multi.send({ text: tagged.slice(at, at + 3), context_id: 'a' });
    multi.send({ text: ' ', context_id: 'a', flush: true }, { context_id: 'a', close_context: true });
    await multi.until(() => multi.isFinal('a'));
    isPause(t, longestPause(multi.audio('a')), 'contexts');
    t.equal(textOf(multi.alignments('a')), `${plain} `);
    multi.send({ text: 'It is a <b', context_id: 'b' }, { text: '', context_id: 'b', flush: true });
    multi.send({ context_id: 'b', close_context: true });
    await multi.until(() => multi.isFinal('b'));
    t.equal(textOf(multi.alignments('b')), 'It is a <b ');
    t.notOk(multi.messages.some(({ error }) => error !== undefined));

    const single = await open('stream-input');
    single.send(
      { text: ' ' },
      { text: 'The cat sat. <break ' },
      { text: 'time="1.5s"/> Then it' },
      { text: ' ran home.' },
    );
    single.send({ text: '' });
    await single.untilClosed();
    t.equal(textOf(single.alignments(undefined)), `${plain} `);
    isPause(t, longestPause(single.audio(undefined)), 'one text');
    const cut = await open('stream-input');
    cut.send({ text: ' ' }, { text: 'It is a <b' }, { text: '' });
    await cut.untilClosed();
    t.equal(textOf(cut.alignments(undefined)), 'It is a <b ');
  },
);

t.test('text that is dropped gives back no credit of the text before it', async (t) => {
  const [halvesKey = ''] = await createKeys(service.dataDir, [['halves', 10_000]]);
  const client = await ElevenLabsClient.open(
    `ws://127.0.0.1:${port}/v1/text-to-speech/wren/multi-stream-input?output_format=pcm_16000`,
    { 'xi-api-key': halvesKey },
  );
  if (!(client instanceof ElevenLabsClient)) throw new Error(JSON.stringify(client));
  t.teardown(() => client.close());
  const spoken = 'The cat sat in the sun. '.repeat(20);
  const balance = () => balances(service.dataDir).find(({ name }) => name === 'halves')?.balance;
  // A mark divides each pair, and then a message divides some.
  const marked = ['\ud83d<sub alias="x">\ude00</sub>'.repeat(300)];
  const long = Array.from({ length: 10 }, () => `\ude00${'x'.repeat(600)}\ud83d`);
  for (const [place, texts] of [marked, long].entries()) {
    const context_id = String(place);
    client.send({ text: spoken, context_id, flush: true });
    client.send(...texts.map((text) => ({ text, context_id })), { context_id, close_context: true });
    await client.until(() => client.isFinal(context_id));
    const left = 10_000 - (place + 1) * spoken.length;
    await until(() => (balance() ?? 0) <= left);
    t.equal(balance(), left);
  }
});

t.test(
  'tags after the first 16,384 characters of tags in a text are text: more would hold the service',
  (t) => {
    const tag = '<break time="1s"/>';
    const count = 50_000;
    const pieces = readTags(`${tag}a`.repeat(count));
    const read = pieces.filter(({ pauseMs }) => pauseMs !== undefined).length;
    t.ok(Math.abs(read * tag.length - 16_384) <= tag.length, `${read} tags`);
    const text = pieces.map((piece) => piece.text).join('');
    t.equal(text.split(tag).length - 1, count - read, 'the others are spoken');
    t.ok(readTags(`${'<'.repeat(100_000)}${tag}a`).every(({ pauseMs }) => pauseMs === undefined));
    t.end();
  },
);

const multiProtocol = () =>
  new ElevenLabsProtocol(
    {
      voiceId: () => 'wren',
      format: { encoding: 'pcm', sampleRateHz: 16_000 },
      ...{ normalization: null, isMulti: true, isAuto: false, isSync: false, idleMsMax: null },
    },
    limits,
  );

t.test('contexts that were refused leave no tags behind', (t) => {
  const protocol = multiProtocol();
  for (let id = 0; id < 10 * limits.contextsPerSocketMax; id++)
    protocol.read(Buffer.from(JSON.stringify({ text: `${id} <b`, context_id: `c${id}` })), new Map());
  t.ok(Number(queryObjects(TagReader)) <= limits.contextsPerSocketMax, 'a reader for each context at most');
  t.same(protocol.read(Buffer.from('{"text": "a ", "context_id": "c1"}'), new Map()).at(-1), {
    ...{ type: 'text', contextId: 'c1', text: 'a ', pieces: [{ text: 'a ' }] },
  });
  t.end();
});

t.test('a tag that is split over messages is read beside many contexts that were refused', (t) => {
  const protocol = multiProtocol();
  const read = (text: string, contexts: Parameters<typeof protocol.read>[1] = new Map()) =>
    protocol.read(Buffer.from(JSON.stringify({ text, context_id: 'c' })), contexts);
  for (let id = 0; id < limits.contextsPerSocketMax; id++)
    protocol.read(Buffer.from(JSON.stringify({ text: 'x', context_id: `r${id}` })), new Map());
  read('One <break ti');
  const [text] = read('me="1s"/>two ', new Map([['c', { isOpen: true, isMidUtterance: true }]])).slice(-1);
  t.match(text, { type: 'text', text: 'two ', pieces: [{ text: 'two ', pauseMs: 1_000 }] });
  t.end();
});

t.test('a message with thousands of pieces is one text: credit is asked for once', (t) => {
  const protocol = multiProtocol();
  const text = '<sub alias="b">a</sub> '.repeat(500);
  const message = Buffer.from(JSON.stringify({ text, context_id: 'c', flush: true }));
  const acts = protocol.read(message, new Map());
  t.strictSame(
    acts.map(({ type }) => type),
    ['start', 'text', 'flush'],
  );
  const [piece] = acts.filter((act) => act.type === 'text');
  t.equal(piece?.text, 'a '.repeat(500));
  t.equal(piece?.pieces?.filter(({ form }) => form !== undefined).length, 500);
  t.end();
});

t.test("the specification's own endpoints speak tags as words", async (t) => {
  const words = async (text: string): Promise<string[]> => {
    const answer = await fetch(`${service.url}/v1/tts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify({ text, voice: 'wren', timestamps: true }),
    });
    return ((await answer.json()) as { timestamps: { words: string[] } }).timestamps.words;
  };
  t.strictSame(await words('A <break time="1s"/> b'), ['A', '<break', 'time="1s"/>', 'b']);
});
