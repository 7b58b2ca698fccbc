/**
 * Measures the service from outside, as it is: a child process on a free port, and a load client in another.
 *
 *   npm run bench [-- --only first-audio,throughput,encodings,listeners,memory] [--rate HZ] [--json FILE] [--readme]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig } from '../../src/config.js';
import { catalogueOf, readPacks } from '../../workers/engines/manifest.js';
import { startBareEngine } from './bare.js';
import { measureEncodings } from './encodings.js';
import { Load } from './load.js';
import type { Target } from './protocol.js';
import { type Row, describeMachine, formatReport, putIntoReadme } from './report.js';
import {
  keysNeeded,
  measureFirstAudio,
  measureListeners,
  measureMemory,
  measureThroughput,
} from './scenarios.js';
import { Service } from './service.js';
import { throughputText } from './texts.js';

const scenarios = ['first-audio', 'throughput', 'encodings', 'listeners', 'memory'] as const;
type Scenario = (typeof scenarios)[number];

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: scenarios.join() },
    rate: { type: 'string', default: '24000' },
    json: { type: 'string' },
    readme: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',').map((name) => {
  const scenario = scenarios.find((candidate) => candidate === name.trim());
  if (scenario === undefined) throw new Error(`there is no scenario ${name}: ${scenarios.join(', ')}`);
  return scenario;
});

const { modelsDir, synthesisThreads, actorThreads, executionProvider } = readConfig(process.env);
const packs = await readPacks(modelsDir);
const catalogue = catalogueOf(packs);
const voice = catalogue.speakerIds[0]!;
const serviceOptions = { modelsDir, synthesisThreads, actorThreads, keys: keysNeeded };
const format = { encoding: 'pcm', sampleRateHz: Number(values.rate) } as const;

const load = new Load();
const rows: Row[] = [];
const measure = async (scenario: Scenario, run: () => Promise<Row[]>): Promise<void> => {
  if (!wanted.includes(scenario)) return;
  process.stderr.write(`measuring ${scenario} ...\n`);
  rows.push(...(await run()));
};

try {
  const service = await Service.start(serviceOptions);
  const target: Target = { port: service.port, keys: service.keys, voice, format };
  try {
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
  } finally {
    await service.stop();
  }
  await measure('memory', () => measureMemory(load, target, serviceOptions));
} finally {
  load.close();
}

const machine = describeMachine();
const report = formatReport(machine, 'npm run bench', rows);
process.stdout.write(report);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ machine, rows }, null, 2)}\n`);
if (values.readme) writeFileSync('README.md', putIntoReadme(readFileSync('README.md', 'utf8'), report));
process.exitCode = rows.some(({ passed }) => passed === false) ? 1 : 0;
