/**
 * Measures the service from outside: the service is a child process on a free port, and the load is another.
 * `npm run bench -- --help` lists its programs and parts.
 */
import { join } from 'node:path';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../../src/config.js';
import { catalogueOf, closeFiles } from '../../src/threads/voices.js';
import { readPacks } from '../../workers/engines/registry.js';
import { endWithReader, readArguments } from '../../src/command-line.js';
import { deviceData } from '../device.js';
import { LoadProcess } from '../rig/load-process.js';
import { describeMachine } from '../rig/machine.js';
import { freeDialectPorts, withService } from '../rig/service.js';
import { throughputText } from '../rig/texts.js';
import { BareLoop } from './bare.js';
import { measureDialects } from './dialects.js';
import { measureEncodings } from './encodings.js';
import { measureLedger, measureStores } from './hosts.js';
import { measureCpuBatches, measureGpu } from './gpu.js';
import type { Load } from './load.js';
import { type Part, type Program, readOptions, usage } from './options.js';
import { keysNeeded as overloadKeysNeeded, measureOverload } from './overload/overload.js';
import { overloadParts, togetherCount } from './overload/phases.js';
import type { Subject, Subjects } from './overload/watch.js';
import { measurePauses } from './pauses.js';
import { measurePiperPeers, measureSmallPeers } from './peers.js';
import { type Row, formatReport, putIntoReadme } from './report.js';
import {
  keysNeeded,
  measureAudible,
  measureFirstAudio,
  measureListeners,
  measureMemory,
  measureThroughput,
} from './scenarios.js';
import {
  measureFrameCost,
  measureIdleSockets,
  measureSocketStreams,
  measureTogether,
  streamKeysNeeded,
} from './socket-scenarios.js';
import type { Target } from './streams.js';
import { measureLoading, measureSharing } from './voices.js';
import { measureText } from './text.js';
import { measureTokens, tokenKeysNeeded } from './token-scenarios.js';

endWithReader();
const options = await readArguments('bench', usage, readOptions);
const { program, parts, rateHz, json, readme } = options;

const config = readConfig(process.env);
const { dataDir, modelsDir, synthesisThreads, actorThreads } = config;
const { packs, files } = await readPacks({ modelsDir, cacheDir: join(dataDir, 'voices') });
const catalogue = catalogueOf(packs);
const voice = catalogue.speakerIds[0]!;
const serviceOptions = { synthesisThreads, actorThreads, showsErrors: true };

const load: Load = new LoadProcess(new URL('./load.js', import.meta.url));
const rows: Row[] = [];
const measure = async (part: Part, run: () => Promise<Row[]>): Promise<void> => {
  if (!parts.includes(part)) return;
  process.stderr.write(`measuring ${part} ...\n`);
  rows.push(...(await run()));
};

const spoken = { voice, format: { encoding: 'pcm', sampleRateHz: rateHz } } as const;

const withTarget = <T>(
  keys: number,
  use: (subject: Subject) => Promise<T>,
  env: Readonly<Record<string, string>> = {},
): Promise<T> =>
  withService({ ...serviceOptions, env }, async (service) =>
    use({ service, target: { ...spoken, port: service.port, keys: await service.makeKeys(keys) } }),
  );

const withEngine = async <T>(use: (engine: BareLoop) => Promise<T>): Promise<T> => {
  const data = { packs, ...(await deviceData(config)), voice, text: throughputText };
  const engine = await BareLoop.start(data.executionProvider === 'webgpu' ? 1 : synthesisThreads, data);
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
};

const runThroughput = (target: Target): Promise<void> =>
  measure('throughput', () => withEngine((engine) => measureThroughput(load, target, engine)));

const runAll = async (): Promise<void> => {
  await withTarget(keysNeeded, async ({ service, target }) => {
    await measure('first-audio', () => measureFirstAudio(load, target));
    await runThroughput(target);
    await measure('encodings', () =>
      measureEncodings(load, target, service, catalogue.sampleRateHz(voice), actorThreads),
    );
    await measure('listeners', () => measureListeners(load, target));
  });
  await measure('memory', () => measureMemory(load, spoken, serviceOptions));
};

const runSockets = async (): Promise<void> => {
  if (parts.includes('idle'))
    await withTarget(keysNeeded, ({ service, target }) =>
      measure('idle', () => measureIdleSockets(load, target, service)),
    );
  if (!['together', 'streams', 'frames'].some((part) => parts.includes(part as Part))) return;
  await withTarget(streamKeysNeeded, async ({ service, target }) => {
    await measure('together', () => measureTogether(load, target));
    await measure('frames', () => measureFrameCost(load, target, service));
    await measure('streams', () => measureSocketStreams(load, target));
  });
};

/** Only an overload asks what the service admits; the others ask what it can do. */
const refuse = { OVERLOAD: 'refuse' } as const;
const readyLookMs = 20;
let figures: object | undefined;

/** A service that has only just become ready. */
const withFresh: Subjects['withFresh'] = (use) =>
  withTarget(
    togetherCount,
    async (subject) => {
      while ((await subject.service.unreadyReasons()) !== '') await sleep(readyLookMs);
      return use(subject);
    },
    refuse,
  );

/** Throughput and first audio are those of a service that admits everyone, as without a name. */
const runOverload = (): Promise<void> =>
  withTarget(overloadKeysNeeded, async (late) => {
    const chosen = overloadParts.filter((part) => parts.includes(part));
    const overload = (refusing: Subject) =>
      withEngine((engine) =>
        measureOverload({ refusing, late, withFresh }, { ...options.overload, parts: chosen }, engine),
      );
    if (chosen.length > 0) {
      const result = await withTarget(overloadKeysNeeded, overload, refuse);
      rows.push(...result.rows);
      figures = result.figures;
    }
    await runThroughput(late.target);
    await measure('audible', () => measureAudible(load, late.target));
  });

const programRuns: Readonly<Record<Program, () => Promise<void>>> = {
  all: runAll,
  ws: runSockets,
  pauses: () => measure('pauses', () => measurePauses(load, spoken, serviceOptions)),
  overload: runOverload,
  // Nothing is refused: a machine that is too busy shows in the gaps.
  tokens: () =>
    withTarget(tokenKeysNeeded, ({ target }) => measure('tokens', () => measureTokens(load, target))),
  text: () => withTarget(1, ({ service, target }) => measure('text', () => measureText(target, service))),
  dialects: () =>
    withTarget(
      1,
      ({ service, target }) => measure('dialects', () => measureDialects(target, service)),
      freeDialectPorts,
    ),
  async peers() {
    await measure('piper', () => measurePiperPeers(load, serviceOptions));
    await measure('small', () => measureSmallPeers(load, serviceOptions, voice));
  },
  async voices() {
    await measure('sharing', () => measureSharing(load, serviceOptions));
    await measure('loading', () => measureLoading(load, serviceOptions));
  },
  async hosts() {
    await measure('stores', () => measureStores(load, serviceOptions, spoken));
    await measure('ledger', measureLedger);
  },
  async gpu() {
    await measure('engines', () => measureGpu(config, voice));
    await measure('cpu-batches', () => measureCpuBatches(config, voice));
  },
};

try {
  await programRuns[program]();
} finally {
  load.close();
  closeFiles(files);
}

const command = program === 'all' ? 'npm run bench' : `npm run bench -- ${program}`;
const report = formatReport(command, rows);
process.stdout.write(report);
if (json !== null)
  writeFileSync(json, `${JSON.stringify({ machine: describeMachine(), rows, figures }, null, 2)}\n`);
if (readme) writeFileSync('README.md', putIntoReadme(readFileSync('README.md', 'utf8'), report));
process.exitCode = rows.some(({ passed }) => passed === false) ? 1 : 0;
