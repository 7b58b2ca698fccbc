/**
 * The three figures of first audio, in the log and in the metrics of a whole service: a voice that begins with 200 ms of
 * silence is heard 200 ms later, on every route and in every kind of format.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { decoderOf, heardFirst } from '../../scripts/rig/first-audio.js';
import { parseExposition } from '../support/exposition.js';
import { pause, recordsOf, startService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';

const SILENCE_MS = 200;
/** LAME's 576 samples and the 529 of every decoder: nothing in a stream makes players skip them. */
const MP3_DELAY_SAMPLES = 1_105;

const folder = join(t.testdir(), 'models');
mkdirSync(join(folder, 'chime'), { recursive: true });
const speakers = { prompt: { hz: 400, silenceMs: 0 }, late: { hz: 400, silenceMs: SILENCE_MS }, mute: 0 };
writeFileSync(join(folder, 'chime', 'chime.tones.json'), JSON.stringify(speakers));
const env = { MODELS_DIR: folder, SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };
const service = await startService(t, env, 'test/support/tones-service.js');

interface Figures {
  readonly firstAudioMs: number;
  readonly firstDecodedMs: number;
  readonly firstAudibleMs?: number;
  readonly totalMs: number;
}

const formats = {
  pcm: { encoding: 'pcm', sample_rate: 24_000 },
  mp3: { encoding: 'mp3', sample_rate: 32_000 },
  opus: { encoding: 'opus', sample_rate: 48_000 },
} as const;
type Name = keyof typeof formats;

const text = 'une phrase';

/** @returns the figures of the log line of one request */
const logged = async (message: string, ask: () => Promise<void>): Promise<Figures> => {
  const before = service.logged(message).length;
  await ask();
  return (await service.untilLogged(message, before + 1)) as unknown as Figures;
};

const post = (path: string, body: object) => async (): Promise<void> => {
  const response = await service.post(path, body);
  t.equal(response.status, 200);
  await response.arrayBuffer();
};

const speech = (voice: string, name: Name) => ({ text, voice, response_format: formats[name] });

const routes: Readonly<Record<string, (voice: string, name: Name) => Promise<Figures>>> = {
  '/v1/tts/stream': (voice, name) => logged('request', post('/v1/tts/stream', speech(voice, name))),
  '/v1/tts': (voice, name) => logged('request', post('/v1/tts', speech(voice, name))),
  '/v1/tts/integrations/voiceplatform': (voice) =>
    logged(
      'request',
      post(`/v1/tts/integrations/voiceplatform?voice=${voice}`, { message: { type: 'voice-request', text } }),
    ),
  '/v1/tts/ws': (voice, name) =>
    logged('socket', async () => {
      const socket = await openWs(service.port, service.key);
      socket.start('a', { voice_id: voice, response_format: formats[name] });
      socket.text('a', text);
      socket.flush('a', 'said');
      await socket.frame(({ flush_id }) => flush_id === 'said');
      // The log has the first reply.
      await pause(50);
      socket.text('a', text);
      socket.closeContext('a');
      await socket.frame(({ context_closed }) => context_closed === true);
      socket.close();
    }),
};

for (const [route, ask] of Object.entries(routes))
  for (const name of Object.keys(formats) as Name[]) {
    if (route.endsWith('voiceplatform') && name !== 'pcm') continue;
    t.test(
      `${route}, ${name}: ${SILENCE_MS} ms of silence are ${SILENCE_MS} ms more to the audible sample`,
      async (t) => {
        const delayMs = name === 'mp3' && route !== '/v1/tts' ? (MP3_DELAY_SAMPLES * 1_000) / 32_000 : 0;
        for (const [voice, silenceMs] of [
          ['chime-prompt', 0],
          ['chime-late', SILENCE_MS],
        ] as const) {
          const { firstAudibleMs = Number.NaN, firstAudioMs, firstDecodedMs } = await ask(voice, name);
          t.ok(firstAudioMs > 0 && firstAudioMs <= firstDecodedMs, `${firstAudioMs} <= ${firstDecodedMs} ms`);
          const afterMs = firstAudibleMs - firstDecodedMs - delayMs;
          t.ok(Math.abs(afterMs - silenceMs) <= 10, `${voice}: audible ${afterMs} ms after the first sample`);
        }
      },
    );
  }

t.test('a voice without an audible sample has two figures', async (t) => {
  const { firstAudibleMs, firstAudioMs, firstDecodedMs } = await routes['/v1/tts/stream']!(
    'chime-mute',
    'pcm',
  );
  t.type(firstAudioMs, 'number');
  t.type(firstDecodedMs, 'number');
  t.equal(firstAudibleMs, undefined);
});

for (const name of Object.keys(formats) as Name[])
  t.test(
    `${name}: a client with a decoder hears it when the service says`,
    { skip: name !== 'pcm' && missingTool('ffmpeg') },
    async (t) => {
      const { encoding, sample_rate: sampleRateHz } = formats[name];
      const decoder = decoderOf(
        encoding === 'pcm' ? { encoding, sampleRateHz } : { encoding, sampleRateHz, bitrateKbps: 64 },
      )!;
      const arrivals: { atMs: number; bytes: Buffer }[] = [];
      const figures = await logged('request', async () => {
        const startedMs = performance.now();
        const response = await service.post('/v1/tts/stream', speech('chime-late', name));
        for await (const { audio_chunk: audio } of recordsOf(response))
          if (audio !== undefined)
            arrivals.push({ atMs: performance.now() - startedMs, bytes: Buffer.from(audio, 'base64') });
      });
      const heard = heardFirst(arrivals, decoder)!;
      // The client's times have the network and its own event loop in them; what follows the first sample has not.
      const ofClient = heard.audibleMs - heard.decodedMs;
      const ofService = figures.firstAudibleMs! - figures.firstDecodedMs;
      t.ok(
        Math.abs(ofClient - ofService) < 15,
        `${ofClient} ms at the client, ${ofService} ms at the service`,
      );
    },
  );

/** The histograms now: by figure, route and encoding. */
const scrape = async () => {
  const body = await (await fetch(`${service.opsUrl}/metrics`)).text();
  const families = parseExposition(body);
  return (figure: string, part: 'count' | 'sum', route: string, encoding: string): number => {
    const name = `syrinx_first_${figure}_seconds`;
    const series = `${name}_${part}{route="${route}",encoding="${encoding}"}`;
    return families.get(name)?.samples.get(series) ?? 0;
  };
};
const figureNames = ['audio', 'decoded', 'audible'];

t.test('the histograms have every reply, by route and encoding', async (t) => {
  const before = await scrape();
  await routes['/v1/tts/ws']!('chime-late', 'opus');
  const now = await scrape();
  const moved = (figure: string, part: 'count' | 'sum', encoding: string) =>
    now(figure, part, '/v1/tts/ws', encoding) - before(figure, part, '/v1/tts/ws', encoding);
  for (const figure of figureNames) {
    t.equal(moved(figure, 'count', 'opus'), 2, `${figure}: both replies`);
    t.equal(moved(figure, 'count', 'mp3'), 0);
  }
  const laterMs = (moved('audible', 'sum', 'opus') - moved('decoded', 'sum', 'opus')) * 1_000;
  t.ok(Math.abs(laterMs - 2 * SILENCE_MS) < 20, `${laterMs} ms`);
  for (const encoding of Object.keys(formats))
    for (const route of ['/v1/tts', '/v1/tts/stream', '/v1/tts/ws'])
      t.ok(now('audible', 'count', route, encoding) > 0, `${route} ${encoding}`);
});

t.test('the rest of a reply, which the codec held back until a flush, is no reply of its own', async (t) => {
  const before = await scrape();
  const socket = await openWs(service.port, service.key);
  const audioFrames = () => socket.frames.filter(({ audio_chunk }) => audio_chunk !== undefined).length;
  socket.start('a', { voice_id: 'chime-prompt', response_format: formats.mp3 });
  // It is spoken without a flush, because the sentence is complete.
  socket.text('a', `${text}. `);
  await socket.until(() => audioFrames() > 0);
  await pause(300);
  const spoken = audioFrames();
  socket.flush('a', 'rest');
  await socket.frame(({ flush_id }) => flush_id === 'rest');
  t.ok(audioFrames() > spoken, 'the flush brought the rest');
  socket.close();
  const now = await scrape();
  for (const figure of figureNames)
    t.equal(
      now(figure, 'count', '/v1/tts/ws', 'mp3') - before(figure, 'count', '/v1/tts/ws', 'mp3'),
      1,
      figure,
    );
});
