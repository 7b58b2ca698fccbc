import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { errors } from '../src/errors.js';
import { Metrics, type Figures } from '../src/metrics.js';
import { EventLoopDelay, openFiles, openFilesMax, pssBytes } from '../src/process.js';
import { parseExposition } from './support/exposition.js';
import { packageRoot } from './support/package-root.js';
import { readSource } from './support/source-files.js';
import { missingTool } from './support/tools.js';
import { eventually } from './support/waiting.js';

const figures: Figures = {
  reasons: [],
  streams: new Map([['/v1/tts', 3]]),
  sockets: 5,
  contexts: 7,
  olderVoiceContexts: 17,
  voicePacksRefused: 0,
  voicePacks: { loaded: 4, loads: 3, loadMs: 150 },
  hungThreads: 19,
  gpuIsLost: true,
  bufferedBytes: 11_000,
  logLinesLost: 5,
  bufferedAudioMs: 1_500,
  capacityRatio: 0.25,
  freeCores: 2,
  speechCpu: new Map([['wren', 0.014]]),
  ledgerEntriesRefused: 23,
  ledgerEntriesQueued: 13,
  eventLoopDelay: (quantile) => quantile / 10,
  restarts: { synthesis: 1, actor: 2, ledger: 4, administration: 3 },
};

/** One sample of a scrape. */
const scrape = async (metrics: Metrics) => {
  const families = parseExposition(await metrics.text());
  return (series: string) =>
    families.get(series.replace(/(?:_(?:sum|count|bucket))?(?:\{.*)?$/, ''))?.samples.get(series);
};

t.test('pushed values come out in the text format of Prometheus', async (t) => {
  const metrics = new Metrics();
  metrics.firstAudio('byte', '/v1/tts/stream', 'pcm', 4);
  metrics.firstAudio('decoded', '/v1/tts/stream', 'pcm', 5);
  metrics.firstAudio('audible', '/v1/tts/stream', 'pcm', 60);
  metrics.segment(2, 100, 2_000);
  metrics.segment(-1, 50, null);
  metrics.speechIn('opus').inc(1.5);
  metrics.speechIn('opus').inc(0.25);
  metrics.playback(0);
  metrics.playback(5);
  metrics.playback(30);
  metrics.request('/v1/tts', 200);
  metrics.request('/v1/tts', null);
  metrics.refused('creditExhausted');
  metrics.failed('/v1/tts');
  const of = await scrape(metrics);
  t.equal(of('syrinx_first_audio_seconds_count{route="/v1/tts/stream",encoding="pcm"}'), 1);
  t.equal(of('syrinx_first_audio_seconds_sum{route="/v1/tts/stream",encoding="pcm"}'), 0.004);
  t.equal(of('syrinx_first_decoded_seconds_sum{route="/v1/tts/stream",encoding="pcm"}'), 0.005);
  t.equal(of('syrinx_first_audible_seconds_sum{route="/v1/tts/stream",encoding="pcm"}'), 0.06);
  t.equal(of('syrinx_first_audio_seconds_bucket{le="0.0025",route="/v1/tts/stream",encoding="pcm"}'), 0);
  t.equal(of('syrinx_first_audio_seconds_bucket{le="0.005",route="/v1/tts/stream",encoding="pcm"}'), 1);
  t.match([of('syrinx_queue_wait_seconds_count'), of('syrinx_queue_wait_seconds_sum')], [2, 0.002]);
  t.equal(of('syrinx_synthesis_seconds_total'), 0.15000000000000002);
  t.match([of('syrinx_real_time_factor_count'), of('syrinx_real_time_factor_sum')], [1, 0.05]);
  t.equal(of('syrinx_speech_seconds_total{encoding="opus"}'), 1.75);
  t.match([of('syrinx_playback_lag_seconds_count'), of('syrinx_underruns_total')], [3, 1]);
  t.ok(Math.abs(Number(of('syrinx_playback_lag_seconds_sum')) - 0.035) < 1e-9);
  t.equal(of('syrinx_playback_lag_seconds_bucket{le="0"}'), 1, 'a chunk in time has its own bucket');
  t.equal(of('syrinx_requests_total{route="/v1/tts",status="200"}'), 1);
  t.equal(of('syrinx_requests_total{route="/v1/tts",status="none"}'), 1);
  t.equal(of('syrinx_refusals_total{reason="creditExhausted"}'), 1);
  t.equal(of('syrinx_failures_total{route="/v1/tts"}'), 1);
});

t.test('Prometheus finds nothing wrong in a scrape', { skip: missingTool('promtool') }, async (t) => {
  const metrics = new Metrics();
  metrics.watch(() => figures);
  metrics.firstAudio('byte', '/v1/tts/stream', 'pcm', 4);
  metrics.speechIn('opus').inc(1.5);
  metrics.request('/v1/tts', 200);
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    encoding: 'utf8',
    input: await metrics.text(),
  });
  t.strictSame([status, stdout, stderr], [0, '', '']);
});

t.test('a scrape reads the gauges at that moment', async (t) => {
  const metrics = new Metrics();
  let of = await scrape(metrics);
  t.match([of('syrinx_ready'), of('syrinx_sockets')], [0, 0], 'before there are stages');
  metrics.watch(() => figures);
  of = await scrape(metrics);
  of = await scrape(metrics);
  t.equal(of('syrinx_ready'), 1);
  t.equal(of('syrinx_streams{route="/v1/tts"}'), 3);
  t.match([of('syrinx_sockets'), of('syrinx_contexts'), of('syrinx_buffered_bytes')], [5, 7, 11_000]);
  t.match([of('syrinx_older_voice_contexts'), of('syrinx_hung_threads')], [17, 19]);
  t.equal(of('syrinx_gpu_lost'), 1);
  t.match([of('syrinx_buffered_audio_seconds'), of('syrinx_ledger_entries_queued')], [1.5, 13]);
  t.equal(of('syrinx_log_lines_lost_total'), 5);
  for (const [kind, count] of Object.entries(figures.restarts))
    t.equal(of(`syrinx_thread_restarts_total{kind="${kind}"}`), count, 'a second scrape adds nothing');
  t.equal(of('syrinx_event_loop_delay_seconds{percentile="99"}'), 0.099);
  const version = (JSON.parse(readSource('package.json')) as { version: string }).version;
  t.equal(of(`syrinx_build_info{version="${version}",node="${process.version}"}`), 1);
  t.ok(of('syrinx_pss_bytes')! > 1e6);
  t.ok(of('process_cpu_seconds_total')! > 0);
});

t.test('every refusal reason is exposed from the start, and registries share no state', async (t) => {
  const busy = new Metrics();
  busy.refused('slotsExhausted');
  const of = await scrape(new Metrics());
  for (const code of Object.keys(errors).filter((name) => name !== 'internal' && name !== 'unavailable'))
    t.equal(of(`syrinx_refusals_total{reason="${code}"}`), 0, code);
});

t.test('the page for operators lists exactly the metrics that exist', (t) => {
  const table = readFileSync(join(packageRoot, 'scripts/deploy/metrics.md'), 'utf8');
  const listed = [...table.matchAll(/^\| `(\w+)(?:\{[\w,]+\})?` +\|/gm)].map(([, name]) => name ?? '');
  const exposed = new Metrics().catalogue.map(({ name }) => name);
  t.ok(exposed.length > 20);
  t.strictSame(listed.toSorted(), exposed.toSorted());
  t.end();
});

t.test('alerts and the rule for scaling use only metrics that exist', (t) => {
  const rules = ['alerts.yml', 'scaling.yml']
    .map((name) => readFileSync(join(packageRoot, 'scripts/deploy/prometheus', name), 'utf8'))
    .join('\n');
  const expressions = rules.split('\n').filter((line) => !/^\s*(?:#|summary|description)/.test(line));
  const used = [...expressions.join('\n').matchAll(/\b(?:syrinx|process)_\w+/g)].map(([name]) => name);
  const exposed = new Set(new Metrics().catalogue.map(({ name }) => name));
  t.ok(used.length >= 6);
  t.strictSame(
    used.filter((name) => !exposed.has(name.replace(/_(?:bucket|sum|count)$/, ''))),
    [],
  );
  t.end();
});

t.test('memory and open files of the process are read', { skip: process.platform !== 'linux' }, async (t) => {
  t.ok((await pssBytes())! > 10e6);
  t.ok((await pssBytes())! < 4 * process.memoryUsage.rss());
  t.ok((await openFiles())! >= 3);
  t.ok((await openFilesMax())! >= (await openFiles())!);
});

t.test('a delay of the event loop is measured, and reading does not reset it', async (t) => {
  const delay = new EventLoopDelay();
  t.equal(delay.seconds(1), 0, 'nothing measured yet');
  await eventually(() => delay.seconds(1) > 0);
  const end = performance.now() + 100;
  while (performance.now() < end);
  await eventually(() => delay.seconds(1) >= 0.08);
  const worst = delay.seconds(1);
  t.ok(delay.seconds(0.5) <= worst);
  t.equal(delay.seconds(1), worst);
  delay.close();
  delay.close();
});
