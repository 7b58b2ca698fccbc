/**
 * Measures the service from outside, as it is: a child process on a free port, and a load client in another.
 *
 *   npm run bench [-- --only first-audio,throughput,encodings,listeners,memory] [--rate HZ] [--json FILE] [--readme]
 *   npm run bench -- ws [--only idle,streams,frames] [--rate HZ] [--json FILE]
 *   npm run bench -- ws-check [--minutes N] [--json FILE]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { AudioFormat } from '../../src/api/formats.js';
import { readConfig } from '../../src/config.js';
import { catalogueOf, readPacks } from '../../workers/engines/manifest.js';
import { startBareEngine } from './bare.js';
import { measureEncodings } from './encodings.js';
import { Load } from './load.js';
import type { Target } from './protocol.js';
import { type Row, formatReport, putIntoReadme } from './report.js';
import {
  keysNeeded,
  measureFirstAudio,
  measureListeners,
  measureMemory,
  measureThroughput,
} from './scenarios.js';
import { describeMachine } from '../load/machine.js';
import { Service } from '../load/service.js';
import {
  checkKeysNeeded,
  checkSockets,
  measureFrameCost,
  measureIdleSockets,
  measureSocketStreams,
  streamKeysNeeded,
} from './socket-scenarios.js';
import { throughputText } from '../load/texts.js';

const programs = {
  all: ['first-audio', 'throughput', 'encodings', 'listeners', 'memory'],
  ws: ['idle', 'streams', 'frames'],
  'ws-check': ['check'],
} as const;
type Program = keyof typeof programs;
type Scenario = (typeof programs)[Program][number];

const isProgram = (word: string): word is Program => Object.hasOwn(programs, word);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    rate: { type: 'string', default: '24000' },
    minutes: { type: 'string', default: '1' },
    json: { type: 'string' },
    readme: { type: 'boolean', default: false },
  },
});
const [word = 'all'] = positionals;
if (!isProgram(word) || positionals.length > 1)
  throw new Error(`there is no ${positionals.join(' ')}: ${Object.keys(programs).join(', ')}`);
const scenarios: readonly Scenario[] = programs[word];
const wanted =
  values.only?.split(',').map((name) => {
    const scenario = scenarios.find((candidate) => candidate === name.trim());
    if (scenario === undefined) throw new Error(`there is no scenario ${name}: ${scenarios.join(', ')}`);
    return scenario;
  }) ?? scenarios;
const minutes = Number(values.minutes);
if (!(minutes >= 0.5)) throw new Error('--minutes must be at least 0.5');
if (values.readme && word !== 'all') throw new Error('--readme goes with the table of all');

const { modelsDir, synthesisThreads, actorThreads, executionProvider } = readConfig(process.env);
const { packs, release } = await readPacks(modelsDir);
const catalogue = catalogueOf(packs);
const voice = catalogue.speakerIds[0]!;
const serviceOptions = { modelsDir, synthesisThreads, actorThreads, keys: keysNeeded };
const pcm: AudioFormat = { encoding: 'pcm', sampleRateHz: Number(values.rate) };
const opus: AudioFormat = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 64 };

const load = new Load();
const rows: Row[] = [];
const measure = async (scenario: Scenario, run: () => Promise<Row[]>): Promise<void> => {
  if (!wanted.includes(scenario)) return;
  process.stderr.write(`measuring ${scenario} ...\n`);
  rows.push(...(await run()));
};

const withService = async (
  keys: number,
  format: AudioFormat,
  use: (service: Service, target: Target) => Promise<void>,
): Promise<void> => {
  const service = await Service.start({ ...serviceOptions, keys });
  try {
    await use(service, { port: service.port, keys: service.keys, voice, format });
  } finally {
    await service.stop();
  }
};

const runAll = async (): Promise<void> => {
  let lastTarget: Target | undefined;
  await withService(keysNeeded, pcm, async (service, target) => {
    lastTarget = target;
    await measure('first-audio', () => measureFirstAudio(load, target));
    await measure('throughput', async () => {
      const data = { packs, executionProvider, voice, text: throughputText };
      const bare = await startBareEngine(synthesisThreads, data);
      try {
        return await measureThroughput(load, target, bare);
      } finally {
        await bare.close();
      }
    });
    await measure('encodings', () =>
      measureEncodings(load, target, service, catalogue.sampleRateHz, actorThreads),
    );
    await measure('listeners', () => measureListeners(load, target));
  });
  await measure('memory', () => measureMemory(load, lastTarget!, serviceOptions));
};

const runSockets = async (): Promise<void> => {
  if (wanted.includes('idle'))
    await withService(keysNeeded, pcm, (service, target) =>
      measure('idle', () => measureIdleSockets(load, target, service)),
    );
  if (!wanted.includes('streams') && !wanted.includes('frames')) return;
  await withService(streamKeysNeeded, pcm, async (service, target) => {
    await measure('frames', () => measureFrameCost(load, target, service));
    await measure('streams', () => measureSocketStreams(load, target));
  });
};

/** Opus, whose pages are numbered. */
const runCheck = (): Promise<void> =>
  withService(checkKeysNeeded, opus, (service, target) =>
    measure('check', () => checkSockets(load, target, service, minutes)),
  );

const programRuns: Readonly<Record<Program, () => Promise<void>>> = {
  all: runAll,
  ws: runSockets,
  'ws-check': runCheck,
};

try {
  await programRuns[word]();
} finally {
  load.close();
  release();
}

const machine = describeMachine();
const report = formatReport(machine, word === 'all' ? 'npm run bench' : `npm run bench -- ${word}`, rows);
process.stdout.write(report);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ machine, rows }, null, 2)}\n`);
if (values.readme) writeFileSync('README.md', putIntoReadme(readFileSync('README.md', 'utf8'), report));
process.exitCode = rows.some(({ passed }) => passed === false) ? 1 : 0;
