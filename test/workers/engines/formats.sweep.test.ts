/** Voices of two formats side by side, from their files to the audio that a client gets. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { SpeechSettings } from '../../../src/api/speech-settings.js';
import { limits } from '../../../src/limits.js';
import type { Speech } from '../../../src/speech/speech.js';
import { closeFiles, readVoices } from '../../../src/threads/voices.js';
import { formats, readPacks } from '../../../workers/engines/registry.js';
import { tones } from '../../support/engines/tones/format.js';
import { lease, start } from '../../support/dispatch-bench.js';
import {
  cacheDir,
  loadVoices,
  median,
  modelsDir,
  pitchOf,
  speak as speakAlone,
} from '../../support/voices.js';
import { eventually } from '../../support/waiting.js';
import { opened } from '../../support/fake-speech.js';

const packsIn = (modelsDir: string) => ({ modelsDir, cacheDir, bounds: limits });
const packsEntry = new URL('../../support/engines/tones/packs.js', import.meta.url);
const hostileEntry = new URL('../../support/engines/hostile/packs.js', import.meta.url);
const synthesisEntry = new URL('../../support/engines/tones/synthesis.js', import.meta.url);
const outputHz = 24_000;

/** The shipped voices, and the French tones of the pack "chime". */
const bothFormats = (t: Test): string => {
  const folder = t.testdir();
  cpSync(join(modelsDir, 'syrinx-en'), join(folder, 'syrinx-en'), { recursive: true });
  mkdirSync(join(folder, 'chime-fr'));
  writeFileSync(join(folder, 'chime-fr', 'chime.tones.json'), '{"low": 200, "high": 320}');
  return folder;
};

/** Open files of this process that are in the folder. */
const openFiles = (folder: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((file) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${file}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });

/** Packs of the format that hangs or ends its reader, each time that one was read. @param place of the folder of packs */
const actedIn = (place: string): string[] => {
  const path = join(place, 'acted');
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
};

/** Speaks a text to its end. @returns samples at `outputHz`, whatever the voice's own rate is */
const speak = (speech: Speech, text: string, settings: Partial<SpeechSettings>): Promise<Int16Array> =>
  new Promise((resolve, reject) => {
    const bytes: Uint8Array[] = [];
    const context = opened(
      speech.open(
        {
          lease: lease().granted,
          settings: { voiceId: 'wren', temperature: 1, normalizeText: false, ...settings },
          format: { encoding: 'pcm', sampleRateHz: outputHz },
          framing: 'raw',
          timestamps: false,
        },
        (frame) => {
          if (frame.type === 'audio') {
            bytes.push(frame.bytes);
            context.handed(frame);
          } else if (frame.type === 'closed' || frame.type === 'failed') {
            context.release();
            const pcm = Uint8Array.from(Buffer.concat(bytes));
            if (frame.type === 'closed') resolve(new Int16Array(pcm.buffer));
            else reject(new Error(frame.reason));
          }
        },
      ),
    );
    context.append(text);
    context.end();
  });

const seconds = (pcm: Int16Array) => pcm.length / outputHz;
const within = (value: number, wanted: number, share: number) => Math.abs(value / wanted - 1) <= share;

t.test('voices of two formats speak side by side, each at its own rate', async (t) => {
  const voices = await readVoices(packsIn(bothFormats(t)), packsEntry);
  const { catalogue, packs } = voices;
  t.equal(catalogue.speakerIds.length, 11);
  t.equal(catalogue.speakerIds[0], 'wren');
  t.strictSame(catalogue.speakerIds.slice(-2), ['chime-low', 'chime-high']);
  t.strictSame(
    ['wren', 'chime-low'].map((id) => catalogue.sampleRateHz(id)),
    [24_000, 16_000],
  );
  t.throws(() => catalogue.sampleRateHz('nobody'), /unknown voice "nobody"/);
  t.strictSame(
    packs.map(({ engine, name, voices: [voice] }) => [engine, name, voice?.language]),
    [
      ['syrinx', 'syrinx-en', 'en'],
      ['tones', 'chime-fr', 'fr'],
    ],
  );
  const { synthesisHeapMiBMax } = limits;
  const dispatcher = await start({ threads: 1, bounds: { synthesisHeapMiBMax }, voices, synthesisEntry });
  voices.release();

  const text = 'Voici une phrase, et encore une autre.';
  for (const [voiceId, hz] of [
    ['chime-low', 200],
    ['chime-high', 320],
  ] as const) {
    const pcm = await speak(dispatcher, text, { voiceId });
    t.ok(Math.abs(seconds(pcm) - 0.05 * text.length) < 0.001, `${voiceId}: ${seconds(pcm)} s`);
    const rises = pcm.reduce((sum, sample, i) => sum + (i > 0 && pcm[i - 1]! <= 0 && sample > 0 ? 1 : 0), 0);
    t.ok(within(rises / seconds(pcm), hz, 0.02), `${voiceId}: ${rises / seconds(pcm)} Hz`);
  }

  // Two readings differ, at this temperature the least.
  const temperature = 0.5;
  const english = 'We were all in the garden when the news came over the wall.';
  const alone = await speakAlone(await loadVoices(), english, { temperature });
  const wren = await speak(dispatcher, english, { temperature });
  t.ok(within(wren.length, alone.pcm.length, 0.2), 'the length of wren is that of her engine');
  t.ok(within(median(pitchOf(wren)), median(pitchOf(alone.pcm)), 0.15), 'and so is the pitch');

  const [slow, fast] = [
    await speak(dispatcher, english, { temperature, speed: 0.5 }),
    await speak(dispatcher, english, { temperature, speed: 2 }),
  ];
  t.ok(within(slow.length, 2 * wren.length, 0.2), 'half the speed takes twice the time');
  t.ok(within(fast.length, wren.length / 2, 0.2), 'twice the speed takes half the time');
  t.equal((await speak(dispatcher, 'Bonjour', { voiceId: 'chime-low', speed: 2 })).length, 7 * 600);
  t.ok(await dispatcher.close(5_000));
});

t.test('the files of the packs stay open until they are released', async (t) => {
  const folder = bothFormats(t);
  const voices = await readVoices(packsIn(folder), packsEntry);
  const files = openFiles(folder);
  t.equal(files.length, 4, 'three graphs and the tones');
  voices.release();
  voices.release();
  await eventually(() => openFiles(folder).length === 0);
  t.strictSame(openFiles(folder), []);
});

t.test('a folder of no known format is a finding, and the other packs are there', async (t) => {
  const folder = bothFormats(t);
  const path = join(folder, 'other');
  mkdirSync(path);
  writeFileSync(join(path, 'notes.xml'), '');
  const voices = await readVoices(packsIn(folder), packsEntry);
  t.strictSame(voices.findings, [
    {
      pack: 'other',
      fault:
        `${path}: no voice format that this service knows. A pack has ` +
        [...formats, tones].map(({ looksFor }) => looksFor).join('; or '),
    },
  ]);
  t.equal(voices.packs.length, 2);
  t.equal(openFiles(folder).length, 4);
  voices.release();
  const known = await readPacks(packsIn(folder));
  closeFiles(known.files);
  t.strictSame(
    known.findings.map(({ pack }) => pack),
    ['chime-fr', 'other'],
  );
  await eventually(() => openFiles(folder).length === 0);
  t.strictSame(openFiles(folder), [], 'nothing stays open');
});

t.test(
  'a voice has an id that lists, headers, paths and pages can hold, or its pack is refused',
  async (t) => {
    const modelsDir = t.testdir({ chime: {} });
    const idsOf = async (name: string): Promise<readonly string[]> => {
      writeFileSync(join(modelsDir, 'chime', 'chime.tones.json'), JSON.stringify({ [name]: 200 }));
      const { packs, files } = await readPacks(packsIn(modelsDir), [tones]);
      closeFiles(files);
      return packs[0]!.voices.map(({ id }) => id);
    };
    for (const name of [
      ...[
        'af_heart',
        'p225',
        '3922',
        'expr-voice-2-m',
        'Mary Ann',
        'Zo\u00eb',
        'Zoe\u0308',
        '\u738b',
        '\u0646\u0648\u0631',
      ],
      ...['v1.0', 'a+b (warm)', 'L'.repeat(122)],
    ])
      t.strictSame(await idsOf(name), [`chime-${name}`]);
    for (const name of [
      ...[
        '/../../x',
        'a\\b',
        'x\r\nset-cookie: a=b',
        '\u001b[31m',
        'a\u200bb',
        'a\u202eb',
        'a\ud800',
        'a\u00a0b',
      ],
      ...['<img src=x>', 'a"b', "a'b", 'a`b', '; touch x; #', '$(x)', 'a|b', 'a,b', 'a:b'],
      ...['L'.repeat(123), 'L'.repeat(300_000)],
    ])
      await t.rejects(idsOf(name), {
        name: 'VoicePackError',
        message:
          /chime.*: the voice "chime-.*: use at most 128 letters, digits, .* with a letter or a digit first$/,
      });
  },
);

t.test('a pack at which the reading hangs or ends is named, and the others are there', async (t) => {
  const place = t.testdir({
    models: {
      ...{ endless: { 'spin.hostile': 'x' }, huge: { 'fill.hostile': 'x' } },
      ...{ last: { 'exit.hostile': 'x' }, wrong: { 'crash.hostile': 'x' } },
    },
  });
  const folder = join(place, 'models');
  cpSync(join(modelsDir, 'syrinx-en'), join(folder, 'syrinx-en'), { recursive: true });
  const bounds = { ...limits, voiceReadMsMax: 10_000, watchdogBeatMs: 100, voiceReadHeapMiBMax: 32 };
  const data = { modelsDir: folder, cacheDir: join(place, 'cache'), bounds };
  const voices = await readVoices(data, hostileEntry);
  t.strictSame(voices.findings, [
    {
      pack: 'endless',
      fault:
        `${join(folder, 'endless')}: it was not read within 10 s: use a smaller model, or a faster disk; ` +
        'it is read again when its files change',
    },
    {
      pack: 'huge',
      fault:
        `${join(folder, 'huge')}: it takes more than 32 MiB of memory to read: ` +
        'it is damaged, or no voice; a start may have more memory for it than a reload',
    },
    {
      pack: 'last',
      fault: `${join(folder, 'last')}: while it was read: the thread that reads the voices ended with code 3`,
    },
    { pack: 'wrong', fault: `${join(folder, 'wrong')}: the pack cannot be read: no voice` },
  ]);
  t.strictSame(
    voices.packs.map(({ name }) => name),
    ['syrinx-en'],
  );
  t.equal(openFiles(folder).length, 3, 'the graphs of the pack that speaks');
  voices.release();
  await eventually(() => openFiles(folder).length === 0);

  /** How often the pack that hangs was read. */
  const readings = () => actedIn(place).filter((name) => name === 'endless').length;
  const readAgain = async () => {
    const { findings, release } = await readVoices(data, hostileEntry);
    release();
    t.strictSame(findings, voices.findings);
  };
  t.equal(readings(), 1);
  await readAgain();
  t.equal(readings(), 1, 'it is not read again');
  utimesSync(join(folder, 'endless', 'spin.hostile'), 1, 1);
  await readAgain();
  t.equal(readings(), 2, 'it is read again when a file has changed');
});

t.test('a signal ends a reading that hangs, and closes its files', async (t) => {
  const place = t.testdir({ models: { endless: { 'spin.hostile': 'x' } } });
  const folder = join(place, 'models');
  const data = { modelsDir: folder, cacheDir: join(place, 'cache'), bounds: limits };
  const ending = new AbortController();
  const reading = readVoices(data, hostileEntry, ending.signal);
  await eventually(() => actedIn(place).length > 0);
  t.equal(openFiles(folder).length, 1);
  ending.abort(new Error('the end'));
  await t.rejects(reading, { message: 'the end' });
  await eventually(() => openFiles(folder).length === 0);
  await t.rejects(readVoices(data, hostileEntry, ending.signal), { message: 'the end' });
});

t.test('a thread that ends before it has read the voices is a fault', async (t) => {
  await t.rejects(readVoices(packsIn(modelsDir), new URL('data:text/javascript,process.exit(3)')), {
    message: 'the thread that reads the voices ended with code 3',
  });
  await t.rejects(readVoices(packsIn(modelsDir), new URL('data:text/javascript,throw new Error("broken")')), {
    message: 'broken',
  });
});
