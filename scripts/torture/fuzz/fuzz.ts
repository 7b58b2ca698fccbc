/**
 * Raw bytes from a seeded generator to the service with its real voices, while neighbours listen.
 *
 * Most keys of the inputs have no credit: their requests pass every check but the last and are not spoken, so that the
 * CPU goes to what is fuzzed. Some keys have credit.
 */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../../rig/random.js';
import { describeExit, freeDialectPorts, Service } from '../../rig/service.js';
import { describeLeftovers, leftoversOf } from '../checks.js';
import { describeNeighbours, isUndisturbed, Neighbours } from '../neighbours.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { dialectInput } from './dialect-inputs.js';
import { httpInput, otherInput } from './http-inputs.js';
import type { Ending, Input, Made, Vocabulary } from './input.js';
import { socketInput } from './socket-inputs.js';
import { Storm } from './storm.js';

const parallel = 256;
const goodKeyCount = 6;
/** Failed inputs that are written to files and reported. */
const failuresReportedMax = 5;
/** After the start, until the service is at rest. */
const settleMs = 500;

const everyByteMax = 400;

const cutsOf = (length: number, dice: Dice): number[] => {
  const what = dice.unit();
  if (what < 0.8 || length < 2) return [];
  if (what < 0.985) {
    const cuts = Array.from({ length: dice.between(1, 3) }, () => dice.between(1, length - 1));
    return [...new Set(cuts)].sort((a, b) => a - b);
  }
  return length > everyByteMax ? [] : Array.from({ length: length - 1 }, (_, i) => i + 1);
};

const makers = [
  { weight: 46, value: httpInput },
  { weight: 30, value: socketInput },
  { weight: 20, value: dialectInput },
  { weight: 4, value: otherInput },
] as const;

const endings: readonly { readonly weight: number; readonly value: Ending }[] = [
  { weight: 47, value: 'wait' },
  { weight: 3, value: 'patient' },
  { weight: 42, value: 'half-close' },
  { weight: 8, value: 'reset' },
];

/** Only among the first inputs, so that the end of a run does not wait for them. */
const lingerersBefore = 2_000;
const lingererShare = 0.03;

const endingOf = (index: number, dice: Dice): Ending =>
  index < lingerersBefore && dice.chance(lingererShare) ? 'linger' : dice.weighted(endings);

/** An input follows from seed and index alone. */
const inputOf = (seed: number, index: number, vocabulary: Vocabulary): Input => {
  const dice = new Dice(seed, index);
  const made = dice.weighted<(dice: Dice, vocabulary: Vocabulary) => Made>(makers)(dice, vocabulary);
  return { ...made, cuts: cutsOf(made.bytes.length, dice), ending: endingOf(index, dice) };
};

const run = async ({ seed, count, progress }: TortureOptions): Promise<readonly TortureRow[]> => {
  const service = await Service.start({ synthesisThreads: 2, actorThreads: 1, env: freeDialectPorts });
  let neighbours: Neighbours | null = null;
  try {
    const goodKeys = await service.makeKeys(goodKeyCount);
    const voices = await service.voices();
    const vocabulary: Vocabulary = {
      goodKeys,
      brokeKeys: await service.makeKeys(4, 0),
      unknownKeys: ['svc_sk_none', `svc_sk_${'A'.repeat(43)}`],
      voices,
    };
    await sleep(settleMs);
    const filesBefore = service.openFiles;
    neighbours = await Neighbours.start(service, seed);
    const failures: string[] = [];
    const inputAt = (index: number) => inputOf(seed, index, vocabulary);
    const onFault = (index: number, what: string): void => {
      const { bytes, afterUpgrade, cuts, ending, kind } = inputAt(index);
      if (failures.length < failuresReportedMax) {
        const file = join(tmpdir(), `syrinx-fuzz-${seed}-${index}.json`);
        const hex = { bytes: bytes.toString('hex'), afterUpgrade: afterUpgrade?.toString('hex') ?? null };
        writeFileSync(file, `${JSON.stringify({ seed, index, what, kind, ending, cuts, ...hex })}\n`);
        process.stderr.write(`\ninput ${index} of seed ${seed}: ${what}; its bytes: ${file}\n`);
      }
      failures.push(what);
    };
    const isAlive = (): boolean => service.exit === null;
    const addresses = process.platform === 'linux' ? 100 : 1;
    const portOf = ({ dialect }: Input) =>
      dialect === undefined ? service.port : service.dialectPorts[dialect]!;
    const storm = new Storm({ portOf, inputAt, count, parallel, addresses, onFault, isAlive });
    const startedMs = performance.now();
    let reported = 0;
    const { log } = service;
    const timer = setInterval(() => {
      const rate = Math.round((storm.done * 1000) / (performance.now() - startedMs));
      const faults = failures.length + log.errors;
      progress(`${storm.done} of ${count} inputs, ${rate} a second, ${faults} faults`);
      for (; reported < log.errorLines.length; reported++)
        process.stderr.write(`\n${log.errorLines[reported] ?? ''}\n`);
      if (service.exit !== null) for (const index of storm.underWay) onFault(index, 'the service exited');
    }, 250);
    await storm.run();
    clearInterval(timer);
    const seconds = (performance.now() - startedMs) / 1000;
    if (service.exit !== null)
      throw new Error(`the service ended with ${describeExit(service.exit)}: ${service.stderr}`);
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, goodKeys);
    const exit = await service.stop();
    const kinds = `answers: ${storm.answers.toShares()}`;
    const ended = exit.code === 0 ? 'exit 0' : `ended with ${describeExit(exit)}`;
    const faults = `${failures.length} inputs failed, ${log.errors} errors logged`;
    return [
      {
        fault: 'raw bytes over HTTP and WebSocket, to all listeners',
        injected: `seed ${seed}, ${parallel} connections at a time: ${storm.kinds.toShares()}`,
        count,
        outcome: `${faults}, ${describeLeftovers(left)}, ${ended}; ${kinds}; in ${seconds.toFixed(0)} s`,
        held: failures.length === 0 && log.errors === 0 && left.length === 0 && exit.code === 0,
      },
      {
        fault: 'neighbours of the raw bytes',
        injected: 'two clients over HTTP, two over WebSockets, meanwhile',
        count: report.heard,
        outcome: describeNeighbours(report),
        held: isUndisturbed(report),
      },
    ];
  } finally {
    neighbours?.close();
    await service.kill();
  }
};

export const fuzz: Scenario = {
  name: 'fuzz',
  about: 'raw bytes over HTTP and WebSocket from a seeded generator; by night a million',
  defaultCount: 100_000,
  run,
};
