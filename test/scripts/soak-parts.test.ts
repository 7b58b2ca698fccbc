/** The parts of a soak that decide: its clients, what an underrun is, what grows, how long its phases are. */
import t from 'tap';
import { UsageError } from '../../scripts/command.js';
import { parseSamples, sumOf } from '../../scripts/rig/exposition.js';
import { LoopClock } from '../../scripts/rig/loop-clock.js';
import { Playback, ReadAhead } from '../../scripts/rig/playback.js';
import type { LoadTick } from '../../scripts/soak/measures.js';
import { memoryBars, trendOf, troughs } from '../../scripts/soak/memory.js';
import { faultsReportedMax, Meter } from '../../scripts/soak/meter.js';
import { readOptions } from '../../scripts/soak/options.js';
import {
  calibrate,
  calibration,
  defaultWarmUpMinutes,
  minutesToJudgeMemory,
  phasesOf,
  settle,
  troubleOf,
} from '../../scripts/soak/phases.js';
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
  t.same(livesOf(7, 5, 5), livesOf(7, 5, 5));
  t.notSame(livesOf(7, 5, 5), livesOf(8, 5, 5));
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

void t.test('a listener with enough to hear does not read on until it has little', (t) => {
  const calls: string[] = [];
  const readAhead = new ReadAhead(
    { pause: () => void calls.push('pause'), resume: () => void calls.push('resume') },
    500,
    1_000,
  );
  for (const aheadMs of [0, 900, 1_100, 1_200, 700, 400, 300]) readAhead.update(aheadMs);
  t.same(calls, ['pause', 'resume']);
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

void t.test('a loop clock knows the greatest lateness since a moment', (t) => {
  const clock = new LoopClock(20, 0);
  for (const ms of [20, 40, 160, 180]) clock.tick(ms);
  t.equal(clock.latenessMs(100, 185), 100);
  t.equal(clock.latenessMs(170, 185), 0);
  t.equal(clock.latenessMs(170, 400), 200, 'a tick that is still to come counts');
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

void t.test('samples of metrics are summed by name and labels', (t) => {
  const samples = parseSamples(
    '# HELP a b\na{kind="x",path="q\\"}"} 1\na{kind="y"} 2.5e1 1700000000000\nb +Inf\n\nnonsense\n',
  );
  t.equal(sumOf(samples, 'a'), 26);
  t.equal(sumOf(samples, 'a', { kind: 'y' }), 25);
  t.equal(sumOf(samples, 'b'), Infinity);
  t.equal(sumOf(samples, 'c'), null);
  t.end();
});

void t.test('all faults are counted, and the first of each kind reported', (t) => {
  const reported: string[] = [];
  const meter = new Meter(performance.now(), ({ kind }) => reported.push(kind));
  for (let i = 0; i < 100; i++) meter.fault('words', 'x', 'lost');
  meter.fault('frames', 'x', 'wrong');
  meter.reset();
  t.equal(meter.faults.words, 100, 'a reset forgets none');
  t.equal(reported.filter((kind) => kind === 'words').length, faultsReportedMax);
  t.equal(reported.filter((kind) => kind === 'frames').length, 1);
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
  ({ underruns: 0, firstAudioMs: quiet, loopLateMs: quiet, ...fields }) as LoadTick;

void t.test(
  'calibration uses a part of the last number that held, and one noisy moment is no limit',
  async (t) => {
    const tried: number[] = [];
    let noise = 1;
    const found = await calibrate({
      max: 1_000,
      share: 0.9,
      populate: async (contexts) => void tried.push(contexts),
      look: async () => {
        const isNoisy = tried.length === 2 && noise-- > 0;
        return [tick({ underruns: isNoisy || tried.at(-1)! > 50 ? 3 : 0 })];
      },
      onStep: () => undefined,
    });
    t.equal(found.held, tried.at(-2));
    t.ok(found.held > 30 && found.held <= 50);
    t.equal(found.contexts, Math.floor(found.held * 0.9));
    t.equal(found.trouble, '3 underruns');
    let small = 0;
    const weak = await calibrate({
      max: 1_000,
      share: 0.1,
      populate: async (contexts) => void (small = contexts),
      look: async () => [tick({ underruns: small > 5 ? 1 : 0 })],
      onStep: () => undefined,
    });
    t.equal(weak.held, 4, 'a machine that does not hold the first number is tried with less');
    t.equal(weak.contexts, 1, 'a part of little is one');
    t.equal(troubleOf([tick({})]), null);
    t.match(troubleOf([tick({ firstAudioMs: { ...quiet, p99: 500 } })]), /first audio/);
    t.match(troubleOf([tick({ loopLateMs: { ...quiet, p99: 500 } })]), /late/);
  },
);

void t.test('measuring begins when the load of the calibration has settled, or after a while', async (t) => {
  let looks = 0;
  t.equal(await settle(async () => [tick({ underruns: ++looks < 4 ? 2 : 0 })]), null);
  t.equal(looks, 4);
  looks = 0;
  t.equal(await settle(async () => [tick({ underruns: ++looks })]), '15 underruns', 'and says what is left');
  t.equal(looks, calibration.settlesMax);
});

void t.test('a wrong command line is refused with the name of the option', (t) => {
  for (const [args, message] of [
    [['--minutes', 'soon'], /--minutes/],
    [['--warm-up=-1'], /--warm-up is a number from 0/],
    [['--minutes', '0'], /--minutes/],
    [['--sockets', '1.5'], /--sockets/],
    [['--contexts', '-1'], /contexts/],
    [['--share', '0'], /--share/],
    [['--share', '0.9', '--contexts', '4'], /--contexts/],
    [['--key', 'k'], /--url/],
    [['--url', 'http://a'], /--key/],
    [['--url', 'https://a', '--key', 'k'], /http:/],
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
    [['--load', '21'], /--load is a number from 0.05 to 20/],
    [['--nothing'], /nothing/],
    [['extra'], /extra/],
  ] as const)
    t.throws(() => readOptions(args), Object.assign(new UsageError(), { message }), args.join(' '));
  t.equal(readOptions([])?.share, calibration.share);
  t.equal(readOptions([])?.warmUpMinutes, null);
  t.equal(readOptions(['--warm-up', '0'])?.warmUpMinutes, 0);
  t.equal(readOptions(['--share', '0.95'])?.share, 0.95);
  t.match(readOptions([]), { load: null });
  t.match(readOptions(['--load', '0.8', '--contexts', '50']), { load: 0.8, contexts: 50 });
  const options = readOptions(['--url', 'http://127.0.0.1:9', '--key', 'a, b', '--ops-url', 'http://x:1/']);
  t.same(options?.remote?.keys, ['a', 'b']);
  t.equal(options?.remote?.opsUrl, 'http://x:1');
  t.end();
});

void t.test('a soak that judges memory has a warm-up and rests; others have what was asked for', (t) => {
  const nothingElse = { warmUpMinutes: null, rests: null };
  const none = { isMemoryJudged: false, surge: null, warmUpMs: 0, rests: 0 };
  t.same(phasesOf({ minutes: minutesToJudgeMemory - 1, ...nothingElse }, 'at rest'), none);
  t.same(phasesOf({ minutes: 600, ...nothingElse }, 'nowhere'), none);
  t.same(phasesOf({ minutes: 1, warmUpMinutes: 2, rests: 3 }, 'at rest'), {
    ...none,
    warmUpMs: 120_000,
    rests: 3,
  });
  const hour = phasesOf({ minutes: 60, ...nothingElse }, 'at rest');
  t.ok(hour.isMemoryJudged);
  t.equal(hour.warmUpMs, defaultWarmUpMinutes * 60_000);
  t.equal(hour.rests, 13, 'at its begin and end, and each five minutes');
  t.ok((hour.surge?.factor ?? 0) > 1);
  const elsewhere = phasesOf({ minutes: 60, ...nothingElse }, 'under load');
  t.same(elsewhere, { ...hour, rests: 0 }, 'by its metric, it is judged too');
  t.ok(phasesOf({ minutes: minutesToJudgeMemory, ...nothingElse }, 'at rest').rests >= memoryBars.restsMin);
  t.ok(phasesOf({ minutes: 10_000, ...nothingElse }, 'at rest').rests < 100);
  t.same(phasesOf({ minutes: 60, warmUpMinutes: 0, rests: 0 }, 'at rest'), {
    ...hour,
    warmUpMs: 0,
    rests: 0,
  });
  t.end();
});
