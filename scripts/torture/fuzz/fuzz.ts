/**
 * Raw bytes to the service as it is, real voices included, from a seeded generator; neighbours listen all along.
 *
 * Most keys of the inputs have no credit left: what they ask for passes every check but the last and is not spoken, so
 * that the cores go to what is fuzzed. Some are spoken for.
 */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { leftoversOf } from '../leftovers.js';
import { Neighbours } from '../neighbours/neighbours.js';
import { describeNeighbours, isUndisturbed } from '../neighbours/report.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import { inputOf, type Vocabulary } from './input.js';
import { Storm } from './storm.js';

const parallel = 256;
const goodKeyCount = 6;
/** Each kept in a file, and told. */
const failuresToldMax = 5;
/** Before the service is at rest after its start. */
const settleMs = 500;

const sharesOf = (counts: ReadonlyMap<string, number>): string => {
  const sum = [...counts.values()].reduce((all, count) => all + count, 0);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${((100 * count) / sum).toFixed(count * 100 < sum ? 2 : 0)} %`)
    .join(', ');
};

const run = async ({ seed, count, progress }: TortureOptions): Promise<readonly TortureRow[]> => {
  const service = await TortureService.start({ env: { SYNTHESIS_THREADS: '2', ACTOR_THREADS: '1' } });
  let neighbours: Neighbours | null = null;
  try {
    const goodKeys = await service.makeKeys(goodKeyCount);
    const voices = await speakersOf(service);
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
      if (failures.length < failuresToldMax) {
        const file = join(tmpdir(), `syrinx-fuzz-${String(seed)}-${String(index)}.json`);
        const hex = { bytes: bytes.toString('hex'), afterUpgrade: afterUpgrade?.toString('hex') ?? null };
        writeFileSync(file, `${JSON.stringify({ seed, index, what, kind, ending, cuts, ...hex })}\n`);
        process.stderr.write(
          `\ninput ${String(index)} of seed ${String(seed)}: ${what}; its bytes: ${file}\n`,
        );
      }
      failures.push(what);
    };
    const isAlive = (): boolean => service.exit === null;
    const addresses = process.platform === 'linux' ? 100 : 1;
    const storm = new Storm({ port: service.port, inputAt, count, parallel, addresses, onFault, isAlive });
    const startedMs = performance.now();
    let told = 0;
    const timer = setInterval(() => {
      const rate = Math.round((storm.done * 1000) / (performance.now() - startedMs));
      const faults = String(failures.length + service.faultCount);
      progress(
        `${String(storm.done)} of ${String(count)} inputs, ${String(rate)} a second, ${faults} faults`,
      );
      for (; told < service.faults.length; told++) process.stderr.write(`\n${service.faults[told] ?? ''}\n`);
      if (service.exit !== null) for (const index of storm.underWay) onFault(index, 'the service exited');
    }, 250);
    await storm.run();
    clearInterval(timer);
    const seconds = (performance.now() - startedMs) / 1000;
    if (service.exit !== null) {
      const { code, signal } = service.exit;
      throw new Error(`the service ended with ${String(code ?? signal)}: ${service.stderr}`);
    }
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, goodKeys, voices[0]!);
    const { code, signal } = await service.stop();
    const kinds = `answers: ${sharesOf(storm.answers)}`;
    const ended = code === 0 ? 'exit 0' : `ended with ${String(code ?? signal)}`;
    const faults = `${String(failures.length)} inputs failed, ${String(service.faultCount)} errors logged`;
    const leftText = left.length === 0 ? 'nothing left over' : `LEFT: ${left.join('; ')}`;
    return [
      {
        fault: 'raw bytes over HTTP and WebSocket',
        injected: `seed ${String(seed)}, ${String(parallel)} connections at a time: ${sharesOf(storm.kinds)}`,
        count,
        outcome: `${faults}, ${leftText}, ${ended}; ${kinds}; in ${seconds.toFixed(0)} s`,
        held: failures.length === 0 && service.faultCount === 0 && left.length === 0 && code === 0,
      },
      {
        fault: 'neighbours of the raw bytes',
        injected: 'two listeners over HTTP, two over WebSockets, meanwhile',
        count: report.utterances,
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
  about: 'raw bytes over HTTP and WebSocket, from a seeded generator; nightly with --count 1000000',
  defaultCount: 100_000,
  run,
};
