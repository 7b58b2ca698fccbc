/** The parts of a soak that decide: its clients, what an underrun is, what grows, how long its phases are. */
import t from 'tap';
import { UsageError } from '../../scripts/command.js';
import { Playback } from '../../scripts/rig/playback.js';
import type { LoadTick } from '../../scripts/soak/measures.js';
import { trendOf, troughs } from '../../scripts/soak/memory.js';
import { Meter } from '../../scripts/soak/meter.js';
import { readOptions } from '../../scripts/soak/options.js';
import { calibrate, troubleOf } from '../../scripts/soak/phases.js';
import { judgeDry } from '../../scripts/soak/plausible.js';
import {
  clientsPerKey,
  drawAssistant,
  drawHttp,
  drawIdlePauseMs,
  drawLife,
  drawOpenAi,
  httpKeysNeeded,
  isTidy,
  keyOfClient,
  keyOfHttpClient,
  keysNeeded,
  lifeEndings,
  wrongFrames,
} from '../../scripts/soak/population.js';

const livesOf = (seed: number, clients: number, lives: number) =>
  Array.from({ length: clients * lives }, (_, i) => ({
    client: i % clients,
    plan: drawLife(seed, i % clients, Math.floor(i / clients)),
  }));

void t.test('the same seed gives the same population, another seed another one', (t) => {
  t.same(livesOf(7, 2, 2), livesOf(7, 2, 2));
  t.notSame(livesOf(7, 2, 2), livesOf(8, 2, 2));
  t.same(drawHttp(7, 1, 2), drawHttp(7, 1, 2));
  t.notSame(drawHttp(7, 1, 2), drawHttp(7, 1, 3));
  t.same(drawOpenAi(7, 1, 2), drawOpenAi(7, 1, 2));
  t.same(drawAssistant(7, 1, 2), drawAssistant(7, 1, 2));
  t.notSame(drawAssistant(7, 1, 2), drawAssistant(7, 1, 3));
  t.equal(drawIdlePauseMs(7, 1, 2), drawIdlePauseMs(7, 1, 2));
  t.not(drawIdlePauseMs(7, 1, 2), drawIdlePauseMs(7, 2, 2));
  t.end();
});

void t.test('a population has every kind of client, context and request', (t) => {
  const lives = livesOf(1, 100, 10).map(({ plan }) => plan);
  const contexts = lives.flatMap((life) => life.contexts);
  const replies = contexts.flatMap((context) => context.replies);
  const kinds = <T>(values: readonly T[]) => [...new Set(values)].sort();
  t.same(kinds(lives.map(({ reader }) => reader)), ['eager', 'paced', 'slow', 'stalling']);
  t.same(kinds(lives.map(({ ending }) => ending)), [...lifeEndings].sort());
  t.same(kinds(lives.map(({ vanishes }) => vanishes)), [false, true]);
  t.same(
    kinds(lives.flatMap(({ wrong }) => wrong.filter((frame) => frame !== null))),
    [...wrongFrames].sort(),
  );
  t.same(kinds(contexts.map(({ format }) => format.encoding)), [
    'alaw',
    'linear16',
    'mp3',
    'mulaw',
    'opus',
    'pcm',
    'wav',
  ]);
  t.same(kinds(contexts.map(({ ending }) => ending)), ['cancel', 'close', 'close-unflushed']);
  t.same(kinds(replies.map(({ flushes }) => flushes)), ['reply', 'sentence']);
  t.ok(replies.every(({ text }) => text.endsWith('.') && !text.includes('  ')));
  const requests = Array.from({ length: 500 }, (_, i) => drawHttp(1, i % 10, i));
  t.same(kinds(requests.map(({ route }) => route)), ['stream', 'webhook', 'whole']);
  t.equal(kinds(requests.map(({ wrong }) => String(wrong))).length, 4);
  t.ok(requests.some(({ abortAfterMs }) => abortAfterMs !== null));
  const openAi = Array.from({ length: 500 }, (_, i) => drawOpenAi(1, i % 10, i));
  t.same(kinds(openAi.map(({ route }) => route)), ['openai', 'openai-events']);
  t.same(kinds(openAi.map(({ format }) => format.encoding)), ['aac', 'mp3', 'opus', 'pcm', 'wav']);
  t.equal(kinds(openAi.map(({ wrong }) => String(wrong))).length, 4);
  const assistants = Array.from({ length: 100 }, (_, i) => drawAssistant(1, i % 10, i));
  t.same(kinds(assistants.map(({ vanishesAfterMs }) => vanishesAfterMs !== null)), [false, true]);
  const said = assistants.flatMap(({ texts }) => texts);
  t.same(kinds(said.map(({ wordsPerSecond }) => wordsPerSecond !== null)), [false, true]);
  t.end();
});

void t.test(
  'everything that a tidy client sends is spoken, and it shares its key with tidy clients only',
  (t) => {
    for (const { client, plan } of livesOf(3, 40, 20))
      if (isTidy(client))
        t.ok(!plan.vanishes && plan.contexts.every(({ ending }) => ending !== 'cancel'), `client ${client}`);
    const sockets = Array.from({ length: keysNeeded(40) }, (_, i) => `s${i}`);
    const http = Array.from({ length: httpKeysNeeded(9) }, (_, i) => `h${i}`);
    const keys = { sockets, http, idle: 'idle', isShared: false };
    const users = Map.groupBy(
      Array.from({ length: 40 }, (_, client) => client),
      (client) => keyOfClient(keys, client),
    );
    for (const clients of users.values()) {
      t.equal(new Set(clients.map(isTidy)).size, 1, 'tidy and untidy do not share a key');
      t.ok(clients.length <= 9, 'a key has a slot for each of its clients');
    }
    t.ok(
      Array.from({ length: 9 }, (_, client) => keyOfHttpClient(keys, client)).every((key) =>
        http.includes(key),
      ),
    );
    t.end();
  },
);

void t.test('clients share the keys of a running service evenly', (t) => {
  for (const [keyCount, contexts, streams] of [
    [1, 5, 1],
    [3, 12, 6],
    [4, 16, 8],
    [10, 48, 12],
  ] as const) {
    const shared = Array.from({ length: keyCount }, (_, i) => `k${i}`);
    const keys = { sockets: shared, http: shared, idle: shared[0]!, isShared: true };
    const used = [
      ...Array.from({ length: contexts }, (_, client) => keyOfClient(keys, client)),
      ...Array.from({ length: streams }, (_, client) => keyOfHttpClient(keys, client)),
    ];
    const most = Math.max(...shared.map((key) => used.filter((other) => other === key).length));
    t.ok(most <= clientsPerKey + 1, `${most} clients of a key, which has nine slots`);
  }
  t.end();
});

void t.test('a listener that has heard everything is dry until more audio comes', (t) => {
  const playback = new Playback();
  playback.begin(900);
  t.equal(playback.audio(0, 950), null, 'a chunk without audio is none');
  t.same(playback.audio(100, 1_000), { kind: 'first', waitedMs: 100 }, 'first audio is played at once');
  t.equal(playback.audio(300, 1_050), null);
  t.equal(playback.aheadMs(1_100), 200);
  t.same(playback.audio(500, 1_450), { kind: 'dry', sinceMs: 1_300, waitedMs: 150 });
  t.equal(playback.aheadMs(1_450), 200, 'late audio is played when it comes');
  t.equal(playback.audio(500, 1_800), null, 'a chunk without audio is none');
  playback.begin(1_800);
  t.equal(playback.aheadMs(1_800), 0, 'a new stream has no audio yet');
  t.same(playback.audio(50, 9_000), { kind: 'first', waitedMs: 7_200 });
  t.equal(playback.audioMs, 550);
  t.same([playback.firstAudioMsMax, playback.dryMsMax], [7_200, 150], 'the longest waits');
  playback.tick(9_250);
  t.equal(playback.dryMsMax, 200, 'a wait that has not ended counts');
  playback.end();
  playback.tick(99_000);
  t.equal(playback.dryMsMax, 200, 'after the end there is no wait');
  t.end();
});

void t.test('a gap is an underrun only when the text was there and the client was in time', (t) => {
  const dry = { sinceMs: 1_000, untilMs: 1_300, textCompleteMs: 0, clientLateMs: 0 };
  t.same(judgeDry(dry), { kind: 'underrun', lateMs: 300 });
  const kind = (fields: object) => judgeDry({ ...dry, ...fields }).kind;
  t.equal(kind({ untilMs: 1_015 }), 'none', 'shorter than anyone hears');
  t.equal(kind({ textCompleteMs: null }), 'early', 'the text is not complete');
  t.equal(kind({ textCompleteMs: 1_150 }), 'early', 'it has only just been sent');
  t.equal(kind({ clientLateMs: 290 }), 'unjudged', 'the client itself was late by as much');
  t.equal(kind({ clientLateMs: 100 }), 'underrun', 'it was late, but not by as much');
  t.end();
});

void t.test('a trend is found among noise, and garbage does not count as growth', (t) => {
  const hour = 3_600_000;
  const points = Array.from({ length: 720 }, (_, i) => ({
    atMs: (i * hour) / 720,
    value: 300 + (i * 5) / 720 + (i % 2 === 0 ? 1 : -1),
  }));
  const trend = trendOf(points);
  t.ok(trend !== null && Math.abs(trend.slopePerHour - 5) < 0.2);
  t.ok(trend !== null && trend.standardErrorPerHour < 0.3);
  // Collected once a minute, after a growth that varies.
  const sawtooth = points.map(({ atMs }, i) => ({ atMs, value: 300 + ((i % 12) * i) / 100 }));
  t.ok((trendOf(sawtooth)?.slopePerHour ?? 0) > 10);
  t.equal(trendOf(troughs(sawtooth, 60_000))?.slopePerHour, 0);
  t.equal(trendOf(points.slice(0, 2)), null);
  t.end();
});

void t.test('what is late while another program takes the cores is not judged', (t) => {
  const reported: string[] = [];
  const meter = new Meter(performance.now(), ({ kind }) => reported.push(kind));
  const reply = { isSpoilt: false };
  meter.isDisturbed = true;
  meter.dry('x', { kind: 'underrun', lateMs: 400 }, reply);
  meter.heardFirst('x', 400, reply);
  t.same([meter.underruns, meter.unjudged, meter.spoilt, meter.heard], [0, 1, 0, 1]);
  t.equal(meter.firstAudio.quantiles().count, 0);
  t.same(reported, []);
  meter.isDisturbed = false;
  meter.dry('x', { kind: 'underrun', lateMs: 400 }, reply);
  meter.heardFirst('x', 400, reply);
  t.same([meter.underruns, meter.unjudged, meter.spoilt, meter.heard], [1, 1, 1, 2]);
  t.equal(meter.firstAudio.quantiles().count, 1);
  t.end();
});

const quiet = { p50: 1, p95: 1, p99: 1, max: 1, count: 9 };
const tick = (fields: Partial<LoadTick>) =>
  ({ underruns: 0, refusals: 0, firstAudioMs: quiet, loopLateMs: quiet, ...fields }) as LoadTick;

void t.test(
  'a noisy moment is no limit, and a machine that does not hold the first number is tried with less',
  async (t) => {
    const held = async (capacity: number, noisy = -1) => {
      const tried: number[] = [];
      const found = await calibrate({
        ...{ max: 1_000, share: 0.9, onStep: () => undefined },
        populate: async (contexts) => void tried.push(contexts),
        look: async () => {
          const isNoisy = tried.indexOf(noisy) === tried.length - 1;
          return [tick({ underruns: isNoisy || tried.at(-1)! > capacity ? 3 : 0 })];
        },
      });
      t.equal(found.contexts, Math.max(1, Math.floor(found.held * 0.9)));
      return [found.held, found.trouble];
    };
    t.same(await held(50), [47, '3 underruns']);
    t.same(await held(50, 23), [47, '3 underruns']);
    t.same(await held(5), [5, '3 underruns']);
    t.match(troubleOf([tick({ firstAudioMs: { ...quiet, p99: 500 } })]), /first audio/);
    t.match(troubleOf([tick({ loopLateMs: { ...quiet, p99: 500 } })]), /late/);
    t.equal(troubleOf([tick({ refusals: 1 })]), '1 refused');
  },
);

void t.test('a wrong command line is refused with the name of the option', (t) => {
  for (const [args, message] of [
    [['--share', '0.9', '--contexts', '4'], /--contexts/],
    [['--url', 'http://a', '--key', 'k'], /9 clients, and a key serves 6/],
    [['--url', 'http://a', '--key', 'k,l', '--contexts', '9', '--streams', '4'], /13 clients/],
    [
      [
        '--url',
        'http://a',
        '--key',
        'k',
        '--ops-url',
        'http://b',
        '--minutes',
        '25',
        '--contexts',
        '5',
        '--streams',
        '1',
      ],
      /9 clients at most/,
    ],
    [['--load', '0.8', '--share', '0.4'], /--load goes without --share and --url/],
  ] as const)
    t.throws(() => readOptions(args), Object.assign(new UsageError(), { message }), args.join(' '));
  t.match(readOptions(['--load', '0.8', '--contexts', '50']), { load: 0.8, contexts: 50 });
  const options = readOptions(['--url', 'http://127.0.0.1:9', '--key', 'a, b', '--ops-url', 'http://x:1/']);
  t.same(options?.remote?.keys, ['a', 'b']);
  t.equal(options?.remote?.opsUrl, 'http://x:1');
  t.end();
});
